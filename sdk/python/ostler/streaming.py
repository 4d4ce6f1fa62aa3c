"""A generator sent chunk by chunk, never further than its credit.

The generator's code runs armed, one step at a time; chunks are sent disarmed.
While credit is out the main thread waits on the data stream itself.
"""

from inspect import isasyncgen
from types import GeneratorType

from . import wire
from .errors import Cancelled
from .results import encoded
from .turns import DEFAULT_BYTES, DEFAULT_CHUNKS

CLOSE_LIMIT = 1.0  # seconds a cancelled generator may take to clean up


def is_stream(value):
    return isinstance(value, GeneratorType) or isasyncgen(value)


class Stream:
    def __init__(self, worker, rid, source, credit):
        self.worker = worker
        self.state = worker.state
        self.rid = rid
        self.source = source
        self.sent = 0
        self.chunks = credit.get("chunks", DEFAULT_CHUNKS)
        self.room = credit.get("bytes", DEFAULT_BYTES)
        # The short way for small chunks, where only this thread writes the stream.
        self.write = worker.data.sendall if worker.binary and not worker.one_stream else None
        self.step = source.__next__ if not isasyncgen(source) else self.async_step

    def async_step(self):
        return self.worker.coroutines.run(self.source.__anext__())

    def run(self):
        """Send all chunks; the terminal frame comes back, for the caller to send."""
        state, rid, step = self.state, self.rid, self.step
        cancelled = state.cancelled
        try:
            try:
                while True:
                    if self.chunks <= 0 or self.room <= 0:
                        self.refill()
                    state.armed = rid
                    if cancelled and state.is_cancelled(rid):
                        state.strike()
                    item = step()
                    state.armed = 0
                    self.send(item)
            except (StopIteration, StopAsyncIteration) as end:
                state.armed = 0
                value = getattr(end, "value", None)
                return self.worker.completed(rid, value, self.sent)
            except BaseException as error:
                state.armed = 0
                return self.abandon(error)
        except Cancelled as error:
            state.armed = 0
            return self.abandon(error)

    def send(self, item):
        flags, body, meta = encoded(item)
        size = len(body)
        if self.write is not None and meta is None and size <= wire.SMALL:
            head = wire.HEADER.pack(size + 20, wire.MESSAGE, flags, 0, self.rid, 0, self.sent)
            self.write(head + body)
        else:
            self.worker.outbox.send_body(wire.MESSAGE, self.rid, flags, body, self.sent, meta)
        self.chunks -= 1
        self.room -= size
        self.sent += 1

    def refill(self):
        while True:
            for frame in self.worker.taken(wire.CREDIT, self.rid):
                self.chunks += frame.chunks
                self.room += frame.count
            if self.chunks > 0 and self.room > 0:
                return
            self.wait()

    def wait(self):
        """Armed only around the wait, which consumes nothing; the read is not torn."""
        state = self.state
        state.armed = self.rid
        if state.is_cancelled(self.rid):
            state.strike()
        self.worker.inbox.wait()
        state.armed = 0
        self.worker.pump()

    def abandon(self, error):
        self.close()
        return self.worker.failed(self.rid, error, self.sent)

    def close(self):
        """Let the generator clean up, for a limited time."""
        if getattr(self.source, "gi_frame", self) is None:
            return
        state = self.state
        state.later(CLOSE_LIMIT, self.overdue)
        try:
            try:
                state.closing = self.rid
                self.close_source()
                state.closing = 0
            except BaseException:
                state.closing = 0
        except Cancelled:
            state.closing = 0

    def close_source(self):
        if isasyncgen(self.source):
            self.worker.coroutines.run(self.source.aclose())
        else:
            self.source.close()

    def overdue(self):
        """On the control thread, when the limit is over."""
        if self.state.closing == self.rid:
            self.state.overdue = self.rid
            self.state.poke()
