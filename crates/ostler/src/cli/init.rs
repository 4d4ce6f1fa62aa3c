//! `ostler init`: a worker, its configuration and a test that run as they are.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use super::args::InitArgs;
use super::endpoint::current_dir;
use super::exit::{Exit, Failure};
use super::output;
use crate::config::{CONFIG_FILE, PoolName};

const WORKER: &str = include_str!("init/worker.py");
const CONFIG: &str = include_str!("init/ostler.toml");
const TEST: &str = include_str!("init/test_worker.py");

/// A file to be written, relative to the new directory.
struct File {
    name: String,
    text: String,
}

pub(super) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let directory = current_dir()?.join(&args.directory);
    let files = files(&args.name);
    if !args.force {
        refuse_existing(&args.directory, &directory, &files)?;
    }
    fs::create_dir_all(&directory).map_err(|error| cannot("make", &directory, &error))?;
    for file in &files {
        write(&directory.join(&file.name), &file.text, args.force)?;
    }
    output::print(&next_steps(args, &files))?;
    Ok(Exit::Ok)
}

/// A name for a pool that can also be that of a Python module beside its test.
pub(super) fn parse_name(text: &str) -> Result<PoolName, String> {
    let name = PoolName::parse(text).ok_or_else(|| {
        let rule = "a lower-case letter, then letters, digits, _ or -, not `ostler` or `host`";
        match PoolName::like(text) {
            Some(like) => format!("{rule}; `{like}` would do"),
            None => rule.to_owned(),
        }
    })?;
    match text.starts_with("test") {
        true => Err("python3 -m unittest would take its file for a test".to_owned()),
        false => Ok(name),
    }
}

fn files(name: &PoolName) -> [File; 3] {
    let module = name.as_str().replace('-', "_");
    let fill = |template: &str| {
        template
            .replace("POOL", name.as_str())
            .replace("MODULE", &module)
            .replace("SOCKET", &format!("{}_SOCKET", module.to_uppercase()))
    };
    let file = |name: String, template| File { name, text: fill(template) };
    [
        file(format!("{module}.py"), WORKER),
        file(CONFIG_FILE.to_owned(), CONFIG),
        file(format!("test_{module}.py"), TEST),
    ]
}

/// All or nothing: half of an example helps nobody.
fn refuse_existing(named: &Path, directory: &Path, files: &[File]) -> Result<(), Failure> {
    let there: Vec<String> = files
        .iter()
        .filter(|file| directory.join(&file.name).symlink_metadata().is_ok())
        .map(|file| format!("  {}", named.join(&file.name).display()))
        .collect();
    if there.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "nothing was written, these files are there already:\n{}\n\
         write elsewhere with: ostler init DIR, or replace them with: --force",
        there.join("\n")
    )))
}

fn write(path: &Path, text: &str, replace: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    match replace {
        true => options.create(true).truncate(true),
        // Somebody may have made it since we looked.
        false => options.create_new(true),
    };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| cannot("write", path, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!(
        "cannot {what} {}: {error}\nchoose another directory: ostler init DIR",
        path.display()
    ))
}

fn next_steps(args: &InitArgs, files: &[File]) -> String {
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let (place, enter) = match args.directory == Path::new(".") {
        true => (String::new(), String::new()),
        false => {
            let directory = shell_word(&args.directory.display().to_string());
            (format!(" in {directory}"), format!("cd {directory} && "))
        }
    };
    format!(
        "wrote {}{place}\n\nNext:\n  \
           {enter}ostler serve\n  \
           {enter}ostler call {} greet '{{\"name\": \"Ada\"}}'     # in another terminal\n  \
           {enter}python3 -m unittest\n",
        names.join(", "),
        args.name,
    )
}

/// The text as one word of a shell's command line.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_carry_the_name_where_a_name_belongs() {
        let name = parse_name("my-model").expect("a name");
        let [worker, config, test] = files(&name);
        let names = [&worker.name, &config.name, &test.name];
        assert_eq!(names, ["my_model.py", "ostler.toml", "test_my_model.py"]);
        assert!(
            config.text.contains("[pools.my-model]\npython = \"my_model.py\""),
            "{}",
            config.text
        );
        assert!(config.text.contains("${MY_MODEL_SOCKET:-"), "{}", config.text);
        assert!(test.text.contains("\"MY_MODEL_SOCKET\""), "{}", test.text);
    }

    #[test]
    fn a_name_that_would_not_work_is_refused_with_one_that_would() {
        let refused = |text| parse_name(text).expect_err(text);
        assert!(refused("My Model").ends_with("`my-model` would do"));
        assert!(refused("ostler").contains("not `ostler`"));
        assert!(refused("tests").contains("unittest"));
    }

    #[test]
    fn a_directory_is_one_word_for_the_shell() {
        assert_eq!(shell_word("a/b-1.c"), "a/b-1.c");
        assert_eq!(shell_word("it's here"), "'it'\\''s here'");
        assert_eq!(shell_word("$(x)"), "'$(x)'");
    }
}
