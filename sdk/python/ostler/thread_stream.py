"""A generator sent chunk by chunk from a thread of its own.

As streaming.py, for several at a time: credit comes to the turn by way of the
reader, and the thread waits for it without reading anything itself.
"""

import threading
from inspect import isasyncgen

from . import wire
from .errors import Cancelled
from .results import encoded
from .streaming import CLOSE_LIMIT


class ThreadStream:
    def __init__(self, worker, place, turn, within, source):
        self.worker = worker
        self.place = place
        self.turn = turn
        self.within = within
        self.source = source
        self.sent = 0
        self.asynchronous = isasyncgen(source)

    def run(self):
        """Send all chunks; the terminal frame comes back, for the caller to send."""
        place, turn = self.place, self.turn
        try:
            try:
                while True:
                    self.wait_for_credit()
                    self.send(self.step())
            except (StopIteration, StopAsyncIteration) as end:
                place.disarm()
                return self.worker.completed(turn.rid, getattr(end, "value", None), self.sent)
            except BaseException as error:
                place.disarm()
                return self.abandon(error)
        except Cancelled as error:
            place.disarm()
            return self.abandon(error)

    def step(self):
        """The next value of the generator."""
        place, turn = self.place, self.turn
        if self.asynchronous:
            self.check()
            return self.within(self.worker.awaited, turn, self.source.__anext__())
        place.arm(turn.rid)
        self.check()
        item = self.within(self.source.__next__)
        place.disarm()
        return item

    def check(self):
        if self.turn.cancelled:
            raise Cancelled(self.worker.state.stopping or "cancelled")

    def wait_for_credit(self):
        turn = self.turn
        if turn.may_send():
            return
        woken = threading.Event()
        turn.waiters.add(woken.set)
        try:
            while not turn.may_send():
                self.check()
                woken.wait()
                woken.clear()
        finally:
            turn.waiters.discard(woken.set)

    def send(self, item):
        flags, body, meta = encoded(item)
        self.worker.outbox.send_body(wire.MESSAGE, self.turn.rid, flags, body, self.sent, meta)
        self.worker.state.spend(self.turn, len(body))
        self.sent += 1

    def abandon(self, error):
        self.close()
        return self.worker.failed(self.turn.rid, error, self.sent)

    def close(self):
        """Let the generator clean up, for a limited time."""
        place, turn, key = self.place, self.turn, -self.turn.rid
        if getattr(self.source, "gi_frame", self) is None:
            return
        self.worker.control.later(CLOSE_LIMIT, lambda: self.worker.pursue(turn, key))
        try:
            try:
                place.arm(key)
                self.close_source()
                place.disarm()
            except BaseException:
                place.disarm()
        except Cancelled:
            place.disarm()

    def close_source(self):
        if self.asynchronous:
            self.place.disarm()
            self.within(self.worker.awaited, self.turn, self.source.aclose())
        else:
            self.within(self.source.close)
