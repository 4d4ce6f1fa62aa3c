"""Jobs, as handlers submit them and ask about them.

The server keeps a job and runs it when a worker is free, perhaps more than
once. Nothing here waits for one: a handler that did would hold a worker while
it does. The job that a request is part of is ``request().job``. What begins
with ``a`` is for coroutines.
"""

import datetime
import json
import threading
from base64 import b64encode

from .context import serving
from .jsontext import loads
from .outgoing import SERVER, Outgoing, json_body, result_of
from .results import Raw

_SUBMIT = ("ostler.submit", "await ostler.asubmit or ostler.asubmit_job")
_ASK = ("a method of ostler.Job", "await its method that begins with a")

_counting = threading.Lock()


def submit(pool, function, /, *args, **kwargs):
    """Hand in a job, a function of some pool with its arguments; its ``Job`` comes back at once.

    Within a job it is a child of that job, which then ends after it. What the
    server says against it raises ``CallError``.
    """
    return submit_job(pool, function, args, kwargs)


async def asubmit(pool, function, /, *args, **kwargs):
    """As ``submit``, for coroutines: other coroutines go on meanwhile."""
    return await asubmit_job(pool, function, args, kwargs)


def submit_job(pool, function, args=(), kwargs=None, **options):
    """As ``submit``, with options under the names of the HTTP API: ``priority``, ``run_at``, …

    ``parent_job_id=None`` makes it a job of its own, nobody's child.
    """
    return _handle(result_of(serving().calls.make(_submission(pool, function, args, kwargs, options))))


async def asubmit_job(pool, function, args=(), kwargs=None, **options):
    """As ``submit_job``, for coroutines."""
    call = _submission(pool, function, args, kwargs, options)
    return _handle(result_of(await serving().calls.make_async(call)))


class Job:
    """A job by its id. It remembers nothing else: each answer is the server's of that moment."""

    __slots__ = ("id", "known")

    def __init__(self, id, known=False):
        self.id = id
        #: It was there before: by its unique key, or from an earlier attempt of its parent.
        self.known = known

    def __repr__(self):
        return f"<ostler job {self.id!r}>"

    def refresh(self):
        """The job as it is now, a dict of what the HTTP API shows of it."""
        return result_of(serving().calls.make(self._call("job.get")))

    def status(self):
        """SUBMITTED, PENDING, RUNNING, COMPLETED, FAILED or CANCELED."""
        return self.refresh()["status"]

    def cancel(self, reason=None):
        """Ask for its end, and that of its children; the job as it is then."""
        return result_of(serving().calls.make(self._call("job.cancel", reason=reason)))

    async def arefresh(self):
        return result_of(await serving().calls.make_async(self._call("job.get")))

    async def astatus(self):
        return (await self.arefresh())["status"]

    async def acancel(self, reason=None):
        return result_of(await serving().calls.make_async(self._call("job.cancel", reason=reason)))

    def _call(self, operation, **more):
        asked = {"id": self.id, **{key: value for key, value in more.items() if value is not None}}
        return Outgoing(SERVER, operation, body=json_body(asked), spelling=_ASK)


def _handle(answer):
    return Job(answer["id"], bool(answer.get("known", False)))


def _submission(pool, function, args, kwargs, options):
    job = {"pool": pool, "function": function, **_arguments(args, kwargs or {}), **_spelled(options)}
    current = serving().current_request()
    if current is not None and current.job is not None:
        job["occurrence"] = _occurrence(current, job)
    return Outgoing(SERVER, "job.submit", body=json_body(job), spelling=_SUBMIT)


def _arguments(args, kwargs):
    if args and kwargs:
        raise TypeError("a job takes positional or keyword arguments, not both")
    if len(args) == 1 and isinstance(args[0], (bytes, bytearray, memoryview, Raw)):
        return {"payload": _bytes(args[0])}
    return {"payload": list(args) if args else kwargs} if args or kwargs else {}


def _bytes(value):
    """As a line of the protocol has them."""
    if isinstance(value, Raw):
        return {**_bytes(value.data), "contentType": value.content_type}
    return {"$bytes": b64encode(value).decode()}


# How often the same job was submitted by this request. A parent that is tried again submits the
# same ones again, perhaps in another order: the server knows them by this number.


def _occurrence(request, job):
    same = _digest(job)
    with _counting:
        count = request._submitted[same] = request._submitted.get(same, 0) + 1
        return count


def _digest(job):
    """Of everything but the time, which another attempt would reckon from another now."""
    from hashlib import sha256  # a worker that submits nothing starts without it

    timeless = {name: value for name, value in job.items() if name != "run_at"}
    return sha256(json.dumps(loads(json_body(timeless)), sort_keys=True).encode()).digest()


# Options: the name that the HTTP API has for each, and how its value is written there.


def _spelled(options):
    unknown = sorted(options.keys() - _OPTIONS.keys())
    if unknown:
        raise TypeError(f"a job has no option {unknown[0]!r}; there are {', '.join(_OPTIONS)}")
    given = {name: _OPTIONS[name](value) for name, value in options.items() if value is not None}
    if "parent_job_id" in options:
        given["parent_job_id"] = _id(options["parent_job_id"])
    return given


def _plain(value):
    return value


def _id(job):
    return job.id if isinstance(job, Job) else job


def _moment(value):
    if isinstance(value, datetime.datetime):
        if value.utcoffset() is None:
            raise ValueError("run_at needs a time zone, as datetime.now(timezone.utc) has one")
        return value.isoformat()
    return value


def _seconds(value):
    return value.total_seconds() if isinstance(value, datetime.timedelta) else value


def _names(value):
    return [value] if isinstance(value, str) else list(value)


def _backoff(steps):
    return {name: _seconds(value) for name, value in dict(steps).items()}


_OPTIONS = {
    "task_description": _plain,
    "worker_count": _plain,
    "priority": _plain,
    "run_at": _moment,
    "timeout": _seconds,
    "max_attempts": _plain,
    "backoff": _backoff,
    "retry_on": _names,
    "children": _plain,
    "session": _plain,
    "tags": dict,
    "workspace_id": _plain,
    "queue": _plain,
    "unique_key": _plain,
    "concurrency_key": _plain,
    "concurrency_limit": _plain,
    "parent_job_id": _id,
}
