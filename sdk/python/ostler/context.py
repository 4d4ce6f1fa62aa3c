"""What a handler may ask and say while it runs."""

from collections import namedtuple
from time import monotonic

from . import wire
from .jsontext import text
from .outgoing import json_body, result_of, with_arguments

_worker = None


def attach(worker):
    """Name the worker this process is, or None for none."""
    global _worker
    _worker = worker


def serving():
    """The worker that this process is."""
    if _worker is None:
        raise RuntimeError("this process is not an Ostler worker; start it with: ostler serve FILE.py")
    return _worker


def request():
    """The request being served."""
    current = serving().current_request()
    if current is None:
        raise RuntimeError(
            "no request is being served here; a thread of your own sees the request "
            "if it runs in a copy of the handler's context (contextvars.copy_context)"
        )
    return current


#: The job that a request is part of, and which part: ``shard`` of ``shard_count``, from 0.
JobPart = namedtuple("JobPart", "id attempt shard shard_count depth")


class Request:
    """One call, as its handler sees it."""

    def __init__(self, worker, wire_id, deadline_ms, meta, received):
        self._worker = worker
        self.wire_id = wire_id
        self.id = meta.get("requestId") or str(wire_id)
        #: The id of its session, or None.
        self.session = meta.get("sessionId")
        #: What its session found here: bound, same, elsewhere, restored or restarted; or None.
        self.continuity = meta.get("continuity")
        #: How often the request itself was tried; a job counts its attempts in ``job``.
        self.attempt = meta.get("attempt", 1)
        #: The job that it is part of, or None.
        self.job = _job_part(meta.get("job"))
        #: What this worker does of it. Outside of a job that is the whole: 0 of 1.
        self.shard = self.job.shard if self.job else 0
        self.shard_count = self.job.shard_count if self.job else 1
        self.traceparent = meta.get("traceparent")
        self.content_type = meta.get("contentType")
        self.idempotent = bool(meta.get("idempotent", False))
        #: When it must be done, on the clock of time.monotonic(); None for never.
        self.deadline = received + deadline_ms / 1000 if deadline_ms else None
        self._session = None
        # How often it has submitted each job; see jobs.py.
        self._submitted = {}

    def remaining(self):
        """Seconds until the deadline, not below 0; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - monotonic())

    @property
    def cancelled(self):
        """Has somebody asked for this request to end?"""
        return self._worker.state.is_cancelled(self.wire_id)

    def progress(self, value):
        """Tell whoever follows the request how far it is: any JSON value."""
        self._say(wire.PROGRESS, body=json_body(value))

    def log(self, message, level="info"):
        """A log line that belongs to this request; trace, debug, info, warning or error."""
        self._say(wire.LOG, meta={"level": level, "message": text(message, 65536)})

    def _say(self, kind, meta=None, body=b""):
        self._worker.emit(kind, self.wire_id, meta=meta, body=body)


def _job_part(part):
    if part is None:
        return None
    return JobPart(part["id"], part["attempt"], part["shard"], part["shardCount"], part["depth"])


class shield:
    """Within it the handler is not interrupted; a cancel that came is raised at its end.

    In a coroutine of the async profile it is raised at the first ``await``
    after its end. Where nothing interrupts (a thread of the user's own) it
    does nothing.
    """

    def __enter__(self):
        self._leave = _worker.shielded() if _worker is not None else None
        return self

    def __exit__(self, *_exception):
        if self._leave is not None:
            self._leave()


def call(pool, function, *args, **kwargs):
    """Call a function of another pool, or of this one, and wait for its result.

    It has the deadline of the request that makes it and ends with it. What the
    server says against it raises ``CallError``.
    """
    return result_of(serving().calls.make(with_arguments(pool, function, args, kwargs)))


async def acall(pool, function, *args, **kwargs):
    """As ``call``, for coroutines: other coroutines go on meanwhile."""
    outgoing = with_arguments(pool, function, args, kwargs)
    return result_of(await serving().calls.make_async(outgoing))


def metric(name, value, **labels):
    """A measurement of the worker's own."""
    labels = {key: text(label, 256) for key, label in labels.items()}
    meta = {"name": name, "value": float(value), "labels": labels or None}
    serving().emit(wire.METRIC, 0, meta=meta)


def retire(reason="the worker asked for it", tainted=False):
    """Ask to be replaced; what has not started goes elsewhere.

    ``tainted`` says that the process itself is in doubt (its memory, its
    device): it gets no new work and counts as crashed once its requests ended.
    """
    meta = {"reason": text(reason, 1024), "tainted": True if tainted else None}
    serving().emit(wire.RETIRE, 0, meta=meta)
