//! A worker that leaves behind what is hardest to find.
//!
//! It answers on descriptor 3 as a good worker does. Its descendants have left its session, have
//! no parent, no open descriptor, no environment, or never stay the same process for long. All
//! carry the worker's name in their arguments, so that a test can tell whose they are.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub const ROLE: &str = "rig-hostile";
pub const SLEEPER_ROLE: &str = "rig-sleeper";

/// How long a hydra lives before its child takes over.
const HYDRA_MICROS: u32 = 2_000;

/// Longer than any trial: what escapes a broken containment must not stay on the machine, where
/// hydras would use up its process numbers.
const LIFETIME: Duration = Duration::from_secs(40);

pub fn main(name: &str) -> ExitCode {
    ignore_polite_signals();
    in_child(|| sleep());
    in_child(|| {
        new_session();
        sleep()
    });
    in_orphan(|| {
        close_everything();
        sleep()
    });
    in_orphan(|| {
        close_everything();
        wipe_environment(name)
    });
    in_orphan(|| hydra());
    echo()
}

pub fn sleep() -> ! {
    std::thread::sleep(LIFETIME);
    // SAFETY: ends this process only.
    unsafe { libc::_exit(0) }
}

fn ignore_polite_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: a constant disposition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn in_child(act: impl FnOnce() -> std::convert::Infallible) {
    // SAFETY: this program has one thread in this role.
    if unsafe { libc::fork() } == 0 {
        act();
    }
}

/// In a grandchild with its own session, whose parent has ended.
fn in_orphan(act: impl FnOnce() -> std::convert::Infallible) {
    in_child(|| {
        new_session();
        in_child(act);
        // SAFETY: ends the process between.
        unsafe { libc::_exit(0) }
    });
}

fn new_session() {
    // SAFETY: takes nothing.
    unsafe { libc::setsid() };
}

fn close_everything() {
    for fd in 0..64 {
        // SAFETY: nothing in this process uses its descriptors any more.
        unsafe { libc::close(fd) };
    }
}

fn wipe_environment(name: &str) -> ! {
    let own = CString::new("/proc/self/exe").expect("no NUL");
    let role = CString::new(SLEEPER_ROLE).expect("no NUL");
    let name = CString::new(name).expect("no NUL");
    let argv = [own.as_ptr(), role.as_ptr(), name.as_ptr(), std::ptr::null()];
    let env = [std::ptr::null()];
    // SAFETY: both arrays end with a null pointer.
    unsafe {
        libc::execve(own.as_ptr(), argv.as_ptr(), env.as_ptr());
        libc::_exit(1)
    }
}

fn hydra() -> ! {
    let end = Instant::now() + LIFETIME;
    while Instant::now() < end {
        // SAFETY: plain calls of a process with one thread.
        unsafe {
            libc::usleep(HYDRA_MICROS);
            if libc::fork() > 0 {
                libc::_exit(0);
            }
            libc::setsid();
        }
    }
    // SAFETY: ends this process only.
    unsafe { libc::_exit(0) }
}

/// Greets, then answers; and stays when nobody asks any more.
fn echo() -> ! {
    let mut byte = [b'!'];
    loop {
        // SAFETY: one byte of a local buffer.
        unsafe {
            libc::write(3, byte.as_ptr().cast(), 1);
            if libc::read(3, byte.as_mut_ptr().cast(), 1) != 1 {
                sleep();
            }
        }
    }
}
