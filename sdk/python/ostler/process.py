"""The process profile: one request at a time, run inline by the main thread.

The main thread blocks on the data stream and runs handlers itself, so that a
call costs no hand-over; the control thread hears what must be heard meanwhile.
``run_binary`` is the hot path: it unpacks headers and arms in line, because a
Python call per request is what would cost most. Everything that is not a plain
function on the binary wire goes through ``dispatch``.
"""

import os
import socket
import threading
from time import monotonic

from . import ndjson, wire
from .cancel import MAIN, Interrupts, free_threaded
from .control import Control, stacks
from .coroutines import Coroutines
from .errors import Cancelled, StreamClosed, Unencodable, Unfit, Withdrawn
from .inbox import RECV, Inbox, read_large_query, receive
from .jsontext import dumps, text
from .outcome import describe, function_not_found
from .context import Request
from .results import encoded
from .streaming import Stream, is_stream

STOP_GRACE = 1.5  # for a handler and the stop hooks, once told to stop at once
LOST_GRACE = 1.0  # the same, when the server is gone


class Worker:
    """One worker process between its two streams."""

    def __init__(self, registry, data, control, binary=True, limit=None):
        self.registry = registry
        self.binary = binary
        self.limit = limit or (wire.MAX_FRAME if binary else ndjson.MAX_LINE)
        self.encode = wire.encode if binary else ndjson.encode
        self.pid = os.getpid()
        self.started = monotonic()
        self.served = 0
        self.graceful = False
        self.opened = False
        self.data = data
        self.frame = None
        self.request = None
        self.calls = Calls(self)
        self.state = Interrupts()
        self.inbox = Inbox(data, self.decoder())
        self.control = Control(self.state, data, control, self.decoder(), self.encode)
        self.one_stream = control is None
        self.coroutines = Coroutines(self.state)
        self.wire_up()

    def decoder(self):
        return wire.Decoder(self.limit) if self.binary else ndjson.Decoder(self.limit)

    def wire_up(self):
        state, control = self.state, self.control
        state.drain = control.try_drain
        state.later = control.later
        state.floor = (Worker.run_binary if self.binary else Worker.run_lines).__code__
        control.on_lost = lambda reason: self.stop(reason, LOST_GRACE)
        control.on_terminate = self.terminate
        control.handlers = {
            wire.SHUTDOWN: self.on_shutdown,
            wire.CALL_RESULT: self.calls.deliver,
            wire.HEALTH_CHECK: lambda frame: control.send(self.health()),
        }
        # With one stream, threads of the user's write where main writes.
        self.lock = threading.Lock() if self.one_stream else None

    # Sending. Always disarmed or masked: half a frame would end the stream.

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
        """Send all but the end of a large frame, return the end. Spares joining it."""
        if not self.binary:
            frame = self.encode(kind, rid, flags, meta, body, count)
            self.check_size(len(frame))
            return frame
        head = self.encode(kind, rid, flags, meta, b"", count)
        size = len(head) - 4 + len(body)
        self.check_size(size)
        head = size.to_bytes(4, "little") + head[4:]
        if self.lock is not None:
            return head + body
        sent = self.data.sendmsg([head, body])
        if sent < len(head):
            self.data.sendall(head[sent:])
            sent = len(head)
        return memoryview(body)[sent - len(head) :]

    def check_size(self, size):
        if size > self.limit:
            raise ValueError(
                f"a result of {size} bytes is over the limit of {self.limit}; "
                "stream it, or raise max_result"
            )

    def emit(self, kind, rid, flags=0, meta=None, body=b""):
        """Say something from user code, on whichever stream this thread may write."""
        if not self.opened:
            return
        frame = self.encode(kind, rid, flags, meta, body)
        if not self.on_main_thread() and not self.one_stream:
            self.control.send(frame)
            return
        state = self.state
        if not self.on_main_thread():
            self.send(frame)
            return
        state.masked += 1
        try:
            self.send(frame)
        finally:
            state.masked -= 1
        state.check()

    def on_main_thread(self):
        return threading.get_ident() == self.state.main

    # The hot path.

    def run_binary(self):
        state, inbox, limit = self.state, self.inbox, self.limit
        cancelled = state.cancelled
        send = self.data.sendall if self.lock is None else self.send
        recv, unpack, pack, now = self.data.recv, wire.HEADER.unpack_from, wire.HEADER.pack, monotonic
        plain, raw = self.quick_callers()
        known = len(plain)
        left = b""
        while True:
            try:
                d = recv(RECV)
            except (ConnectionResetError, BrokenPipeError):
                return
            if not d:
                return
            inbox.received = now()
            if left:
                d = left + d
            inbox.data = d
            off, total = 0, len(d)
            while total - off >= 24:
                length, kind, flags, code, rid, a, _ = unpack(d, off)
                end = off + 4 + length
                if end > total:
                    wire.check(length, limit)
                    if length <= wire.SMALL:
                        break
                    inbox.take_over(b"")
                    inbox.aside.append(read_large_query(self.data, d, off, limit))
                    invoke = None
                elif kind != 1 or code >= known or length < 20 + a:
                    inbox.take_over(d[off:])
                    invoke = None
                else:
                    invoke = (raw if flags & 128 else plain)[code]
                    if invoke is None:
                        inbox.take_over(d[off:])
                if invoke is None:
                    if self.catch_up():
                        return
                    d, off = inbox.give_back(), 0
                    inbox.data, total = d, len(d)
                    continue
                inbox.start = off
                state.current = rid
                try:
                    try:
                        state.armed = rid
                        if cancelled and state.blocked(rid):
                            raise Withdrawn
                        result = invoke(d[off + 24 + a : end])
                        state.armed = 0
                        if type(result) is bytes:
                            size, form = len(result), 128
                        else:
                            result = dumps(result)
                            size, form = len(result), 0
                        if size > 65536:
                            frame = self.large(0x84, rid, form, result)
                            result = None
                        else:
                            frame = pack(size + 20, 0x84, form, 0, rid, 0, 0) + result
                    except BaseException as error:
                        state.armed = 0
                        frame = self.unusual(rid, error)
                except Cancelled as error:
                    frame = self.unusual(rid, error)
                if frame:
                    send(frame)
                self.served += 1
                if inbox.nested:
                    if self.catch_up():
                        return
                    d, off = inbox.give_back(), 0
                    inbox.data, total = d, len(d)
                else:
                    off = end
            left = d[off:] if off < total else b""

    def quick_callers(self):
        """Per function index: what takes a JSON body, and what takes a raw one."""
        functions = self.registry.functions
        if free_threaded():  # publishing and looking need the lock there
            return [], []
        plain = [f.call_json if f.plain else None for f in functions]
        raw = [f.call_raw if f.plain else None for f in functions]
        return plain, raw

    def catch_up(self):
        """Dispatch what was put aside. True: the worker is to leave."""
        while self.inbox.aside:
            if self.dispatch(self.inbox.aside.popleft()):
                return True
        return False

    # The general path.

    def run_lines(self):
        """The loop of the NDJSON wire."""
        self.inbox.nested = True
        while True:
            data = receive(self.data)
            if not data:
                return
            self.inbox.received = monotonic()
            self.inbox.aside.extend(self.inbox.decoder.feed(data))
            if self.catch_up():
                return

    def dispatch(self, frame):
        """Deal with one frame between requests. True: the worker is to leave."""
        if frame.kind == wire.QUERY:
            self.answer(frame)
        elif frame.kind == wire.HEALTH_CHECK:
            self.send(self.health())
        elif frame.kind == wire.SHUTDOWN and frame.flags & wire.GRACEFUL:
            self.graceful = True
            return True
        elif frame.kind not in (wire.CREDIT, wire.CALL_RESULT):
            self.on_control_frame(frame)
        return self.state.stopping is not None and not self.inbox.aside

    def on_control_frame(self, frame):
        """With one stream, control messages come in turn with the others."""
        if frame.kind == wire.PING:
            self.send(self.encode(wire.PONG, frame.id))
        elif frame.kind == wire.CANCEL:
            if self.state.on_cancel(frame.id):
                self.send(self.encode(wire.CANCELLED, frame.id, wire.NOT_STARTED))
        elif frame.kind == wire.TRACE:
            self.send(self.encode(wire.TRACE_RESULT, frame.id, body=stacks()))
        elif frame.kind == wire.SHUTDOWN:
            self.on_shutdown(frame)

    def answer(self, frame):
        """Run one query by the general path and send its terminal frame."""
        self.state.publish(frame.id)
        self.frame, self.request = frame, None
        try:
            terminal = self.outcome(frame)
        finally:
            self.frame = None
        if terminal:
            self.send(terminal)
        self.served += 1

    def outcome(self, frame):
        function = self.find(frame)
        if function is None:
            return self.unstarted(frame.id, function_not_found(self.name_of(frame)))
        invoke = function.call_raw if frame.flags & wire.RAW else function.call_json
        body = frame.body
        if type(body) is bytearray and not function.parameters.keeps_bytearray():
            body = bytes(body)
        return self.guarded(frame.id, invoke, body)

    def guarded(self, rid, invoke, body):
        """The terminal frame of ``invoke(body)``, by the rule of cancel.py."""
        state = self.state
        try:
            try:
                state.armed = rid
                if state.cancelled and state.blocked(rid):
                    raise Withdrawn
                result = invoke(body)
                if hasattr(result, "__await__"):
                    result = self.coroutines.run(result)
                state.armed = 0
                if is_stream(result):
                    return self.stream(rid, result)
                return self.completed(rid, result)
            except BaseException as error:
                state.armed = 0
                return self.unusual(rid, error)
        except Cancelled as error:
            return self.unusual(rid, error)

    def stream(self, rid, source):
        meta = self.frame.meta if self.frame is not None else {}
        if not self.inbox.nested:
            self.inbox.enter()
        return Stream(self, rid, source, meta.get("credit") or {}).run()

    def find(self, frame):
        functions = self.registry.functions
        if frame.code != wire.NAMED:
            return functions[frame.code] if frame.code < len(functions) else None
        name = frame.meta.get("function")
        if name is None:
            return functions[0] if len(functions) == 1 else None
        index = self.registry.by_name.get(name)
        return None if index is None else functions[index]

    def name_of(self, frame):
        return frame.meta.get("function") or f"number {frame.code}"

    # Terminal frames. None: somebody else has answered.

    def completed(self, rid, result, chunks=0):
        try:
            flags, body, meta = encoded(result)
            if len(body) > wire.SMALL:
                return self.large(wire.COMPLETE, rid, flags, body, chunks, meta)
            return self.encode(wire.COMPLETE, rid, flags, meta, body, chunks)
        except (Unencodable, ValueError) as error:
            return self.failed(rid, error, chunks)

    def unusual(self, rid, error):
        """What a plain function ended with, if not with a JSON value or bytes."""
        if isinstance(error, Unencodable):
            if is_stream(error.value):
                return self.stream(rid, error.value)
            flags, _, _ = safe_form(error.value)
            if flags:
                return self.completed(rid, error.value)
        return self.failed(rid, error)

    def failed(self, rid, error, chunks=0):
        self.state.masked = 0  # whatever was shielded is over
        if isinstance(error, StreamClosed):
            raise error
        if isinstance(error, (Cancelled, Withdrawn)):
            return self.cancelled(rid, error, chunks)
        meta = describe(error)
        if isinstance(error, Unfit):
            return self.unstarted(rid, meta)
        return self.encode(wire.ERROR, rid, meta=meta, count=chunks)

    def cancelled(self, rid, error, chunks):
        if not self.state.claim(rid, MAIN):
            return None
        flags = wire.NOT_STARTED if isinstance(error, Withdrawn) else 0
        reason = text(getattr(error, "reason", None) or "cancelled", 1024)
        return self.encode(wire.CANCELLED, rid, flags, {"reason": reason}, count=chunks)

    def unstarted(self, rid, meta):
        """Refuse a request whose function was never entered."""
        if rid in self.state.cancelled and not self.state.claim(rid, MAIN):
            return None
        return self.encode(wire.ERROR, rid, meta=meta)

    # Reading inside a request.

    def pump(self):
        """Read once; with one stream also obey what came for the control side."""
        try:
            self.inbox.read()
        except StreamClosed as closed:
            self.stop(str(closed), LOST_GRACE)
            raise Cancelled(str(closed)) from None
        if self.one_stream:
            kinds = (wire.PING, wire.CANCEL, wire.TRACE)
            for frame in self.inbox.take(lambda frame: frame.kind in kinds or stops_now(frame)):
                self.on_control_frame(frame)

    def taken(self, kind, id):
        return self.inbox.take(lambda frame: frame.kind == kind and frame.id == id)

    def call(self, meta, flags, body):
        return self.calls.make(meta, flags, body)

    def current_request(self):
        rid = self.state.current
        if not rid:
            return None
        if self.request is None or self.request.wire_id != rid:
            self.request = self.describe_request(rid)
        return self.request

    def describe_request(self, rid):
        received = self.inbox.received
        if self.frame is not None:
            return Request(self, rid, self.frame.count, self.frame.meta, received)
        data, start = self.inbox.data, self.inbox.start
        length = wire.HEADER.unpack_from(data, start)[0]
        frame = wire.decode(data, start, start + 4 + length)
        return Request(self, rid, frame.count, frame.meta, received)

    # Health and leaving.

    def health(self):
        hook = self.registry.health_hook
        try:
            if hook is not None and hook() is False:
                return self.encode(wire.HEALTH_FAILED, meta={"reason": "the health hook said no"})
        except Exception as error:
            reason = text(f"{type(error).__name__}: {error}", 1024)
            return self.encode(wire.HEALTH_FAILED, meta={"reason": reason})
        uptime = round(monotonic() - self.started, 3)
        meta = {"uptime": uptime, "queriesProcessed": self.served}
        return self.encode(wire.HEALTH_OK, meta=meta)

    def on_shutdown(self, frame):
        if frame.flags & wire.GRACEFUL:
            self.graceful = True
            self.data.shutdown(socket.SHUT_RD)
        else:
            self.stop("the worker is being stopped", STOP_GRACE)

    def terminate(self):
        self.stop("the worker was told to terminate", STOP_GRACE)

    def stop(self, reason, grace):
        """Interrupt the handler, begin nothing more, leave within ``grace``. Any thread."""
        if self.state.stopping is not None:
            return
        self.state.stopping = reason
        self.state.mark_stop()
        self.leave_within(grace)
        try:
            self.data.shutdown(socket.SHUT_RD)  # wakes main if it waits for work
        except OSError:
            pass
        self.state.poke()

    def leave_within(self, grace):
        self.control.later(grace, lambda: os._exit(1))


