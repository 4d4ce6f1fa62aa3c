//! What a pool's workers run: a Python file with the SDK inside this binary, or any command that
//! speaks the protocol.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::python::{Interpreter, PythonError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Python { file: PathBuf, interpreter: String },
    Command { argv: Vec<OsString> },
}

/// A program whose parts were found: what to run and in which environment.
#[derive(Debug)]
pub struct Resolved {
    pub argv: Vec<OsString>,
    pub env: BTreeMap<OsString, OsString>,
}

/// Variables of the server that every worker gets. Everything else is the pool's to name.
const PASSED: [&str; 13] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
];

impl Program {
    /// Finds the interpreter and the SDK. `pass`: variables of this process that it gets too.
    pub async fn resolve(&self, pass: &[String]) -> Result<Resolved, PythonError> {
        let mut env = inherited(pass);
        let argv = match self {
            Program::Command { argv } => argv.clone(),
            Program::Python { file, interpreter } => {
                let interpreter = Interpreter::find(interpreter).await?;
                if !file.is_file() {
                    return Err(PythonError::NoFile { file: file.clone() });
                }
                let sdk = crate::python::unpack_sdk()?;
                env.insert("PYTHONPATH".into(), python_path(sdk));
                let module = ["-m", "ostler.worker"].map(OsString::from);
                let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
                let interpreter = OsString::from(interpreter.executable);
                [interpreter].into_iter().chain(module).chain([file.into()]).collect()
            }
        };
        Ok(Resolved { argv, env })
    }
}

fn python_path(sdk: PathBuf) -> OsString {
    let mut path = sdk.into_os_string();
    if let Some(others) = std::env::var_os("PYTHONPATH").filter(|others| !others.is_empty()) {
        path.push(":");
        path.push(others);
    }
    path
}

fn inherited(pass: &[String]) -> BTreeMap<OsString, OsString> {
    let names = PASSED.into_iter().chain(pass.iter().map(String::as_str));
    names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
}
