//! What a worker's process is to run, and its form in the memory file that carries it to the
//! process that will become it.
//!
//! Arguments and environment may be larger than a socket message, so they travel as a file: three
//! u32 (number of arguments, number of variables, 1 if a directory follows), then all strings,
//! each ended by a NUL. The shims in between pass the file on unread.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::sys;

/// One process to be started.
#[derive(Clone, Debug, Default)]
pub struct SpawnSpec {
    /// Shown in `ps` beside the shim: `py-3`.
    pub name: String,
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of
    /// `env`. A fork server ignores this: what runs is the forked interpreter.
    pub argv: Vec<OsString>,
    /// The complete environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// The directory to start in; that of the server, as it was when the pool began, if none.
    pub cwd: Option<PathBuf>,
    /// Give the process its data stream as descriptor 3. Without it the process finds its server
    /// by what `env` says.
    pub data: bool,
    /// Give the process a second stream as descriptor 4. Needs `data`.
    pub control: bool,
}

impl SpawnSpec {
    /// A process that speaks on descriptor 3.
    pub fn new(name: impl Into<String>, argv: Vec<OsString>) -> SpawnSpec {
        SpawnSpec { name: name.into(), argv, data: true, ..SpawnSpec::default() }
    }

    /// The program as the user wrote it, for messages.
    pub fn program(&self) -> OsString {
        self.argv.first().cloned().unwrap_or_default()
    }

    pub(super) fn to_file(&self) -> io::Result<OwnedFd> {
        let mut bytes = Vec::with_capacity(4096);
        for number in [self.argv.len(), self.env.len(), self.cwd.is_some().into()] {
            bytes.extend_from_slice(&(number as u32).to_le_bytes());
        }
        for argument in &self.argv {
            push_string(&mut bytes, &[argument])?;
        }
        for (key, value) in &self.env {
            push_string(&mut bytes, &[key, OsStr::new("="), value])?;
        }
        if let Some(directory) = &self.cwd {
            push_string(&mut bytes, &[directory.as_os_str()])?;
        }
        let mut file = sys::memory_file(c"ostler-spec")?;
        file.write_all(&bytes)?;
        Ok(file.into())
    }
}

fn push_string(bytes: &mut Vec<u8>, parts: &[&OsStr]) -> io::Result<()> {
    for part in parts {
        if part.as_bytes().contains(&0) {
            let text = format!("`{}` contains a NUL byte", part.to_string_lossy());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes.push(0);
    Ok(())
}

/// The content of a specification file, read by the process that it describes.
#[derive(Debug)]
pub struct Blueprint {
    bytes: Vec<u8>,
}

/// The same, taken apart.
#[derive(Debug)]
pub struct Parts<'a> {
    pub argv: Vec<&'a CStr>,
    pub env: Vec<&'a CStr>,
    pub cwd: Option<&'a CStr>,
}

impl Blueprint {
    pub fn read(file: OwnedFd) -> io::Result<Blueprint> {
        let mut file = File::from(file);
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Blueprint { bytes })
    }

    /// None for a file that `to_file` did not write.
    pub fn parts(&self) -> Option<Parts<'_>> {
        let (counts, mut rest) = self.bytes.split_at_checked(12)?;
        let count = |index: usize| {
            let four = counts[index * 4..][..4].try_into().expect("4 bytes");
            u32::from_le_bytes(four) as usize
        };
        let argv = take_strings(&mut rest, count(0))?;
        let env = take_strings(&mut rest, count(1))?;
        let cwd = take_strings(&mut rest, count(2))?.pop();
        Some(Parts { argv, env, cwd })
    }
}

fn take_strings<'a>(rest: &mut &'a [u8], count: usize) -> Option<Vec<&'a CStr>> {
    let mut strings = Vec::with_capacity(count.min(rest.len()));
    for _ in 0..count {
        let string = CStr::from_bytes_until_nul(rest).ok()?;
        *rest = &rest[string.to_bytes_with_nul().len()..];
        strings.push(string);
    }
    Some(strings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SpawnSpec {
        SpawnSpec {
            env: vec![("A".into(), "1=2".into()), ("EMPTY".into(), "".into())],
            cwd: Some("/tmp".into()),
            ..SpawnSpec::new("py-1", vec!["python3".into(), "".into(), "-c".into()])
        }
    }

    #[test]
    fn a_specification_survives_its_file() {
        let blueprint = Blueprint::read(spec().to_file().unwrap()).unwrap();
        let parts = blueprint.parts().expect("well formed");
        assert_eq!(parts.argv, [c"python3", c"", c"-c"]);
        assert_eq!(parts.env, [c"A=1=2", c"EMPTY="]);
        assert_eq!(parts.cwd, Some(c"/tmp"));
    }

    #[test]
    fn a_nul_byte_is_refused_by_name() {
        let mut bad = spec();
        bad.argv.push("x\0y".into());
        let error = bad.to_file().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_torn_file_is_not_understood() {
        let blueprint = Blueprint { bytes: vec![9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'a'] };
        assert!(blueprint.parts().is_none());
    }
}
