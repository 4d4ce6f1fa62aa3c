//! Python for those who bring only a file of functions: the interpreter, and the SDK that is
//! inside this binary.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The oldest Python that the SDK runs on.
const OLDEST: (u32, u32) = (3, 9);

#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    #[error("there is no file {}", file.display())]
    NoFile { file: PathBuf },
    #[error(
        "cannot run the interpreter `{interpreter}`: {source}; set `interpreter` to a Python of 3.9 or newer"
    )]
    NoInterpreter { interpreter: String, source: io::Error },
    #[error("`{interpreter}` is not a usable Python: {why}")]
    BadInterpreter { interpreter: String, why: String },
    #[error("`{interpreter}` is Python {}.{}; the SDK needs 3.9 or newer", .version.0, .version.1)]
    TooOld { interpreter: String, version: (u32, u32) },
    #[error("cannot unpack the Python SDK to {}: {source}", path.display())]
    Unpack { path: PathBuf, source: io::Error },
}

#[derive(Debug, Clone)]
pub struct Interpreter {
    /// The real one: a wrapper such as a version manager's shim is asked once, not per worker.
    pub executable: PathBuf,
    pub version: (u32, u32),
    pub free_threaded: bool,
}

const PROBE: &str = "import sys, sysconfig; print(sys.executable); \
    print(sys.version_info[0], sys.version_info[1]); \
    print(int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))";

impl Interpreter {
    pub async fn find(name: &str) -> Result<Interpreter, PythonError> {
        let name = name.to_owned();
        let probing = tokio::task::spawn_blocking(move || Interpreter::probe(&name));
        probing.await.expect("the probe does not panic")
    }

    pub fn probe(name: &str) -> Result<Interpreter, PythonError> {
        let output = std::process::Command::new(name)
            .args(["-S", "-E", "-c", PROBE])
            .stdin(Stdio::null())
            .output()
            .map_err(|source| PythonError::NoInterpreter {
                interpreter: name.to_owned(),
                source,
            })?;
        let bad = |why: &str| PythonError::BadInterpreter {
            interpreter: name.to_owned(),
            why: why.to_owned(),
        };
        if !output.status.success() {
            return Err(bad(String::from_utf8_lossy(&output.stderr).trim()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let (Some(executable), Some(version), Some(free)) =
            (lines.next(), lines.next(), lines.next())
        else {
            return Err(bad("it does not say what it is"));
        };
        let mut numbers = version.split(' ').filter_map(|number| number.parse().ok());
        let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
            return Err(bad("it does not say its version"));
        };
        if (major, minor) < OLDEST {
            let version = (major, minor);
            return Err(PythonError::TooOld { interpreter: name.to_owned(), version });
        }
        let executable = executable.into();
        Ok(Interpreter { executable, version: (major, minor), free_threaded: free == "1" })
    }
}

include!(concat!(env!("OUT_DIR"), "/sdk.rs"));

/// Where the SDK is on disk: a private directory named by its content, made on first use.
pub fn unpack_sdk() -> Result<PathBuf, PythonError> {
    let mut hasher = DefaultHasher::new();
    SDK.hash(&mut hasher);
    let uid = rustix::process::getuid().as_raw();
    let base = std::env::temp_dir().join(format!("ostler-sdk-{uid}"));
    let directory = base.join(format!("{:016x}", hasher.finish()));
    let failed = |source| PythonError::Unpack { path: directory.clone(), source };
    private_directory(&base, uid).map_err(failed)?;
    if !directory.join("complete").exists() {
        write_sdk(&base, &directory).map_err(failed)?;
    }
    Ok(directory)
}

/// Others must not be able to put code there: it must be ours and closed to them.
fn private_directory(path: &Path, uid: u32) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() || metadata.uid() != uid || metadata.mode() & 0o077 != 0 {
        let message = "it exists and is not a private directory of this user; remove it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

/// Written aside and renamed, so that two servers that start at once see all of it or nothing.
fn write_sdk(base: &Path, directory: &Path) -> io::Result<()> {
    let aside = base.join(format!("new-{}-{}", std::process::id(), uuid::Uuid::now_v7()));
    fs::create_dir_all(aside.join("ostler"))?;
    for (name, text) in SDK {
        fs::write(aside.join("ostler").join(name), text)?;
    }
    fs::write(aside.join("complete"), "")?;
    match fs::rename(&aside, directory) {
        Err(_) if directory.join("complete").exists() => fs::remove_dir_all(&aside),
        renamed => renamed,
    }
}
