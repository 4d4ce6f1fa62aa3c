//! The kernel, wrapped: the one place with unsafe code.
//!
//! Everything here is a thin, safe function over one or two system calls. Nothing here knows what
//! a pool, a shim or a worker is. Functions that the shims call in their loops do not allocate.
#![allow(unsafe_code)]

mod files;
mod message;
mod process;

pub use files::*;
pub use message::*;
pub use process::*;

use std::io;

/// Turns the `-1` of a system call into the error it stands for.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The errno of an error, for messages that cross a process border.
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
