//! Descriptors: waiting on them, putting them on fixed numbers, and closing all others.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use tokio::io::unix::AsyncFd;

use super::{check, check_long};

/// What one descriptor of a poll set is watched for, and what was seen.
pub type Watched = libc::pollfd;

/// An entry that is reported when there is something to read or the other side is gone.
pub fn watch(fd: BorrowedFd<'_>) -> Watched {
    Watched { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// An entry that the kernel skips.
pub fn watch_nothing() -> Watched {
    Watched { fd: -1, events: 0, revents: 0 }
}

/// Waits until an entry has something; for ever if no timeout is given. An interrupted wait looks
/// like one that ran out.
pub fn poll(entries: &mut [Watched], timeout_micros: Option<u64>) {
    for entry in entries.iter_mut() {
        entry.revents = 0;
    }
    let timeout = timeout_micros.map(|micros| libc::timespec {
        tv_sec: (micros / 1_000_000) as libc::time_t,
        tv_nsec: (micros % 1_000_000 * 1_000) as libc::c_long,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: pointer and length belong to one slice; no mask is passed.
    unsafe {
        libc::ppoll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, timeout, std::ptr::null())
    };
}

/// Is there something to read, or is the other side gone, right now?
pub fn is_ready(fd: BorrowedFd<'_>) -> bool {
    let mut entry = [watch(fd)];
    poll(&mut entry, Some(0));
    entry[0].revents != 0
}

/// Hands a descriptor to the tokio runtime. Must run inside one.
pub fn watch_async(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the wrapper owns the descriptor, which stays open until it is dropped.
    unsafe { AsyncFd::register(fd) }.map_err(Into::into)
}

pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain numbers on a borrowed descriptor.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)).map(drop)
    }
}

/// A pipe, read end first, both ends closed on exec.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    // SAFETY: the kernel writes two descriptors, which then belong to this process.
    unsafe {
        check(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// An anonymous file in memory, closed on exec.
pub fn memory_file(name: &CStr) -> io::Result<File> {
    // SAFETY: a terminated name; the new descriptor is ours.
    unsafe {
        let fd = check(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC))?;
        Ok(File::from_raw_fd(fd))
    }
}

/// Opens for reading, closed on exec, without allocating.
pub fn open(path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    open_at(None, path, flags)
}

pub fn open_at(dir: Option<BorrowedFd<'_>>, path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    let dir = dir.map_or(libc::AT_FDCWD, |dir| dir.as_raw_fd());
    // SAFETY: a terminated path; the new descriptor is ours.
    unsafe {
        let fd = check(libc::openat(dir, path.as_ptr(), flags | libc::O_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

pub fn make_dir_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: a terminated name below a borrowed directory.
    check(unsafe { libc::mkdirat(dir.as_raw_fd(), name.as_ptr(), 0o755) }).map(drop)
}

pub fn remove_dir_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: a terminated name below a borrowed directory.
    check(unsafe { libc::unlinkat(dir.as_raw_fd(), name.as_ptr(), libc::AT_REMOVEDIR) }).map(drop)
}

/// Reads from an absolute position, so that one descriptor can be read again and again.
pub fn read_at(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    // SAFETY: the kernel writes within the buffer.
    let count = unsafe {
        libc::pread(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), offset as libc::off_t)
    };
    check_long(count as libc::c_long).map(|count| count as usize)
}

pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes within the buffer.
    let count = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    check_long(count as libc::c_long).map(|count| count as usize)
}

pub fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads within the slice.
    let count = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    check_long(count as libc::c_long).map(|count| count as usize)
}

/// Writes a whole small file of the kernel, such as those in /proc and of cgroups.
pub fn write_file_at(dir: Option<BorrowedFd<'_>>, path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = open_at(dir, path, libc::O_WRONLY)?;
    write(file.as_fd(), text).map(drop)
}

/// A copy of a descriptor with a number of at least `lowest`, closed on exec.
pub fn duplicate_above(fd: BorrowedFd<'_>, lowest: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers; the new descriptor is ours.
    unsafe {
        let fd = check(libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Takes what this process was given as standard input, leaving /dev/null on 0, 1 and 2.
///
/// For a shim that was just started: its standard streams are still its starter's.
pub fn take_stdin() -> io::Result<OwnedFd> {
    // SAFETY: number 0 was opened by whoever started this process, or the call fails.
    let given = duplicate_above(unsafe { BorrowedFd::borrow_raw(0) }, 3)?;
    silence_standard_streams()?;
    Ok(given)
}

/// /dev/null on 0, 1 and 2.
pub fn silence_standard_streams() -> io::Result<()> {
    let null = open(c"/dev/null", libc::O_RDWR)?;
    for target in 0..=2 {
        put_on(null.as_fd(), target)?;
    }
    Ok(())
}

/// Puts a copy on a fixed number, open across exec, replacing whatever was there.
pub fn put_on(fd: BorrowedFd<'_>, target: RawFd) -> io::Result<()> {
    debug_assert_ne!(fd.as_raw_fd(), target, "dup2 onto itself would keep close-on-exec");
    // SAFETY: plain numbers. Callers pass targets that no owner in this process holds.
    check(unsafe { libc::dup2(fd.as_raw_fd(), target) }).map(drop)
}

/// Takes ownership of a descriptor that the starter of this process put on a fixed number.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: `F_GETFD` only asks whether the number is open.
    check(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    // SAFETY: it is open, and nothing else in a process that has just started owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Marks everything from `first` up to be closed on exec.
pub fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    close_range(first, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes everything from 3 up but `kept`. The caller must not use or drop any other descriptor
/// of its past afterwards: for processes that have just been forked or started and never return.
pub fn close_all_but(kept: &mut [RawFd]) -> io::Result<()> {
    kept.sort_unstable();
    let mut first = 3;
    for &fd in kept.iter().filter(|&&fd| fd >= 3) {
        if fd > first {
            close_range(first, fd - 1, 0)?;
        }
        first = fd + 1;
    }
    close_range(first, RawFd::MAX, 0)
}

fn close_range(first: RawFd, last: RawFd, flags: u32) -> io::Result<()> {
    // SAFETY: the callers' contracts say that nobody owns what is closed.
    check_long(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}

pub fn change_dir(path: &CStr) -> io::Result<()> {
    // SAFETY: a terminated path.
    check(unsafe { libc::chdir(path.as_ptr()) }).map(drop)
}

pub fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: terminated strings and no data.
    check(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null())
    })
    .map(drop)
}

/// Overwrites the arguments that `ps` shows. `start` and `end` are the process's argument area as
/// /proc/self/stat names it; nothing in this process may still read its arguments from there.
pub fn overwrite_arguments(start: usize, end: usize, title: &[u8]) {
    if start == 0 || end <= start {
        return;
    }
    let room = end - start;
    let length = title.len().min(room - 1);
    // SAFETY: the kernel keeps the argument area of a process mapped and writable at this
    // address, also in a forked child.
    unsafe {
        std::ptr::write_bytes(start as *mut u8, 0, room);
        std::ptr::copy_nonoverlapping(title.as_ptr(), start as *mut u8, length);
    }
}
