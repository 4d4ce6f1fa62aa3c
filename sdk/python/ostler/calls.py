"""Calls of other pools' functions, and the wait for their results.

The main thread waits on the data stream itself: it polls unmasked, which
consumes nothing, and reads masked, so that a cancel loses no byte. Any other
thread has its answer sent on the control stream.
"""

import threading

from . import wire


class Calls:
    def __init__(self, worker):
        self.worker = worker
        self.state = worker.state
        self.last = 0
        self.counting = threading.Lock()
        self.waiting = {}

    def next_id(self):
        with self.counting:
            self.last += 1
            return self.last

    def make(self, meta, flags, body):
        """Send the call; the frame of its result."""
        request = self.worker.current_request()
        if request is not None:
            meta["requestId"] = str(request.wire_id)
            remaining = request.remaining()
            if remaining is not None:
                meta["deadlineMs"] = max(1, int(remaining * 1000))
        if self.state.on_main_thread():
            return self.from_main(meta, flags, body)
        return self.from_thread(meta, flags, body)

    def from_main(self, meta, flags, body):
        worker = self.worker
        call_id = self.masked(self.begin, meta, flags, body)
        while True:
            found = self.masked(worker.taken, wire.CALL_RESULT, call_id)
            self.state.check()  # a cancel that came while masked has no other chance
            if found:
                return found[0]
            worker.inbox.wait()
            self.masked(worker.pump)

    def begin(self, meta, flags, body):
        call_id = self.next_id()
        self.worker.inbox.enter()
        self.worker.outbox.send(self.worker.encode(wire.CALL, call_id, flags, meta, body))
        return call_id

    def masked(self, action, *args):
        state = self.state
        state.masked += 1
        try:
            return action(*args)
        finally:
            state.masked -= 1

    def from_thread(self, meta, flags, body):
        worker = self.worker
        if worker.one_stream:
            raise RuntimeError("ostler.call from a thread needs a control stream")
        call_id = self.next_id()
        meta["answerOn"] = "control"
        slot = self.waiting[call_id] = [threading.Event(), None]
        try:
            worker.control.send(worker.encode(wire.CALL, call_id, flags, meta, body))
            slot[0].wait()
        finally:
            del self.waiting[call_id]
        return slot[1]

    def deliver(self, frame):
        """On the control thread: a result for one of the waiting threads."""
        slot = self.waiting.get(frame.id)
        if slot is not None:
            slot[1] = frame
            slot[0].set()
