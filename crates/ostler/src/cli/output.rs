//! What commands write to standard output.
//!
//! A pipe or a file gets results byte for byte; a terminal gets them with control characters
//! escaped, because they come from workers.

use std::io::{self, IsTerminal as _, Write as _};

use super::exit::Failure;
use crate::text::printable;

/// Writes text of our own making.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    write(text.as_bytes())
}

/// Writes bytes that came from a worker.
pub(super) fn pass_on(bytes: &[u8]) -> Result<(), Failure> {
    match io::stdout().is_terminal() {
        true => write(printable(&String::from_utf8_lossy(bytes)).as_bytes()),
        false => write(bytes),
    }
}

/// The same, and ends the line.
pub(super) fn pass_on_line(bytes: &[u8]) -> Result<(), Failure> {
    pass_on(bytes)?;
    write(b"\n")
}

/// Each piece is flushed: a reader of a stream waits for it.
fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        // The reader has seen enough; that needs no words.
        io::ErrorKind::BrokenPipe => Failure::failed(""),
        _ => Failure::failed(format!("cannot write to standard output: {error}")),
    })
}
