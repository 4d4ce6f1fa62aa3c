"""The fork server: ``python3 -m ostler.forkserver [--preload MODULE]... [FILE.py]``.

It imports once what all workers need, then forks a worker for every request of
the server. Each worker gets a shim of its own between itself and this process:

    this process -- fork --> M, becomes the shim program by exec
                             M -- fork --> W, the worker

Started by the root shim, with 3 the channel to the server, 4 the channel to the
root shim, 5 a pidfd of the server and 6 the shim program. It keeps one thread
and no other descriptor, because every worker would inherit them.
"""

import argparse
import ctypes
import fcntl
import gc
import importlib
import os
import random
import select
import signal
import socket
import struct
import sys
import traceback

CHANNEL, REGISTRAR, SERVER, SHIM = 3, 4, 5, 6

# Messages: kind, flags, four numbers, length of the text, text.
MESSAGE = struct.Struct("<II4qI128s")
REFUSED, REGISTER, FORK, READY, UNFIT = 23, 40, 50, 51, 52
DATA, CONTROL, CGROUP, NAMESPACE, USER_NAMESPACE, OWN_PROC = (1 << bit for bit in range(6))
STAGE_FORK, STAGE_ARM = 1, 2

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 2, 4, 8, 0x4000, 0x80000

libc = ctypes.CDLL(None, use_errno=True)


def main(argv=None):
    options = parse(sys.argv[1:] if argv is None else argv)
    target = prepare(options)
    if target is None:
        return 1
    worker = serve()
    if worker is None:
        return 0
    # From here on this is a worker, which ends as any interpreter does.
    worker.settle()
    return target()


def parse(argv):
    parser = argparse.ArgumentParser(prog="ostler.forkserver")
    parser.add_argument("--preload", action="append", default=[], metavar="MODULE")
    parser.add_argument("--target", default="ostler.worker:main", metavar="MODULE:FUNCTION")
    parser.add_argument("file", nargs="?")
    return parser.parse_args(argv)


# Before the first fork.


def prepare(options):
    """Import everything; what a worker runs, or None after the server was told why not."""
    try:
        for module in options.preload:
            importlib.import_module(module)
        target = loaded_file(options.file) if options.file else find(options.target)
        problem = unfitness()
    except BaseException as error:
        traceback.print_exc()
        target, problem = None, f"preload failed: {type(error).__name__}: {error}"
    if problem:
        send(CHANNEL, UNFIT, text=problem)
        return None
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    gc.freeze()  # a collection in a worker would copy every page that it marks
    send(CHANNEL, READY)
    return target


def loaded_file(path):
    from . import worker

    if not worker.load(path):
        raise ImportError(f"{path} cannot be served")
    return lambda: worker.serve(*worker.open_streams(os.environ), token=os.environ.get("OSTLER_TOKEN"))


def find(name):
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def unfitness():
    """Why workers must not be forked from this process, or None."""
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        return f"preload started {threads - 1} threads, which a forked worker would lack"
    extra = [fd for fd in open_descriptors() if fd > SHIM]
    if extra:
        names = ", ".join(f"{fd} ({os.readlink(f'/proc/self/fd/{fd}')})" for fd in extra)
        return f"preload left descriptors open that all workers would share: {names}"
    return None


def open_descriptors():
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue  # that of the listing itself
        found.append(int(name))
    return found


# Messages.


def send(fd, kind, numbers=(), text="", fds=()):
    numbers = (*numbers, 0, 0, 0, 0)[:4]
    text = text.encode(errors="replace")[:127]
    sock = socket.socket(fileno=os.dup(fd))
    try:
        socket.send_fds(sock, [MESSAGE.pack(kind, 0, *numbers, len(text), text)], fds)
    except OSError:
        pass  # nobody listens any more: the end of the channel will say so
    finally:
        sock.close()


class Request:
    """One worker to be forked: its message and its descriptors."""

    def __init__(self, data, fds):
        _, self.flags, self.cgroup_number, *_, length, text = MESSAGE.unpack(data)
        self.name = text[:length].decode(errors="replace")
        self.fds = fds
        rest = list(fds)
        self.blueprint, self.report, self.stdout, self.stderr = (rest.pop(0) for _ in range(4))
        self.streams = [rest.pop(0) for bit in (DATA, CONTROL) if self.flags & bit]
        self.cgroup = rest.pop(0) if self.flags & CGROUP else None

    def refuse(self, stage, error):
        send(self.report, REFUSED, (stage, getattr(error, "errno", None) or 5))

    def close(self):
        for fd in self.fds:
            os.close(fd)


def receive(channel):
    """The next request; None when the server is gone."""
    while True:
        data, fds, _, _ = socket.recv_fds(channel, MESSAGE.size, 8)
        if not data:
            return None
        if len(data) == MESSAGE.size and MESSAGE.unpack(data)[0] == FORK and len(fds) >= 4:
            return Request(data, fds)
        for fd in fds:
            os.close(fd)


# Forking.