class Calls:
    """Calls that wait for their result."""

    def __init__(self, worker):
        self.worker = worker
        self.last = 0
        self.counting = threading.Lock()
        self.waiting = {}

    def next_id(self):
        with self.counting:
            self.last += 1
            return self.last

    def make(self, meta, flags, body):
        worker = self.worker
        request = worker.current_request()
        if request is not None:
            meta["requestId"] = str(request.wire_id)
            remaining = request.remaining()
            if remaining is not None:
                meta["deadlineMs"] = max(1, int(remaining * 1000))
        if not worker.on_main_thread():
            return self.from_thread(meta, flags, body)
        return self.from_main(meta, flags, body)

    def from_main(self, meta, flags, body):
        """Wait on the data stream: poll unmasked, read masked, so that no byte is lost."""
        worker, state = self.worker, self.worker.state
        state.masked += 1
        try:
            call_id = self.next_id()
            if not worker.inbox.nested:
                worker.inbox.enter()
            worker.send(worker.encode(wire.CALL, call_id, flags, meta, body))
        finally:
            state.masked -= 1
        while True:
            state.check()
            state.masked += 1
            try:
                found = worker.taken(wire.CALL_RESULT, call_id)
                if found:
                    return found[0]
            finally:
                state.masked -= 1
            worker.inbox.wait()
            state.masked += 1
            try:
                worker.pump()
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
        slot = self.waiting.get(frame.id)
        if slot is not None:
            slot[1] = frame
            slot[0].set()


def stops_now(frame):
    return frame.kind == wire.SHUTDOWN and not frame.flags & wire.GRACEFUL


def safe_form(value):
    try:
        return encoded(value)
    except Unencodable:
        return 0, b"", None
