"""Starting and ending a worker: ``python3 -m ostler.worker FILE.py``.

The environment says which streams to speak on. All threads, locks and signal
handlers are made inside ``serve``, so that it may also be called by a process
that was forked with the file already imported.
"""

import faulthandler
import importlib.machinery
import importlib.util
import os
import signal
import socket
import sys
import traceback

from . import context, ndjson, profiles
from .cancel import SIGNAL, free_threaded
from .errors import StreamClosed
from .functions import registry
from .service import LOST_GRACE, STOP_GRACE
from .wire import SHUTDOWN_ACK

SEND_BUFFER = 4 * 1024 * 1024  # as much of it as the system grants: fewer turns for large bodies

USAGE = "usage: ostler.worker FILE.py (started by: ostler serve FILE.py)"


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if len(argv) != 1:
        print(USAGE, file=sys.stderr)
        return 2
    streams = open_streams(os.environ)
    if streams is None:
        print("ostler: no stream to a server: OSTLER_FD and OSTLER_SOCKET are unset", file=sys.stderr)
        print(USAGE, file=sys.stderr)
        return 2
    if not load(argv[0]):
        return 1
    return serve(*streams, token=os.environ.get("OSTLER_TOKEN"))


# Streams.


def open_streams(environ):
    """(data, control or None), or None if the environment names none."""
    if environ.get("OSTLER_FD"):
        data = inherited(environ["OSTLER_FD"])
        control = environ.get("OSTLER_CTL_FD")
        return data, inherited(control) if control else None
    if environ.get("OSTLER_SOCKET"):
        return connect(environ["OSTLER_SOCKET"], environ.get("OSTLER_TOKEN"))
    return None


def inherited(number):
    sock = socket.socket(fileno=int(number))
    sock.setblocking(True)
    os.set_inheritable(sock.fileno(), False)
    return sock


def connect(path, token):
    data = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    data.connect(path)
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    control.connect(path)
    control.sendall(ndjson.control(token))
    return data, control


def offers_binary(environ):
    return "binary" in environ.get("OSTLER_WIRES", "").split(",")


def frame_limit(environ, binary):
    value = environ.get("OSTLER_MAX_FRAME" if binary else "OSTLER_MAX_LINE", "")
    return int(value) if value.isdigit() else None


# The user's file.


def load(path):
    """Import the file that declares the functions. False: it said why not."""
    path = os.path.abspath(path)
    directory, stem = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    if sys.path and sys.path[0] == os.getcwd() != directory:
        del sys.path[0]  # put there by -m; the file's own directory takes its place
    sys.path.insert(0, directory)
    sys.argv = [path]
    name = stem if stem.isidentifier() and stem not in sys.modules else "__ostler_worker__"
    try:
        run_file(path, name)
    except BaseException as error:
        report_import(path, error)
        return False
    if not registry.functions:
        print(f"ostler: {path} has no function to serve; put @ostler.function above one", file=sys.stderr)
        return False
    return True


def run_file(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Read anew each time, as Python does with the file it is started with: a cache that is told by
    # the second would serve the old code after a quick edit.
    exec(spec.loader.source_to_code(spec.loader.get_data(path), path), module.__dict__)


def report_import(path, error):
    """The traceback from the user's first frame on, if there is one."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != path:
        step = step.tb_next
    if step is None:  # a syntax error: nothing of the user's has run
        lines = traceback.format_exception_only(type(error), error)
    else:
        lines = traceback.format_exception(type(error), error, step)
    print(f"ostler: importing {path} failed", "".join(lines), sep="\n", end="", file=sys.stderr)
    sys.stderr.flush()


# Serving.


def serve(data, control=None, token=None):
    """Serve the registered functions until told to leave; the exit code."""
    binary = offers_binary(os.environ)
    try:
        worker = profiles.make(os.environ, data, control, binary, frame_limit(os.environ, binary))
    except profiles.Unserviceable as error:
        print(f"ostler: {error}", file=sys.stderr)
        return 1
    forget_streams(os.environ)
    prepare_output(data)
    context.attach(worker)
    after_fork.worker = worker
    signal.signal(signal.SIGINT, lambda *_: None)  # a terminal's Ctrl-C is the server's to judge
    worker.install()
    try:
        for hook in registry.start_hooks:
            worker.asked(hook)
    except BaseException:
        traceback.print_exc()
        return 1
    worker.control.start()
    signal.signal(signal.SIGTERM, lambda _signum, frame: worker.on_sigterm(frame))
    signal.set_wakeup_fd(worker.control.wake_write, warn_on_full_buffer=False)
    try:
        data.sendall(ready_line(worker, token))
        worker.outbox.opened = True
        worker.run()
    except (StreamClosed, OSError) as error:
        worker.leave_if_forked()
        print(f"ostler: {error}", file=sys.stderr)
    return leave(worker)


def prepare_output(data):
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)  # a line is told before its request ends
    data.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)


def forget_streams(environ):
    """Programs that a handler starts are not workers."""
    for name in ("OSTLER_FD", "OSTLER_CTL_FD", "OSTLER_SOCKET", "OSTLER_TOKEN"):
        environ.pop(name, None)


def ready_line(worker, token):
    from . import __version__

    return ndjson.ready(
        {
            "protocol": 1,
            "token": token,
            "wire": "binary" if worker.binary else "ndjson",
            "control": not worker.one_stream,
            "profile": worker.profile,
            "capacity": worker.capacity,
            "functions": [function.describe() for function in registry.functions],
            "pid": worker.pid,
            "withdraw": worker.withdraws(),
            "savesSessions": True if registry.saves_sessions else None,
            "cancelSignal": int(worker.cancel_signal) if worker.cancel_signal is not None else None,
            "traceSignal": trace_signal(),
            "sdk": f"python/{__version__}",
            "freeThreaded": free_threaded(),
            "credit": True,
        }
    )


def trace_signal():
    """The signal that makes every stack appear on stderr, even while C code holds the GIL."""
    if signal.getsignal(signal.SIGUSR2) is not signal.SIG_DFL:
        return None  # the user's program has taken it
    faulthandler.register(signal.SIGUSR2, file=2, all_threads=True)
    return int(signal.SIGUSR2)


def leave(worker):
    """Stop hooks, the acknowledgement, and out; never longer than its grace."""
    if not worker.graceful and worker.state.stopping is None:
        worker.leave_within(LOST_GRACE)  # the stream just ended
    code = 0
    for hook in registry.stop_hooks:
        try:
            worker.asked(hook)
        except BaseException:
            traceback.print_exc()
            code = 1
    worker.leave_within(STOP_GRACE)  # threads that do not end must not keep the process
    try:
        worker.close()
        worker.outbox.send(worker.encode(SHUTDOWN_ACK))
    except Exception:
        pass
    flush()
    return code


def flush():
    if sys.stdout is not None:
        sys.stdout.flush()


# Forks.


def after_fork():
    """In the child: close the streams, so that the server sees the worker's end."""
    worker, after_fork.worker = after_fork.worker, None
    if worker is None:
        return
    context.attach(None)
    signal.set_wakeup_fd(-1)
    worker.disown()
    for number in (SIGNAL, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


after_fork.worker = None
os.register_at_fork(after_in_child=after_fork)

if __name__ == "__main__":
    sys.exit(main())
