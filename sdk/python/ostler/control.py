"""The control thread: what must be heard while a handler runs.

It blocks in poll on the control stream, on the hang-up of the data stream,
and on a pipe by which the main thread asks for something to be done a little
later. The stream may also be drained by the main thread's signal handler, so
reading it is guarded by a lock that the handler only ever tries.
"""

import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections import deque
from time import monotonic

from . import wire
from .errors import StreamClosed


class Control:
    def __init__(self, state, data, stream, decoder, encode):
        self.state = state
        self.data = data
        self.stream = stream
        self.decoder = decoder
        self.encode = encode
        self.reading = threading.Lock()
        self.writing = threading.Lock()
        self.handlers = {}
        self.on_lost = lambda reason: None
        self.on_terminate = lambda: None
        self.asked = deque()
        self.timers = []
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)

    def start(self):
        threading.Thread(target=self.run_or_exit, name="ostler-control", daemon=True).start()

    def run_or_exit(self):
        """A worker that can no longer be reached must not live on."""
        try:
            self.run()
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def later(self, delay, action):
        """Run ``action`` on the control thread after ``delay``. Safe in a signal handler."""
        self.asked.append((monotonic() + delay, action))
        try:
            os.write(self.wake_write, b"\0")
        except BlockingIOError:
            pass  # it is awake already

    def send(self, frame):
        """Write to the control stream, from any thread."""
        with self.writing:
            self.stream.sendall(frame)

    def run(self):
        poller = select.poll()
        poller.register(self.wake_read, select.POLLIN)
        poller.register(self.data, 0)  # hang-up only: data does not wake this thread
        if self.stream is not None:
            poller.register(self.stream, select.POLLIN)
        while True:
            for fd, event in poller.poll(self.until_next_timer()):
                if fd == self.wake_read:
                    self.woken(os.read(self.wake_read, 4096))
                elif not self.serve(fd, event):
                    poller.unregister(fd)
            self.run_timers()

    def woken(self, numbers):
        """The pipe is also the wake-up descriptor: each byte may be a signal's number.

        Main may be in a call that lets no Python handler run; this thread can
        begin to stop without it.
        """
        if signal.SIGTERM in numbers:
            self.on_terminate()

    def serve(self, fd, _event):
        """False: that stream is done with."""
        if self.stream is not None and fd == self.stream.fileno():
            with self.reading:
                return self.drain()
        self.on_lost("the server closed the data stream")
        return False

    def try_drain(self):
        """For the signal handler: if the control thread is at it, it will see to it."""
        if self.stream is not None and self.reading.acquire(False):
            try:
                self.drain()
            finally:
                self.reading.release()

    def drain(self):
        while True:
            try:
                data = self.stream.recv(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return True
            except OSError:
                data = b""
            try:
                if not data:
                    raise StreamClosed("the server closed the control stream")
                for frame in self.decoder.feed(data):
                    self.handle(frame)
            except (StreamClosed, ValueError, OSError) as error:
                self.on_lost(str(error))
                return False

    def handle(self, frame):
        if frame.kind == wire.PING:
            self.send(self.encode(wire.PONG, frame.id))
        elif frame.kind in (wire.CANCEL, wire.WITHDRAW):
            if self.give_back(frame):
                self.send(self.encode(wire.CANCELLED, frame.id, wire.NOT_STARTED))
        elif frame.kind == wire.TRACE:
            self.send(self.encode(wire.TRACE_RESULT, frame.id, body=stacks()))
        elif frame.kind in self.handlers:
            self.handlers[frame.kind](frame)

    def give_back(self, frame):
        """True: the request had not begun, and it is ours to say so."""
        if frame.kind == wire.CANCEL:
            return self.state.on_cancel(frame.id)
        return self.state.on_withdraw(frame.id)

    def until_next_timer(self):
        self.adopt_asked()
        if not self.timers:
            return None
        return max(0, min(at for at, _ in self.timers) - monotonic()) * 1000

    def adopt_asked(self):
        while self.asked:
            self.timers.append(self.asked.popleft())

    def run_timers(self):
        self.adopt_asked()
        now = monotonic()
        due = [action for at, action in self.timers if at <= now]
        self.timers = [(at, action) for at, action in self.timers if at > now]
        for action in due:
            action()

    def close(self):
        """After a fork: the child has no part in any of this."""
        for fd in (self.wake_read, self.wake_write):
            os.close(fd)
        if self.stream is not None:
            self.stream.close()


def stacks():
    """The stacks of all threads, as text."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"thread {names.get(ident, ident)}\n")
        parts.extend(traceback.format_stack(frame))
    return "".join(parts).encode("utf-8", "backslashreplace")[:1048576]
