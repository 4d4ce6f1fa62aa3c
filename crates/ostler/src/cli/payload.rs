//! The payload of a call: JSON from the command line, a file or standard input.
//!
//! It is checked here, because a shell that ate the quotes is the most common mistake, and the
//! server cannot show where they were.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::exit::Failure;
use crate::config::{BODY_CEILING, Source};

/// The bytes to send: exactly what was given, once it is known to be JSON. None is no argument.
pub(super) fn read(arguments: &[OsString]) -> Result<Bytes, Failure> {
    let argument = match arguments {
        [] => return Ok(Bytes::new()),
        [argument] => argument,
        [..] => return Err(several(arguments)),
    };
    match argument.as_bytes() {
        b"-" => checked("standard input", bounded("standard input", std::io::stdin())?),
        [b'@', path @ ..] => {
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            let name = path.display().to_string();
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
            let bytes = bounded(&name, file)?;
            checked(&name, bytes)
        }
        text => checked("the payload", text.to_vec()),
    }
}

fn bounded(name: &str, from: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(BODY_CEILING + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    match bytes.len() as u64 <= BODY_CEILING {
        true => Ok(bytes),
        false => Err(Failure::usage(format!("{name} is larger than any server accepts (1 GiB)"))),
    }
}

fn checked(name: &str, bytes: Vec<u8>) -> Result<Bytes, Failure> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Bytes::new());
    }
    match serde_json::from_slice::<IgnoredAny>(&bytes) {
        Ok(_) => Ok(bytes.into()),
        Err(error) => Err(not_json(name, &bytes, &error)),
    }
}

fn not_json(name: &str, bytes: &[u8], error: &serde_json::Error) -> Failure {
    let source = Source::new(name, String::from_utf8_lossy(bytes));
    let offset = offset_of(&source.text, error.line(), error.column());
    let at = source.position(offset);
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    let gutter = " ".repeat(at.line.to_string().len());
    Failure::usage(format!(
        "{name} is not JSON: {reason} (line {}, column {})\n{}\n{gutter} = {}",
        at.line,
        at.column,
        source.excerpt(&(offset..offset)),
        hint(source.text.trim())
    ))
}

/// serde_json counts lines from 1 and columns in bytes, with 0 for the start of a line.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before + column.saturating_sub(1)
}

fn hint(text: &str) -> String {
    if text.starts_with(['{', '[']) {
        return "JSON has double quotes around names and texts; keep them from the shell with \
                single quotes: '{\"name\": \"ann\"}'"
            .to_owned();
    }
    let short = text.chars().count() <= 40 && !text.contains(['"', '\'', '\\', '\n']);
    let example = if short { text } else { "some text" };
    format!("a text needs two kinds of quotes: '\"{example}\"'; a file is written @FILE")
}

fn several(arguments: &[OsString]) -> Failure {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    Failure::usage(format!(
        "the payload is one argument, and these are {}: {}\n  put it in single quotes: '{{\"name\": \"ann\"}}'",
        words.len(),
        words.join("  ")
    ))
}
