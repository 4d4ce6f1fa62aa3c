//! Processes: making them, waiting for them, signalling them, and the attributes that containment
//! rests on.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{check, check_long};

/// Which side of a fork this is.
#[derive(Debug)]
pub enum Forked {
    Child,
    /// The pidfd was made together with the child, so it cannot name a stranger.
    Parent {
        pid: i32,
        pidfd: OwnedFd,
    },
}

/// Forks, with `namespaces` (`CLONE_NEW…` flags) for the child.
///
/// Only for processes with one thread: the child goes on with a copy of this process as it is.
/// `clone` rather than `clone3`, because common container profiles refuse the latter.
pub fn fork(namespaces: i32) -> io::Result<Forked> {
    let mut pidfd: libc::c_int = -1;
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: a null stack makes `clone` behave like `fork`; the third argument is where the
    // kernel stores the pidfd, on all architectures with this argument order.
    let pid = check_long(unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags as libc::c_ulong,
            0_usize,
            &raw mut pidfd,
            0_usize,
            0_usize,
        )
    })?;
    if pid == 0 {
        return Ok(Forked::Child);
    }
    // SAFETY: the kernel has just given this descriptor to this process.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Forked::Parent { pid: pid as i32, pidfd })
}

/// Replaces this process by `program`. Returns only the reason why it could not.
pub fn exec(program: &CStr, argv: &[&CStr], env: &[&CStr]) -> io::Error {
    let argv = pointers(argv);
    let env = pointers(env);
    // SAFETY: both arrays end with a null pointer and outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

fn pointers(strings: &[&CStr]) -> Vec<*const libc::c_char> {
    let end = std::iter::once(std::ptr::null());
    strings.iter().map(|s| s.as_ptr()).chain(end).collect()
}

/// Ends this process at once, without the exit handlers of whatever it was forked from.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any number and does not return.
    unsafe { libc::_exit(code) }
}

pub fn pid() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::getpid() }
}

pub fn parent_pid() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::getppid() }
}

pub fn effective_uid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

pub fn effective_gid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::getegid() }
}

pub fn new_session() -> io::Result<()> {
    // SAFETY: no arguments.
    check(unsafe { libc::setsid() }).map(drop)
}

fn prctl(option: i32, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: only options whose argument is a number are passed here.
    check(unsafe { libc::prctl(option, argument, 0, 0, 0) }).map(drop)
}

pub fn become_subreaper() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
}

/// SIGKILL for this process when its parent dies.
pub fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)
}

/// The short name that `top` shows; the kernel keeps 15 bytes.
pub fn set_name(name: &CStr) {
    // SAFETY: a terminated string that the kernel copies. A failure would cost only the label.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// What a finished process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub user_micros: u64,
    pub system_micros: u64,
    pub max_rss_kib: u64,
}

/// One look at the children of this process.
#[derive(Debug)]
pub enum Wait {
    Reaped { pid: i32, status: i32, usage: Usage },
    NoneReady,
    NoChildren,
}

/// Reaps one child that has ended, whatever made it.
pub fn reap_any() -> Wait {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills both.
    let pid =
        unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG | libc::__WALL, &raw mut usage) };
    match pid {
        0 => Wait::NoneReady,
        pid if pid > 0 => Wait::Reaped { pid, status, usage: to_usage(&usage) },
        _ => Wait::NoChildren,
    }
}

fn to_usage(usage: &libc::rusage) -> Usage {
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Usage {
        user_micros: micros(usage.ru_utime),
        system_micros: micros(usage.ru_stime),
        max_rss_kib: usage.ru_maxrss as u64,
    }
}

/// Waits for exactly the process of `pidfd` if it has ended. True when it is gone, also when
/// somebody else has taken its status.
pub fn reap_pidfd(pidfd: BorrowedFd<'_>) -> bool {
    // SAFETY: an all-zero siginfo is a valid one, and the kernel fills it.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above; the descriptor is borrowed for the call.
    let result = unsafe {
        libc::waitid(
            libc::P_PIDFD,
            pidfd.as_raw_fd() as libc::id_t,
            &raw mut info,
            libc::WEXITED | libc::WNOHANG,
        )
    };
    // SAFETY: after `waitid` the field is set; 0 means that nothing was ready.
    result < 0 || unsafe { info.si_pid() } != 0
}

/// Kills a child of this process that it has not reaped yet, so the number is still its own.
pub fn kill_child(pid: i32) {
    // SAFETY: plain numbers. ESRCH is impossible for an unreaped child, EPERM (another user) is
    // tried again by the caller's loop.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Kills everything in this PID namespace but its init, which must be the caller.
pub fn kill_namespace() {
    debug_assert_eq!(pid(), 1);
    // SAFETY: plain numbers; from pid 1 of a namespace this reaches that namespace only.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Signals a process group by number; for kernels without group signals by pidfd.
pub fn kill_group(group: i32, signal: i32) -> io::Result<()> {
    debug_assert!(group > 1);
    // SAFETY: plain numbers.
    check(unsafe { libc::kill(-group, signal) }).map(drop)
}

pub fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel has just given this descriptor to this process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// `PIDFD_SIGNAL_PROCESS_GROUP`: since Linux 6.9.
pub const SIGNAL_GROUP: u32 = 1 << 2;

pub fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: i32, flags: u32) -> io::Result<()> {
    // SAFETY: no siginfo is passed; the rest are numbers.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            flags,
        )
    })
    .map(drop)
}

#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_status: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)` for the 64 bytes above.
const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;

/// The wait status of a process that somebody else has reaped. Linux 6.15 and later.
pub fn pidfd_exit_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the size in the request number is the size of the struct.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, &raw mut info) };
    (result == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_status)
}

/// Makes this process deaf to the signals by which people and terminals end programs, and to
/// broken pipes: a shim ends when its own conditions say so.
pub fn ignore_requests_to_end() {
    const IGNORED: [i32; 11] = [
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGPIPE,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    for signal in IGNORED {
        // SAFETY: a constant disposition, no handler runs.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // An ignored SIGCHLD would make the kernel throw away the worker's status.
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// All handlers to default and nothing blocked: what a fresh program expects.
pub fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: default dispositions; numbers that cannot be set are refused and stay as they are.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an empty set, initialised before use.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Blocks SIGCHLD and nothing else, and returns a descriptor that is readable while one is pending.
pub fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised before use, and the new descriptor is ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()))?;
        let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Takes what `child_signals` has collected.
pub fn drain_child_signals(fd: BorrowedFd<'_>) {
    // SAFETY: plain bytes; the size is a multiple of one record.
    unsafe {
        let mut records: [libc::signalfd_siginfo; 4] = std::mem::zeroed();
        let size = std::mem::size_of_val(&records);
        while libc::read(fd.as_raw_fd(), records.as_mut_ptr().cast(), size) > 0 {}
    }
}

/// The limit on open files: (soft, hard).
pub fn file_limit() -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the struct.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

pub fn set_file_limit(soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: the kernel reads the struct.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(drop)
}

/// A pause of the calling thread; for shims, which have nothing else to do.
pub fn pause_micros(micros: u64) {
    std::thread::sleep(std::time::Duration::from_micros(micros));
}
