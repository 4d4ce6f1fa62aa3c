//! Whole files in, whole configurations or exact error texts out.

mod differences;
mod files;
mod refusals;
mod settings;

use std::path::Path;

use super::*;

fn variable(name: &str) -> Option<String> {
    match name {
        "PORT" => Some("7000".to_owned()),
        "WORKERS" => Some("3".to_owned()),
        "SECRET" => Some("hunter2".to_owned()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Config, String> {
    let around = Surroundings {
        root: Path::new("/srv"),
        cores: 4,
        variable: &variable,
        exists: &|path| !path.ends_with("absent.py") && !path.ends_with("absent"),
    };
    read(&Source::new("ostler.toml", text), &around).map_err(|invalid| invalid.to_string())
}

fn valid(text: &str) -> Config {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn problem(text: &str) -> String {
    parse(text).expect_err("this file has a problem")
}

/// The messages of a file's problems, without their drawings.
fn messages(text: &str) -> Vec<String> {
    let shown = problem(text);
    let lines = shown.lines().filter_map(|line| {
        let rest = line.strip_prefix("ostler.toml:")?;
        rest.split_once(": ").map(|(_, message)| message.to_owned())
    });
    lines.collect()
}

/// The settings of one pool named `py`, under the smallest valid file.
fn pool_file(settings: &str) -> String {
    format!("version = 1\n[pools.py]\npython = \"w.py\"\n{settings}\n")
}
