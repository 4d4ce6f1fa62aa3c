"""What a handler may ask and say while it runs."""

from time import monotonic

from . import wire
from .errors import CallError, Unencodable
from .jsontext import dumps, loads, text

_worker = None


def attach(worker):
    """Name the worker this process is, or None for none."""
    global _worker
    _worker = worker


def _serving():
    if _worker is None:
        raise RuntimeError("this process is not an Ostler worker; start it with: ostler serve FILE.py")
    return _worker


def request():
    """The request being served."""
    current = _serving().current_request()
    if current is None:
        raise RuntimeError("no request is being served here")
    return current


class Request:
    """One call, as its handler sees it."""

    def __init__(self, worker, wire_id, deadline_ms, meta, received):
        self._worker = worker
        self.wire_id = wire_id
        self.id = meta.get("requestId") or str(wire_id)
        self.session = meta.get("sessionId")
        self.attempt = meta.get("attempt", 1)
        self.shard = meta.get("shard")
        self.shard_count = meta.get("shardCount")
        self.traceparent = meta.get("traceparent")
        self.content_type = meta.get("contentType")
        self.idempotent = bool(meta.get("idempotent", False))
        #: When it must be done, on the clock of time.monotonic(); None for never.
        self.deadline = received + deadline_ms / 1000 if deadline_ms else None

    def remaining(self):
        """Seconds until the deadline, not below 0; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - monotonic())

    @property
    def cancelled(self):
        """Has somebody asked for this request to end?"""
        return self._worker.state.is_cancelled(self.wire_id)

    def progress(self, value):
        """Tell whoever follows the request how far it is."""
        self._worker.outbox.emit(wire.PROGRESS, self.wire_id, body=_json(value))

    def log(self, message, level="info"):
        """A log line that belongs to this request."""
        meta = {"level": level, "message": text(message, 65536)}
        self._worker.outbox.emit(wire.LOG, self.wire_id, meta=meta)


class shield:
    """Within it the handler is not interrupted; a cancel that came is raised at its end."""

    def __enter__(self):
        on_main = _worker is not None and _worker.state.on_main_thread()
        self._state = _worker.state if on_main else None
        if on_main:
            self._request = self._state.current
            self._state.masked += 1
        return self

    def __exit__(self, *_exception):
        state = self._state
        # One that outlives its request (in a generator kept somewhere) has nothing to lift.
        if state is not None and state.current == self._request and state.masked:
            state.masked -= 1
            state.check()


def call(pool, function, *args, **kwargs):
    """Call a function of another pool and wait for its result."""
    if args and kwargs:
        raise TypeError("ostler.call takes positional or keyword arguments, not both")
    flags, body = 0, b""
    if len(args) == 1 and isinstance(args[0], (bytes, bytearray, memoryview)):
        flags, body = wire.RAW, bytes(args[0])
    elif args:
        body = _json(list(args))
    elif kwargs:
        body = _json(kwargs)
    return _result(_serving().calls.make({"pool": pool, "function": function}, flags, body))


def _json(value):
    try:
        return dumps(value)
    except Unencodable as error:
        raise TypeError(str(error)) from None


def _result(frame):
    if frame.flags & wire.FAILED:
        raise CallError(frame.meta)
    if frame.flags & wire.RAW:
        return bytes(frame.body)
    return loads(frame.body) if frame.body else None


def metric(name, value, **labels):
    """A measurement of the worker's own."""
    labels = {key: text(label, 256) for key, label in labels.items()}
    meta = {"name": name, "value": float(value), "labels": labels or None}
    _serving().outbox.emit(wire.METRIC, 0, meta=meta)


def retire(reason="the worker asked for it"):
    """Ask to be replaced; what has not started goes elsewhere."""
    _serving().outbox.emit(wire.RETIRE, 0, meta={"reason": text(reason, 1024)})
