"""What the thread and the async profile share: several requests at a time.

The main thread reads the data stream and the control thread the other, so both
are always heard; handlers run elsewhere. ``serve`` runs one turn in the thread
that calls it: all of them in the thread profile, plain functions in the async
one.
"""

import sys
import threading
from contextvars import copy_context
from time import monotonic

from . import wire
from .calls import SharedCalls
from .cancel import LOST_RETRY, Struck
from .coroutines import run_alone, run_here
from .errors import Cancelled, StreamClosed, StreamEnded, Withdrawn
from .outbox import SharedOutbox
from .outcome import function_not_found
from .place import Place
from .service import LOST_GRACE, Service
from .streaming import is_stream
from .thread_moving import ThreadMoving
from .thread_safety import ThreadSafety
from .thread_stream import ThreadStream
from .turns import Turn, Turns, current

# A blow that cannot be dealt now is tried again.
RETRY, RETRY_MAX = 0.005, 0.05


class SideBySide(Service):
    def __init__(self, registry, data, control, capacity, binary=True, limit=None, checks="off"):
        self.capacity = capacity
        self.here = threading.local()
        self.thread_safety = ThreadSafety(checks if capacity > 1 else "off")
        super().__init__(registry, data, control, Turns(), binary, limit)

    def make_outbox(self):
        return SharedOutbox(self.data, self.control, self.state, self.encode, self.binary, self.limit)

    def make_calls(self):
        return SharedCalls(self)

    def make_moving(self):
        return ThreadMoving(self)

    def wire_up(self):
        super().wire_up()
        self.state.interrupt = self.interrupt
        self.state.on_empty = self.close_input

    def install(self):
        previous = sys.unraisablehook
        sys.unraisablehook = lambda lost: self.on_unraisable(lost, previous)

    @property
    def served(self):
        return self.state.served

    # The reader.

    def dispatch(self, frame):
        if frame.kind == wire.QUERY:
            if self.moving is not None:
                self.moving.note(frame)
            self.admit(Turn(self, frame, self.inbox.received))
        elif frame.kind == wire.CREDIT:
            self.state.grant(frame)
        elif frame.kind == wire.CALL_RESULT:
            self.calls.deliver(frame)
        elif frame.kind == wire.HEALTH_CHECK:
            self.checkup.check(self.outbox.send)
        else:
            self.on_control_frame(frame)

    def admit(self, turn):
        if self.state.admit(turn):
            self.start(turn)
        elif not turn.answered:
            self.give_back(turn)

    def give_back(self, turn):
        self.outbox.send(self.cancelled(turn.rid, Withdrawn(), 0))

    # One turn, in the thread that calls this.

    def serve(self, turn):
        place = self.place()
        place.take(turn)
        turn.place = place
        if self.state.begin(turn):
            self.end(turn, self.outcome(place, turn))
        place.take(None)

    def place(self):
        """That of this thread."""
        try:
            return self.here.place
        except AttributeError:
            self.here.place = Place()
            return self.here.place

    def end(self, turn, terminal):
        try:
            self.outbox.send_last(turn, terminal)
        except OSError as error:
            self.leave_if_forked()
            self.stop(str(error), LOST_GRACE)
        if turn.afterwards is not None:
            turn.afterwards()
        self.state.finish(turn)

    def outcome(self, place, turn):
        function = self.find(turn.frame)
        if function is None:
            return self.unstarted(turn.rid, function_not_found(self.name_of(turn.frame)))
        current.set(turn)
        if self.moving is not None and "sessionId" in turn.frame.meta:
            return self.moving.outcome(place, turn, function)
        return self.admitted(place, turn, function)

    def admitted(self, place, turn, function):
        """Its outcome, if it may run beside what else runs."""
        refusal = self.thread_safety.enter(function)
        if refusal is not None:
            return self.unstarted(turn.rid, refusal)
        try:
            return self.guarded(place, turn, *self.caller(function, turn.frame))
        finally:
            self.thread_safety.leave(function)

    def guarded(self, place, turn, invoke, body):
        """The terminal frame of ``invoke(body)``."""
        within = copy_context().run  # what a handler sets there ends with it
        result, error = self.armed(place, turn, within, invoke, body)
        if error is not None:
            return self.failed(turn.rid, error)
        return self.finished(place, turn, within, result)

    def armed(self, place, turn, within, invoke, *args):
        """(result, error) of user code, by the rule of place.py."""
        try:
            try:
                place.arm(turn.rid)
                if turn.cancelled:
                    raise Withdrawn
                result = within(invoke, *args)
                place.disarm()
                return result, None
            except BaseException as error:
                place.disarm()
                return None, error
        except Cancelled as error:
            place.disarm()
            return None, error

    def asked_in_place(self, place, turn, hook, *args):
        """(result, error) of a hook that a request depends on."""
        within = copy_context().run
        result, error = self.armed(place, turn, within, hook, *args)
        if error is None and hasattr(result, "__await__"):
            try:
                result = within(self.awaited, turn, result)
            except BaseException as raised:
                return None, raised
        return result, error

    def finished(self, place, turn, within, result):
        """The terminal frame where ``result`` is what the function returned."""
        if hasattr(result, "__await__"):
            try:
                result = within(self.awaited, turn, result)
            except BaseException as error:
                return self.failed(turn.rid, error)
        if is_stream(result):
            return ThreadStream(self, place, turn, within, result).run()
        return self.completed(turn.rid, result)

    def awaited(self, turn, awaitable):
        """Run a coroutine to its end, here; a cancel is the cancellation of its task."""
        return run_here(self.place(), turn, awaitable)

    def cancelled(self, rid, error, chunks):
        if isinstance(error, Struck):
            error.reason = self.state.stopping or "cancelled"
        return super().cancelled(rid, error, chunks)

    # Cancel.

    def interrupt(self, turn):
        """After ``turn.cancelled`` was set. Any thread but the turn's."""
        if turn.cancel_task is not None:
            turn.cancel_task()
        elif turn.place is not None:
            self.pursue(turn, turn.rid)

    def pursue(self, turn, key, delay=RETRY):
        """Strike the thread of ``turn`` as soon as it may be struck."""
        if turn.place.turn is turn and not turn.place.strike(key):
            again = min(2 * delay, RETRY_MAX)
            self.control.later(delay, lambda: self.pursue(turn, key, again))

    def on_unraisable(self, lost, previous):
        """Python swallows what is raised in ``__del__`` and weakref callbacks."""
        if not isinstance(lost.exc_value, Struck):
            return previous(lost)
        place = getattr(self.here, "place", None)
        if place is not None and place.armed:
            turn, key = place.turn, place.armed
            self.control.later(LOST_RETRY, lambda: self.pursue(turn, key))
            place.struck = False

    # What handlers call.

    def current_request(self):
        turn = current.get(None)
        return None if turn is None else turn.request()

    def emit(self, kind, rid, flags=0, meta=None, body=b"", turn=None):
        leave = self.shielded()
        try:
            self.outbox.emit(kind, rid, flags, meta, body, turn)
        finally:
            if leave is not None:
                leave()

    def shielded(self):
        """Enter a region that no cancel tears; what leaves it, or None where none could."""
        place = getattr(self.here, "place", None)
        if place is None or place.turn is None:
            return None
        turn = place.turn
        place.mask()

        def leave():
            # One that outlives its request (in a generator kept somewhere) has nothing to lift.
            if place is getattr(self.here, "place", None) and place.turn is turn and place.depth:
                place.unmask()

        return leave

    def may_block(self, what, instead):
        """Raise if the calling thread must not wait."""

    # Hooks and leaving.

    def asked(self, hook):
        answer = hook()
        return run_alone(answer) if hasattr(answer, "__await__") else answer

    asked_aside = asked

    def finish_and_leave(self):
        self.state.drain()

    def ended(self):
        """The data stream has ended: give back what has not begun, and let no more begin."""
        if self.state.stopping is None and not self.graceful:
            self.stop("the server closed the data stream", LOST_GRACE)
        try:
            for turn in self.state.take_unbegun():
                self.give_back(turn)
        except OSError:
            pass
        self.state.drain()

    def read(self):
        """Dispatch what there is to read. False: the stream has ended."""
        inbox = self.inbox
        try:
            inbox.read()
        except StreamEnded:
            return False
        except StreamClosed as closed:
            print(f"ostler: {closed}", file=sys.stderr)
            return False
        inbox.received = monotonic()
        while inbox.aside:
            self.dispatch(inbox.aside.popleft())
        return True

    def close(self):
        """Nothing is held beyond the streams."""
