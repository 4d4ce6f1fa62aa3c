"""Calls of other pools' functions, and the wait for their results.

A call carries the request that makes it, so that it has its deadline and ends
with it. Results go to whoever waits under the call's number: ``waiting`` maps
it to what takes the frame. How a thread waits is the profile's: in the process
profile main reads the data stream itself, here in ``MainCalls``; where a
reader is always there, any thread waits for an event (``SharedCalls``).
"""

import threading

from . import wire
from .errors import Cancelled

NUDGE = 0.05  # how often main, inside a running loop, looks for a cancel


class Calls:
    def __init__(self, worker):
        self.worker = worker
        self.last = 0
        self.counting = threading.Lock()
        self.waiting = {}

    def next_id(self):
        with self.counting:
            self.last += 1
            return self.last

    def inherit(self, call):
        """Name the request that calls, and the time it has left; that request."""
        request = call.request or self.worker.current_request()
        if request is not None:
            call.meta["requestId"] = str(request.wire_id)
            remaining = request.remaining()
            if remaining is not None:
                call.meta["deadlineMs"] = max(1, int(remaining * 1000))
        return request

    def frame(self, call_id, call):
        return self.worker.encode(wire.CALL, call_id, call.flags, call.meta, call.body)

    def deliver(self, frame):
        """In the thread that reads: a result for whoever waits for it, if somebody does."""
        take = self.waiting.pop(frame.id, None)
        if take is not None:
            take(frame)

    async def awaited(self, send):
        """The frame of the call that ``send(id)`` makes, for a coroutine."""
        import asyncio

        loop = asyncio.get_running_loop()
        result = loop.create_future()

        def settle(frame):
            if not result.done():
                result.set_result(frame)

        call_id = self.next_id()
        self.waiting[call_id] = lambda frame: loop.call_soon_threadsafe(settle, frame)
        try:
            send(call_id)
            return await result
        finally:
            self.waiting.pop(call_id, None)


class MainCalls(Calls):
    """The main thread waits on the data stream itself: it polls unmasked, which
    consumes nothing, and reads masked, so that a cancel loses no byte. Any other
    thread, and every coroutine, has its answer sent on the control stream.
    """

    def __init__(self, worker):
        super().__init__(worker)
        self.state = worker.state

    def make(self, call):
        """Send the call; the frame of its result."""
        self.inherit(call)
        if self.state.on_main_thread():
            return self.from_main(call)
        return self.from_thread(call)

    async def make_async(self, call):
        if self.worker.one_stream:
            return self.make(call)
        self.inherit(call)
        return await self.awaited(lambda call_id: self.send_on_control(call_id, call))

    def from_main(self, call):
        worker, state = self.worker, self.state
        call_id = self.masked(self.begin, call)
        while True:
            found = self.masked(worker.taken, wire.CALL_RESULT, call_id)
            state.check()  # a cancel that came while masked has no other chance
            if found:
                return found[0]
            if state.task_cancel is None:
                worker.inbox.wait()
            elif state.is_cancelled(state.current):
                # Inside a running loop a cancel raises nothing; here it may.
                raise Cancelled(state.stopping or "cancelled")
            elif not worker.inbox.wait(NUDGE):
                continue
            self.masked(worker.pump)

    def begin(self, call):
        call_id = self.next_id()
        self.worker.inbox.enter()
        self.worker.outbox.send(self.frame(call_id, call))
        return call_id

    def masked(self, action, *args):
        state = self.state
        state.masked += 1
        try:
            return action(*args)
        finally:
            state.masked -= 1

    def from_thread(self, call):
        if self.worker.one_stream:
            raise RuntimeError("ostler.call from a thread needs a control stream")
        call_id, came, result = self.next_id(), threading.Event(), []
        self.waiting[call_id] = lambda frame: (result.append(frame), came.set())
        try:
            self.send_on_control(call_id, call)
            came.wait()
        finally:
            self.waiting.pop(call_id, None)
        return result[0]

    def send_on_control(self, call_id, call):
        call.meta["answerOn"] = "control"
        self.worker.control.send(self.frame(call_id, call))


class SharedCalls(Calls):
    """For profiles that always have a reader: calls and results on the data stream."""

    def make(self, call):
        """Send the call; the frame of its result. A cancel of the request ends the wait."""
        worker = self.worker
        worker.may_block(*call.spelling)
        request = self.inherit(call)
        turn = None if request is None or call.patient else request.turn
        leave = worker.shielded()  # woken by the SDK; nothing has to strike in here
        try:
            frame = self.result(turn, call)
        finally:
            if leave is not None:
                leave()
        if frame is None:
            raise Cancelled(worker.state.stopping or "cancelled")
        return frame

    def result(self, turn, call):
        """None: the request was cancelled first."""
        call_id, woken, result = self.next_id(), threading.Event(), []
        self.waiting[call_id] = lambda frame: (result.append(frame), woken.set())
        if turn is not None:
            turn.waiters.add(woken.set)
        try:
            self.send(call_id, call)
            while not result and not (turn is not None and turn.cancelled):
                woken.wait()
                woken.clear()
        finally:
            self.waiting.pop(call_id, None)
            if turn is not None:
                turn.waiters.discard(woken.set)
        return result[0] if result else None

    async def make_async(self, call):
        self.inherit(call)
        return await self.awaited(lambda call_id: self.send(call_id, call))

    def send(self, call_id, call):
        self.worker.outbox.send(self.frame(call_id, call))
