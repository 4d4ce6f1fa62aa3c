"""The process profile: one request at a time, run inline by the main thread.

The main thread blocks on the data stream and runs handlers itself, so that a
call costs no hand-over; the control thread hears what must be heard meanwhile.
``run_binary`` is the hot path: it unpacks headers and arms in line, because a
Python call per request is what would cost most. Everything that is not a plain
function on the binary wire goes through ``dispatch``.
"""

from time import monotonic

from . import wire
from .calls import MainCalls
from .cancel import MAIN, SIGNAL, Interrupts, free_threaded
from .context import Request
from .coroutines import Coroutines, run_alone
from .errors import Cancelled, StreamClosed, Unencodable, Withdrawn
from .inbox import RECV, read_large_query, receive
from .jsontext import dumps
from .moving import MainMoving
from .outbox import Outbox
from .outcome import function_not_found
from .service import LOST_GRACE, Service
from .streaming import Stream, is_stream


class Worker(Service):
    """One request at a time, in the main thread."""

    profile = "process"
    cancel_signal = SIGNAL

    def __init__(self, registry, data, control, binary=True, limit=None):
        self.served = 0
        self.frame = None
        self.request = None
        super().__init__(registry, data, control, Interrupts(), binary, limit)
        self.coroutines = Coroutines(self.state)
        self.emit = self.outbox.emit

    def make_outbox(self):
        return Outbox(self.data, self.control, self.state, self.encode, self.binary, self.limit)

    def make_calls(self):
        return MainCalls(self)

    def make_moving(self):
        return MainMoving(self)

    def wire_up(self):
        super().wire_up()
        state, control = self.state, self.control
        state.drain = control.try_drain
        state.later = control.later
        state.floor = (Worker.run_binary if self.binary else Worker.run_lines).__code__

    def install(self):
        self.state.install()

    def on_sigterm(self, frame):
        self.terminate()
        self.state.judge(frame)

    def run(self):
        """Serve until told to leave or until the data stream ends."""
        if self.binary:
            self.run_binary()
        else:
            self.run_lines()

    # The hot path.

    def run_binary(self):
        state, inbox, limit = self.state, self.inbox, self.limit
        cancelled = state.cancelled
        send = self.outbox.send if self.one_stream else self.data.sendall
        recv, unpack, pack, now = self.data.recv, wire.HEADER.unpack_from, wire.HEADER.pack, monotonic
        plain, raw = self.quick_callers()
        known = len(plain)
        left, served = b"", 0
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
                end, body = off + 4 + length, off + 24 + a
                if kind == 1 and body <= end <= total and code < known:
                    invoke = (raw if flags & 128 else plain)[code]
                else:
                    invoke = None
                if invoke is None:
                    if end <= total:
                        inbox.take_over(d[off:])
                    elif length <= wire.SMALL:
                        wire.check(length, limit)
                        break
                    else:
                        large = read_large_query(self.data, d, off, limit)
                        inbox.take_over(b"")
                        inbox.aside.append(large)
                    self.served += served
                    served = 0
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
                        result = invoke(d[body:end])
                        state.armed = 0
                        if type(result) is bytes:
                            size, form = len(result), 128
                        else:
                            result = dumps(result)
                            size, form = len(result), 0
                        if size > 65536:
                            frame = self.outbox.large(0x84, rid, form, result)
                            result = None
                        else:
                            frame = pack(size + 20, 0x84, form, 0, rid, 0, 0) + result
                    except BaseException as error:
                        state.armed = 0
                        frame = self.unusual(rid, error)
                except Cancelled as error:
                    state.armed = 0
                    frame = self.unusual(rid, error)
                if frame:
                    send(frame)
                served += 1
                if inbox.nested:
                    self.served += served
                    served = 0
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
        if self.moving is not None:  # whose session it is must be read first
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
            self.outbox.send(self.checkup.report(self.asked))
        elif frame.kind == wire.SHUTDOWN and frame.flags & wire.GRACEFUL:
            self.graceful = True
            return True
        elif frame.kind not in (wire.CREDIT, wire.CALL_RESULT):
            self.on_control_frame(frame)
        return self.state.stopping is not None and not self.inbox.aside

    def answer(self, frame):
        """Run one query by the general path and send its terminal frame."""
        self.state.publish(frame.id)
        self.frame, self.request = frame, None
        try:
            terminal = self.outcome(frame)
        finally:
            self.frame = None
        if terminal:
            self.outbox.send(terminal)
        self.served += 1

    def outcome(self, frame):
        if self.moving is not None:
            self.moving.note(frame)
        function = self.find(frame)
        if function is None:
            return self.unstarted(frame.id, function_not_found(self.name_of(frame)))
        invoke, body = self.caller(function, frame)
        if self.moving is not None:
            invoke = self.moving.arriving(function, frame, invoke)
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
            state.armed = 0
            return self.unusual(rid, error)

    def stream(self, rid, source):
        credit = self.current_frame().meta.get("credit") or {}
        self.inbox.enter()
        return Stream(self, rid, source, credit).run()

    # Terminal frames. None: somebody else has answered.

    def unusual(self, rid, error):
        """What a plain function ended with, if not with a JSON value or bytes."""
        if isinstance(error, Unencodable):
            return self.guarded(rid, as_it_is, error.value)
        return self.failed(rid, error)

    def failed(self, rid, error, chunks=0):
        self.state.masked = 0  # whatever was shielded is over
        return super().failed(rid, error, chunks)

    def ours(self, rid):
        return not self.state.sought(rid) or self.state.claim(rid, MAIN)

    # Reading inside a request.

    def pump(self):
        """Read once; with one stream also obey what came for the control side."""
        try:
            self.inbox.read()
        except StreamClosed as closed:
            self.stop(str(closed), LOST_GRACE)
            raise Cancelled(str(closed)) from None
        if self.one_stream:
            kinds = (wire.PING, wire.CANCEL, wire.WITHDRAW, wire.TRACE)
            for frame in self.inbox.take(lambda frame: frame.kind in kinds or stops_now(frame)):
                self.on_control_frame(frame)

    def taken(self, kind, id):
        return self.inbox.take(lambda frame: frame.kind == kind and frame.id == id)

    def current_request(self):
        rid = self.state.current
        if self.request is None or self.request.wire_id != rid:
            frame = self.current_frame()
            self.request = None
            if frame is not None and frame.id == rid:
                self.request = Request(self, rid, frame.count, frame.meta, self.inbox.received)
        return self.request

    def current_frame(self):
        """The query being served; the hot path leaves it where it lies in the buffer."""
        data, start = self.inbox.data, self.inbox.start
        if self.frame is not None or len(data) < start + wire.HEAD:
            return self.frame
        length = wire.HEADER.unpack_from(data, start)[0]
        return wire.decode(data, start, start + 4 + length)

    # Hooks and leaving.

    def asked(self, hook):
        answer = hook()
        return self.coroutines.run(answer) if hasattr(answer, "__await__") else answer

    def asked_aside(self, hook):
        """As ``asked``, on a thread that is not main."""
        answer = hook()
        return run_alone(answer) if hasattr(answer, "__await__") else answer

    def shielded(self):
        """Enter a region that no cancel tears; what leaves it, or None outside of main."""
        state = self.state
        if not state.on_main_thread():
            return None
        request = state.current
        state.masked += 1

        def leave():
            # One that outlives its request (in a generator kept somewhere) has nothing to lift.
            if state.current == request and state.masked:
                state.masked -= 1
                state.check()

        return leave

    def close(self):
        self.coroutines.close()


def stops_now(frame):
    return frame.kind == wire.SHUTDOWN and not frame.flags & wire.GRACEFUL


def as_it_is(value):
    return value
