"""What every profile shares: functions found, answers made, the way out.

A profile says who reads the streams and where handlers run; this does not know
either. Two kinds of ``state`` fit in: Interrupts (one handler, in the main
thread) and Turns (several, side by side). Both hear ``on_cancel``,
``on_withdraw``, ``begin_stop`` and ``poke``.
"""

import os
import socket
import sys
from time import monotonic

from . import ndjson, wire
from .control import Control, stacks
from .errors import Cancelled, StreamClosed, Unencodable, Unfit, Withdrawn
from .checkup import Checkup
from .inbox import Inbox
from .jsontext import text
from .moving import SAVE
from .outcome import describe
from .results import encoded

STOP_GRACE = 1.5  # for handlers and the stop hooks, once told to stop at once
LOST_GRACE = 1.0  # the same, when the server is gone


class Service:
    """One worker process between its two streams."""

    profile = None
    capacity = 1
    cancel_signal = None

    def __init__(self, registry, data, control, state, binary=True, limit=None):
        self.registry = registry
        self.binary = binary
        self.limit = limit or (wire.MAX_FRAME if binary else ndjson.MAX_LINE)
        self.encode = wire.encode if binary else ndjson.encode
        self.pid = os.getpid()
        self.started = monotonic()
        self.graceful = False
        self.data = data
        self.state = state
        self.inbox = Inbox(data, self.decoder())
        self.control = Control(state, data, control, self.decoder(), self.encode)
        self.one_stream = control is None
        self.checkup = Checkup(self)
        self.outbox = self.make_outbox()
        self.calls = self.make_calls()
        #: How sessions move in and out; None where the file has no hooks for it.
        self.moving = self.make_moving() if registry.heeds_sessions else None
        self.wire_up()

    def decoder(self):
        return wire.Decoder(self.limit) if self.binary else ndjson.Decoder(self.limit)

    def wire_up(self):
        control = self.control
        control.on_lost = lambda reason: self.stop(reason, LOST_GRACE)
        control.on_terminate = self.terminate
        control.handlers = {
            wire.SHUTDOWN: self.on_shutdown,
            wire.CALL_RESULT: self.calls.deliver,
            wire.HEALTH_CHECK: lambda frame: self.checkup.check(control.send),
        }

    def withdraws(self):
        """Does it give back what has not begun, whatever it does meanwhile?"""
        return not self.one_stream

    # Queries.

    def find(self, frame):
        functions = self.registry.functions
        if frame.code != wire.NAMED:
            return functions[frame.code] if frame.code < len(functions) else None
        name = frame.meta.get("function")
        if name is None:
            return functions[0] if len(functions) == 1 else None
        if name == SAVE and self.registry.saves_sessions:
            return self.moving.saving(frame)
        index = self.registry.by_name.get(name)
        return None if index is None else functions[index]

    def name_of(self, frame):
        return frame.meta.get("function") or f"number {frame.code}"

    def caller(self, function, frame):
        """(what takes the body of ``frame``, that body)"""
        invoke = function.call_raw if frame.flags & wire.RAW else function.call_json
        body = frame.body
        if type(body) is bytearray and not function.parameters.keeps_bytearray():
            body = bytes(body)
        return invoke, body

    def on_control_frame(self, frame):
        """With one stream, control messages come in turn with the others."""
        if frame.kind == wire.PING:
            self.outbox.send(self.encode(wire.PONG, frame.id))
        elif frame.kind in (wire.CANCEL, wire.WITHDRAW):
            if self.control.give_back(frame):
                self.outbox.send(self.encode(wire.CANCELLED, frame.id, wire.NOT_STARTED))
        elif frame.kind == wire.TRACE:
            self.outbox.send(self.encode(wire.TRACE_RESULT, frame.id, body=stacks()))
        elif frame.kind == wire.SHUTDOWN:
            self.on_shutdown(frame)

    # Terminal frames. None: somebody else has answered.

    def completed(self, rid, result, chunks=0):
        try:
            flags, body, meta = encoded(result)
            if len(body) > wire.SMALL:
                return self.outbox.large(wire.COMPLETE, rid, flags, body, chunks, meta)
            return self.encode(wire.COMPLETE, rid, flags, meta, body, chunks)
        except (Unencodable, ValueError) as error:
            return self.failed(rid, error, chunks)

    def failed(self, rid, error, chunks=0):
        if isinstance(error, StreamClosed):
            raise error
        if isinstance(error, (Cancelled, Withdrawn)):
            return self.cancelled(rid, error, chunks)
        meta = describe(error)
        if isinstance(error, Unfit):
            return self.unstarted(rid, meta)
        return self.encode(wire.ERROR, rid, meta=meta, count=chunks)

    def cancelled(self, rid, error, chunks):
        if not self.ours(rid):
            return None
        flags = wire.NOT_STARTED if isinstance(error, Withdrawn) else 0
        reason = text(getattr(error, "reason", None) or "cancelled", 1024)
        return self.encode(wire.CANCELLED, rid, flags, {"reason": reason}, count=chunks)

    def unstarted(self, rid, meta):
        """Refuse a request whose function was never entered."""
        if not self.ours(rid):
            return None
        return self.encode(wire.ERROR, rid, meta=meta)

    def ours(self, rid):
        """False: the control side has answered it already."""
        return True

    # Leaving.

    def on_shutdown(self, frame):
        if frame.flags & wire.GRACEFUL:
            self.graceful = True
            self.finish_and_leave()
        else:
            self.stop("the worker is being stopped", STOP_GRACE)

    def finish_and_leave(self):
        self.close_input()

    def terminate(self):
        self.stop("the worker was told to terminate", STOP_GRACE)

    def on_sigterm(self, frame):
        """In the main thread, between two bytecodes of ``frame``."""
        self.terminate()

    def stop(self, reason, grace):
        """Interrupt what runs, begin nothing more, leave within ``grace``. Any thread."""
        if self.state.stopping is not None:
            return
        self.state.begin_stop(reason)
        self.leave_within(grace)
        self.close_input()
        self.state.poke()

    def close_input(self):
        """Wakes the thread that waits for work."""
        try:
            self.data.shutdown(socket.SHUT_RD)
        except OSError:
            pass

    def leave_within(self, grace):
        self.control.later(grace, lambda: os._exit(1))

    def leave_if_forked(self):
        """A child that a handler forked came back; the streams are its parent's."""
        if os.getpid() != self.pid:
            print("ostler: a forked child returned from its handler; end it with os._exit", file=sys.stderr)
            sys.stdout.flush()
            os._exit(1)

    def disown(self):
        """In a forked child: it has no part in any of this."""
        self.state.disown()
        self.control.close()
        self.data.close()
