"""A server just real enough to hold a worker process by its streams."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from collections import deque

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, PACKAGE)

from ostler import ndjson, wire  # noqa: E402

# A thread other than main can be interrupted: see ostler/place.py.
STRIKES = sys.version_info >= (3, 10) and getattr(sys, "_is_gil_enabled", lambda: True)()

# Only ever reached by a test that fails.
PATIENCE = 30.0


class Stream:
    """One socket, read frame by frame."""

    def __init__(self, sock, decoder, encode):
        self.sock = sock
        self.sock.settimeout(PATIENCE)
        self.decoder = decoder
        self.encode = encode
        self.frames = deque()

    def send(self, *args, **kwargs):
        self.sock.sendall(self.encode(*args, **kwargs))

    def next(self):
        while not self.frames:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError("the worker closed its stream")
            self.frames.extend(self.decoder.feed(data))
        return self.frames.popleft()

    def until(self, *kinds):
        """The next frame of one of ``kinds``; others are dropped."""
        while True:
            frame = self.next()
            if frame.kind in kinds:
                return frame

    def ended(self):
        """True once the peer has closed, whatever it sent before."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True


TERMINAL = (wire.COMPLETE, wire.ERROR, wire.CANCELLED)


class WorkerProcess:
    """A real worker, running ``source`` as its file."""

    def __init__(self, source, wires="binary,ndjson", control=True, environ=None, expect_ready=True):
        self.folder = tempfile.mkdtemp(prefix="ostler-sdk-")
        self.path = os.path.join(self.folder, "served.py")
        with open(self.path, "w") as file:
            file.write("import ostler\n" + textwrap.dedent(source))
        self.binary = "binary" in wires
        data, far = socket.socketpair()
        control_end, far_control = socket.socketpair()
        keep = [far.fileno()] + ([far_control.fileno()] if control else [])
        settings = {
            **{k: v for k, v in os.environ.items() if not k.startswith("OSTLER_")},
            "PYTHONPATH": PACKAGE,
            "OSTLER_FD": str(far.fileno()),
            "OSTLER_WIRES": wires,
            **({"OSTLER_CTL_FD": str(far_control.fileno())} if control else {}),
            **(environ or {}),
        }
        self.open(data, control_end)
        try:
            self.launch(settings, keep)
        except OSError:
            self.clear()
            raise
        finally:
            far.close()
            far_control.close()
        if expect_ready:
            self.read_ready_or_close()

    def launch(self, settings, keep):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ostler.worker", self.path],
            env=settings,
            pass_fds=keep,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.stdout = Lines(self.process.stdout)
        self.stderr = Lines(self.process.stderr)

    def open(self, data, control):
        codec = wire if self.binary else ndjson
        self.data = Stream(data, codec.Decoder(), codec.encode)
        self.control = Stream(control, codec.Decoder(), codec.encode)

    def read_ready_or_close(self):
        try:
            self.read_ready()
        except BaseException:
            self.close()
            raise

    def read_ready(self):
        line = b""
        while not line.endswith(b"\n"):
            piece = self.data.sock.recv(1)
            if not piece:
                raise EOFError("the worker ended before it was ready: " + self.stderr.text())
            line += piece
        self.ready = json.loads(line)
        self.index = {entry["name"]: i for i, entry in enumerate(self.ready["functions"])}
        self.last_id = 0

    def query(self, function, *args, body=None, flags=0, deadline_ms=0, **meta):
        """Send a query; its id."""
        self.last_id += 1
        if body is None:
            body = json.dumps(list(args)).encode() if args else b""
        code = self.index.get(function, wire.NAMED) if self.binary else wire.NAMED
        if code == wire.NAMED:
            meta["function"] = function
        self.data.send(
            wire.QUERY, self.last_id, flags, meta or None, body, count=deadline_ms, code=code
        )
        return self.last_id

    def call(self, function, *args, **options):
        """Query and wait: the terminal frame."""
        rid = self.query(function, *args, **options)
        frame = self.data.until(*TERMINAL)
        assert frame.id == rid, (frame.id, rid)
        return frame

    def value(self, function, *args, **options):
        frame = self.call(function, *args, **options)
        assert frame.kind == wire.COMPLETE, frame.meta
        return bytes(frame.body) if frame.flags & wire.RAW else json.loads(frame.body or b"null")

    def answers(self, *rids):
        """The terminal frames of ``rids``, by id; each has exactly one, and it is its last frame."""
        found = {}
        while len(found) < len(rids):
            frame = self.data.next()
            assert frame.id not in found or frame.kind == wire.CALL, (frame.kind, frame.id)
            if frame.kind in TERMINAL:
                assert frame.id in rids, (frame.id, rids)
                found[frame.id] = frame
        return found

    def cancel(self, rid, signalled=True):
        """As the server does it: the message, then the signal if one was asked for."""
        self.control.send(wire.CANCEL, rid)
        if signalled and "cancelSignal" in self.ready:
            os.kill(self.process.pid, self.ready["cancelSignal"])

    def pinged(self):
        """True once a ping is answered: whatever was sent on control before it was heard."""
        self.control.send(wire.PING, 77)
        frame = self.control.next()
        assert (frame.kind, frame.id) == (wire.PONG, 77), (frame.kind, frame.id)
        return True

    def wait(self):
        return self.process.wait(PATIENCE)

    def clear(self):
        self.data.sock.close()
        self.control.sock.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self):
        self.data.sock.close()
        self.control.sock.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the worker outlived its streams") from None
        finally:
            self.stdout.close()
            self.stderr.close()
            self.clear()


class Lines:
    """Collects a pipe's lines on a thread, so that the worker never blocks on it."""

    def __init__(self, pipe):
        self.pipe = pipe
        self.lines = []
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.pipe:
            with self.changed:
                self.lines.append(line.decode())
                self.changed.notify_all()

    def text(self):
        """Everything, once the pipe has ended."""
        self.thread.join(PATIENCE)
        return "".join(self.lines)

    def wait_for(self, part):
        with self.changed:
            found = lambda: any(part in line for line in self.lines)  # noqa: E731
            assert self.changed.wait_for(found, PATIENCE), f"{part!r} not in {self.lines}"

    def close(self):
        self.thread.join(PATIENCE)
        self.pipe.close()


def strikes(test):
    return unittest.skipUnless(STRIKES, "this Python lets no thread be interrupted")(test)


def environment(profile, capacity, checks="off"):
    """What the server would set for a worker of that profile."""
    return {
        "OSTLER_PROFILE": profile,
        "OSTLER_CAPACITY": str(capacity),
        "OSTLER_THREAD_SAFETY": checks,
    }


class WorkerTest(unittest.TestCase):
    """Starts workers that are gone when the test is."""

    def worker(self, source, **options):
        worker = WorkerProcess(source, **options)
        self.addCleanup(worker.close)
        return worker


__all__ = [
    "PACKAGE",
    "PATIENCE",
    "STRIKES",
    "TERMINAL",
    "Stream",
    "WorkerProcess",
    "WorkerTest",
    "environment",
    "ndjson",
    "strikes",
    "wire",
]
