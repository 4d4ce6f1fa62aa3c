//! What to do about a worker that did not become ready, by what it said last.

use crate::config::{Pool, Program};

/// The next step for the person who reads why a pool's worker failed.
pub(super) fn advice(pool: &Pool, error: &str) -> String {
    match &pool.program {
        _ if error.starts_with("not ready after") => {
            format!("find out what it waits for, or raise `start_timeout` in [pools.{}]", pool.name)
        }
        Program::Python { file, interpreter } => {
            let interpreter = interpreter.display().to_string();
            python_advice(pool, error, &interpreter, &file.display().to_string())
        }
        Program::Command { .. } if error.starts_with("cannot run") => {
            format!("correct `command` in [pools.{}]", pool.name)
        }
        Program::Command { argv } => format!(
            "correct `command` in [pools.{}], or make {} say `ready` as PROTOCOL.md tells",
            pool.name, argv[0]
        ),
    }
}

fn python_advice(pool: &Pool, error: &str, interpreter: &str, file: &str) -> String {
    let last = error.trim_end().lines().next_back().unwrap_or("").trim();
    match last.split(':').next().unwrap_or("") {
        "ModuleNotFoundError" => {
            let module = last.split('\'').nth(1).unwrap_or("it");
            let package = module.split('.').next().unwrap_or(module);
            format!(
                "install it with `{interpreter} -m pip install {package}`, or set `interpreter` in \
                 [pools.{}] to a Python that has it",
                pool.name
            )
        }
        "SyntaxError" | "IndentationError" | "TabError" => {
            format!("correct the line above; `{interpreter} -m py_compile {file}` checks it alone")
        }
        _ if error.contains(" before it was ready") => {
            format!("correct {file}, then run: ostler check")
        }
        _ => format!("correct `python` or `interpreter` in [pools.{}]", pool.name),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::PoolName;

    fn advice_on(program: Program, error: &str) -> String {
        let name = PoolName::parse("py").expect("a name");
        advice(&Pool::defaults(name, program, Path::new("/srv"), 1), error)
    }

    #[test]
    fn the_last_line_of_a_traceback_tells_what_to_do() {
        let died = "`/srv/w.py` exited with code 1 before it was ready\n  Traceback …\n  ";
        for (last, words) in [
            ("ModuleNotFoundError: No module named 'yaml.cyaml'", "pip install yaml`"),
            ("SyntaxError: invalid syntax", "-m py_compile /srv/w.py"),
            ("ZeroDivisionError: division by zero", "correct /srv/w.py"),
        ] {
            let advice = advice_on(Program::python("/srv/w.py".into()), &format!("{died}{last}"));
            assert!(advice.contains(words), "{advice}");
        }
    }

    #[test]
    fn other_failures_have_their_own_next_step() {
        let python = || Program::python("/srv/w.py".into());
        let command = Program::Command { argv: vec!["run".to_owned()] };
        assert!(advice_on(python(), "not ready after 30s").contains("`start_timeout`"));
        assert!(advice_on(python(), "cannot run the interpreter").contains("`interpreter`"));
        assert!(advice_on(command.clone(), "it exited").contains("PROTOCOL.md"));
        assert_eq!(advice_on(command, "cannot run `run`"), "correct `command` in [pools.py]");
    }
}
