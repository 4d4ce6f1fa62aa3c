//! The interpreters of the pools: there, recent enough, free-threaded or not.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Check;
use crate::config::{Config, DEFAULT_INTERPRETER, Profile, Program};

/// The oldest version that the Python library supports.
const OLDEST: (u32, u32) = (3, 9);

/// Starting an interpreter takes tens of milliseconds; a broken wrapper may take for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prints `major minor micro free-threaded`, all numbers.
const QUESTION: &str = "import sys, sysconfig; v = sys.version_info; \
    print(v[0], v[1], v[2], int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))";

pub(super) fn checks(config: Option<&Config>) -> Vec<Check> {
    let interpreters = interpreters(config);
    let commands = commands(config);
    let pythons = interpreters.iter().map(|(path, threaded)| python(path, threaded));
    pythons.chain(commands.iter().map(|program| command(program))).collect()
}

/// Each interpreter once, with the pools that run threads in it. Without a configuration, the
/// default one: it is what `serve` would use.
fn interpreters(config: Option<&Config>) -> BTreeMap<PathBuf, Vec<&str>> {
    let Some(config) = config else {
        return [(DEFAULT_INTERPRETER.into(), Vec::new())].into();
    };
    let mut found: BTreeMap<PathBuf, Vec<&str>> = BTreeMap::new();
    for pool in &config.pools {
        let Program::Python { interpreter, .. } = &pool.program else { continue };
        let threaded = found.entry(interpreter.clone()).or_default();
        if pool.sharing.profile == Profile::Thread {
            threaded.push(pool.name.as_str());
        }
    }
    found
}

fn commands(config: Option<&Config>) -> BTreeSet<String> {
    let pools = config.into_iter().flat_map(|config| &config.pools);
    pools
        .filter_map(|pool| match &pool.program {
            Program::Command { argv } => Some(argv[0].clone()),
            Program::Python { .. } => None,
        })
        .collect()
}

fn python(interpreter: &Path, threaded: &[&str]) -> Check {
    judge(interpreter, threaded, ask(interpreter))
}

fn judge(interpreter: &Path, threaded: &[&str], answer: Result<String, String>) -> Check {
    let name = "python";
    let shown = interpreter.display();
    let advice = "install Python 3.9 or newer, or set `interpreter` of the pool";
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Check::problem(name, format!("{shown}: {error}"), advice),
    };
    let numbers: Vec<u32> = answer.split_whitespace().flat_map(str::parse).collect();
    let &[major, minor, micro, free_threaded] = &numbers[..] else {
        return Check::problem(name, format!("{shown} did not tell its version"), advice);
    };
    let lock = lock(free_threaded != 0, threaded);
    let found = format!("{shown} is {major}.{minor}.{micro}, {lock}");
    match (major, minor) >= OLDEST {
        true => Check::ok(name, found),
        false => Check::problem(name, found, advice),
    }
}

/// Whether the interpreter lets threads run side by side, and what that means for these pools.
fn lock(free_threaded: bool, threaded: &[&str]) -> String {
    let (kind, meaning) = match free_threaded {
        true => ("free-threaded", "run side by side"),
        false => ("with the global lock", "take turns while they compute in Python"),
    };
    match threaded {
        [] => kind.to_owned(),
        pools => format!("{kind}: the threads of {} {meaning}", pools.join(", ")),
    }
}

fn ask(interpreter: &Path) -> Result<String, String> {
    let mut child = Command::new(interpreter)
        .args(["-I", "-S", "-c", QUESTION])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot be started ({error})"))?;
    let ended = wait(&mut child);
    if ended.is_err() {
        // Ours and not waited for yet, so the id is still its own.
        drop(child.kill());
        drop(child.wait());
    }
    ended?;
    let mut answer = String::new();
    let out = child.stdout.take().map(|out| out.take(1_024));
    out.map(|mut out| out.read_to_string(&mut answer));
    Ok(answer)
}

fn wait(child: &mut Child) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("ended with {status}")),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => return Err("does not answer".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn command(program: &str) -> Check {
    match is_runnable(program, std::env::var_os("PATH").as_deref()) {
        true => Check::ok("command", format!("{program} is there")),
        false => Check::problem(
            "command",
            format!("{program} is not there, or not executable"),
            "correct `command` of the pool, or PATH",
        ),
    }
}

/// A path is looked at as it is, a bare word in every directory of `PATH`.
fn is_runnable(program: &str, path: Option<&std::ffi::OsStr>) -> bool {
    let executable = |file: &Path| {
        file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if program.contains('/') {
        return executable(Path::new(program));
    }
    std::env::split_paths(path.unwrap_or_default()).any(|dir| executable(&dir.join(program)))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn an_interpreter_is_judged_by_what_it_says() {
        let judge = |answer: &str| judge(Path::new("python"), &[], Ok(answer.to_owned()));
        assert_eq!(judge("3 8 20 0\n").verdict, Verdict::Problem);
        assert_eq!(judge("3 9 0 0\n").verdict, Verdict::Ok);
        assert_eq!(judge("3 14 0 1\n").found, "python is 3.14.0, free-threaded");
        assert_eq!(judge("hello\n").verdict, Verdict::Problem);
    }

    #[test]
    fn an_interpreter_that_does_not_run_is_a_problem() {
        let broken = python(Path::new("/bin/false"), &[]);
        assert_eq!(broken.verdict, Verdict::Problem);
        assert!(broken.found.contains("ended with"), "{broken:?}");
        let missing = python(Path::new("/no/such/python"), &[]);
        assert_eq!(missing.verdict, Verdict::Problem);
        assert!(missing.found.contains("cannot be started"), "{missing:?}");
    }

    #[test]
    fn pools_with_threads_are_told_what_their_interpreter_does_with_them() {
        let found = |answer: &str| {
            let answer = Ok(answer.to_owned());
            judge(Path::new("python"), &["a", "b"], answer).found
        };
        assert!(found("3 14 0 1").ends_with("free-threaded: the threads of a, b run side by side"));
        assert!(found("3 14 0 0").contains("the threads of a, b take turns"));
    }

    #[test]
    fn a_bare_word_is_looked_for_in_the_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("python");
        std::fs::write(&file, "").expect("written");
        assert!(!is_runnable(&file.to_string_lossy(), None), "not executable yet");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&file, mode).expect("it is ours");
        let path = Some(directory.path().as_os_str());
        assert!(is_runnable("python", path));
        assert!(is_runnable(&file.to_string_lossy(), None));
        assert!(!is_runnable("pythons", path));
        assert!(!is_runnable("python", None));
    }
}