def serve():
    """Fork what is asked for until the server is gone (None); in a worker, that worker."""
    channel = socket.socket(fileno=os.dup(CHANNEL))
    wake_in, wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
    namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
    poll = select.poll()
    for fd in (channel.fileno(), SERVER, wake_in):
        poll.register(fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if SERVER in ready:
            return None
        if wake_in in ready:
            drain(wake_in)
            reap()
        if channel.fileno() in ready:
            try:
                request = receive(channel)
            except ConnectionResetError:
                request = None
            if request is None:
                return None
            worker = fork(request, namespace)
            if worker is not None:
                return worker
            # Held any longer, the next worker would inherit them and this one's end go unseen.
            request.close()


def drain(fd):
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def fork(request, namespace):
    """In the worker, the worker; in this process None."""
    try:
        if request.flags & USER_NAMESPACE:
            return fork_through_intermediate(request)
        if request.flags & NAMESPACE:
            return fork_into_namespace(request, namespace)
        return fork_shim(request)
    except OSError as error:
        request.refuse(STAGE_FORK, error)
        return None


def fork_shim(request):
    pid = os.fork()
    if pid == 0:
        return become_shim(request)
    register(request, pid)
    return None


def fork_into_namespace(request, namespace):
    check(libc.unshare(CLONE_NEWPID))
    try:
        worker = fork_shim(request)
    except OSError:
        leave_namespace(namespace)
        raise
    if worker is None:
        leave_namespace(namespace)
    return worker


def leave_namespace(own):
    """Or else every later fork would join, or fail in, the namespace of this one."""
    if libc.setns(own, CLONE_NEWPID) != 0:
        os._exit(1)


def fork_through_intermediate(request):
    """The maker of a user namespace cannot come back from it, so another process makes it."""
    uid, gid = os.geteuid(), os.getegid()
    pid = os.fork()
    if pid:
        return None
    try:
        check(libc.unshare(CLONE_NEWUSER | CLONE_NEWPID))
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{uid} {uid} 1")
        write("/proc/self/gid_map", f"{gid} {gid} 1")
        worker = fork_shim(request)
    except OSError as error:
        request.refuse(STAGE_ARM, error)
        os._exit(1)
    if worker is None:
        os._exit(0)
    return worker


def register(request, pid):
    """The root shim must know the shim before it may fall to it."""
    pidfd = os.pidfd_open(pid)
    send(REGISTRAR, REGISTER, (request.cgroup_number,), fds=[pidfd, request.report])
    os.close(pidfd)


# In M.


def become_shim(request):
    """Fork the worker, then exec the shim. Returns in the worker only."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would lose the worker's status
        os.setsid()
        fdinfo = os.open("/proc/self/fdinfo", os.O_RDONLY | os.O_DIRECTORY)
        if request.flags & NAMESPACE:
            own_proc(request.flags & OWN_PROC)
        else:
            check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        shim = os.getpid()
        worker = os.fork()
        if worker == 0:
            return Worker(request, shim)
        exec_shim(request, fdinfo, worker)
    except BaseException as error:
        request.refuse(STAGE_ARM, error)
        os._exit(1)


def own_proc(wanted):
    if not wanted:
        return
    check(libc.unshare(CLONE_NEWNS))
    check(libc.mount(b"none", b"/", b"none", MS_REC | MS_SLAVE, None))
    check(libc.mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None))


def exec_shim(request, fdinfo, worker):
    program = fcntl.fcntl(SHIM, fcntl.F_DUPFD_CLOEXEC, 16)
    null = os.open(os.devnull, os.O_RDWR)
    kept = [null, null, null, request.report, SERVER, fdinfo]
    if request.cgroup is not None:
        kept.append(request.cgroup)
    place(kept)  # the shim closes all others
    if request.cgroup is None:
        close_quietly(len(kept))
    os.execve(program, [f"ostler: shim {request.name}", str(worker)], {})


# In W.


class Worker:
    """A forked process on its way to be a worker."""

    def __init__(self, request, shim):
        self.request = request
        self.shim = shim

    def settle(self):
        """Become like a process that was started alone."""
        check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        if os.getppid() != self.shim:
            os._exit(1)  # the shim died before the signal was armed
        os.setsid()
        default_signals()
        best_effort("/proc/self/oom_score_adj", "500")
        request = self.request
        if request.cgroup is not None:
            fd = os.open("cgroup.procs", os.O_WRONLY, dir_fd=request.cgroup)
            os.write(fd, b"0")
        argv, env, cwd = read_blueprint(request.blueprint)
        null = os.open(os.devnull, os.O_RDONLY)
        kept = [null, request.stdout, request.stderr, *request.streams]
        place(kept)
        close_from(len(kept))
        adopt(argv, env, cwd)
        reseed()


def default_signals():
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as every interpreter starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def read_blueprint(fd):
    """(argv, environment, directory or None), as the server wrote them."""
    size = os.fstat(fd).st_size
    data = os.pread(fd, size, 0)
    counts = struct.unpack_from("<3I", data)
    strings = iter(data[12:].split(b"\0"))
    argv, env, cwd = ([next(strings) for _ in range(count)] for count in counts)
    return argv, env, cwd[0] if cwd else None


def adopt(argv, env, cwd):
    if cwd is not None:
        os.chdir(cwd)
    os.environ.clear()
    for variable in env:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    if argv:
        sys.argv = [os.fsdecode(argument) for argument in argv]


def reseed():
    """Copies of one generator would give every worker the same numbers."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


# Both.


def place(fds):
    """Put copies of these descriptors on 0, 1, 2, …, open across exec."""
    copies = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 32) for fd in fds]
    for target, copy in enumerate(copies):
        os.dup2(copy, target)
        os.close(copy)


def close_from(first):
    """The few that are open, whatever the limit is."""
    for fd in open_descriptors():
        if fd >= first:
            os.close(fd)


def close_quietly(fd):
    try:
        os.close(fd)
    except OSError:
        pass


def check(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def best_effort(path, text):
    try:
        write(path, text)
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main())
