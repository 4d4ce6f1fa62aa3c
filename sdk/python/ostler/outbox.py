"""Everything that a worker writes.

In the process profile frames are written by the main thread on the data stream,
disarmed or masked: half a frame would be the end of the stream. Other threads
write on the control stream; where there is none, a lock makes the one stream do
for all. In the other profiles everybody writes the data stream under a lock.
"""

import threading

from . import wire


class Outbox:
    def __init__(self, data, control, state, encode, binary, limit):
        self.data = data
        self.control = control
        self.state = state
        self.encode = encode
        self.binary = binary
        self.limit = limit
        self.lock = threading.Lock() if control.stream is None else None
        self.opened = False

    def send(self, frame):
        if self.lock is None:
            self.data.sendall(frame)
        else:
            with self.lock:
                self.data.sendall(frame)

    def send_body(self, kind, rid, flags, body, count=0, meta=None):
        if len(body) > wire.SMALL:
            self.send(self.large(kind, rid, flags, body, count, meta))
        elif self.binary and meta is None:
            size = wire.HEAD - 4 + len(body)
            self.send(wire.HEADER.pack(size, kind, flags, 0, rid, 0, count) + body)
        else:
            self.send(self.encode(kind, rid, flags, meta, body, count))

    def large(self, kind, rid, flags, body, count=0, meta=None):
        """Begin to send a large frame and return what is left of it.

        Header and body go out together without being joined first, which for
        a megabyte would take as long as sending it.
        """
        if not self.binary:
            frame = self.encode(kind, rid, flags, meta, body, count)
            self.check(len(frame))
            return frame
        head = self.head(kind, rid, flags, body, count, meta)
        if self.lock is not None:
            return head + body
        return send_together(self.data, head, body)

    def head(self, kind, rid, flags, body, count, meta):
        """The frame up to its body, which is not copied into it."""
        head = self.encode(kind, rid, flags, meta, b"", count)
        size = len(head) - 4 + len(body)
        self.check(size)
        return size.to_bytes(4, "little") + head[4:]

    def check(self, size):
        if size > self.limit:
            raise ValueError(
                f"a result of {size} bytes is over the limit of {self.limit}; "
                "stream it, or raise max_result"
            )

    def emit(self, kind, rid, flags=0, meta=None, body=b""):
        """Say something from user code, on the stream that this thread may write."""
        if not self.opened:
            return
        frame = self.encode(kind, rid, flags, meta, body)
        if self.state.on_main_thread():
            self.send_masked(frame)
            self.state.check()
        elif self.lock is None:
            self.control.send(frame)
        else:
            self.send(frame)

    def send_masked(self, frame):
        state = self.state
        state.masked += 1
        try:
            self.send(frame)
        finally:
            state.masked -= 1


class SharedOutbox(Outbox):
    """One data stream that several threads write, a whole frame at a time."""

    def __init__(self, data, control, state, encode, binary, limit):
        super().__init__(data, control, state, encode, binary, limit)
        self.lock = threading.Lock()

    def large(self, kind, rid, flags, body, count=0, meta=None):
        """The parts of a large frame, for ``send``."""
        if not self.binary:
            return super().large(kind, rid, flags, body, count, meta)
        return self.head(kind, rid, flags, body, count, meta), body

    def send(self, frame):
        with self.lock:
            self.write(frame)

    def write(self, frame):
        """Under the lock."""
        if type(frame) is tuple:
            self.data.sendall(send_together(self.data, *frame))
        else:
            self.data.sendall(frame)

    def send_last(self, turn, frame):
        """The terminal frame of ``turn``: nothing is said for it afterwards."""
        with self.lock:
            turn.answered = True
            self.write(frame)

    def emit(self, kind, rid, flags=0, meta=None, body=b"", turn=None):
        if not self.opened:
            return
        with self.lock:
            if turn is not None and turn.answered:
                if kind != wire.LOG:
                    return
                rid = 0  # a line said too late is the worker's own
            self.write(self.encode(kind, rid, flags, meta, body))


def send_together(sock, head, body):
    """Send both as far as one call goes, the head in any case; what is left of the body."""
    sent = sock.sendmsg([head, body])
    if sent < len(head):
        sock.sendall(head[sent:])
        sent = len(head)
    return memoryview(body)[sent - len(head) :]
