"""What a description of the API cannot say, and a tester must not do to the machine it runs on."""

import uuid

import schemathesis

WORKERS = 3  # enough to see a pool grow
SECOND = 1


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    if "Ostler-Affinity" in headers and "Ostler-Session" not in headers:
        headers["Ostler-Session"] = "tester"
    one_key_each(headers, case.body)
    if streams(headers) or streams(kwargs.get("headers") or {}):
        headers.pop("Idempotency-Key", None)
    if not isinstance(case.body, dict):
        return
    if case.path == "/api/workers":
        meant(case.body, "pool", "spare")
    if case.path.startswith("/api/schedules"):
        meant(case.body, "cron", "@daily")
        meant(case.body, "timezone", "UTC")
    for job in jobs_in(case.body):
        meant(job, "pool", "work")
        meant(job, "function", "nothing")
    if case.path.endswith("/scale"):
        for key in ("size", "min", "max"):
            at_most(case.body, key, WORKERS)
    if case.path.endswith("/leases"):
        at_most(case.body, "workers", WORKERS)
        for key in ("ttl", "timeout"):
            soon(case.body, key)


def streams(headers):
    """A stream is not kept under a key."""
    return headers.get("Accept") in ("text/event-stream", "application/x-ndjson")


def one_key_each(headers, body):
    """What is drawn comes again, and then it is another request under the same key."""
    key = uuid.uuid4().hex
    given = headers.get("Idempotency-Key")
    if isinstance(given, str) and fits(given):
        headers["Idempotency-Key"] = key
    if isinstance(body, dict) and isinstance(body.get("request_id"), str) and fits(body["request_id"]):
        body["request_id"] = key


def fits(key):
    return 1 <= len(key) <= 255 and key.isascii() and key.isprintable()


def jobs_in(body):
    jobs = body.get("jobs")
    return [job for job in [body, body.get("job"), *(jobs if isinstance(jobs, list) else [])] if isinstance(job, dict)]


def meant(body, key, value):
    """In place of a text that fits the schema and means nothing."""
    if isinstance(body.get(key), str) and 1 <= len(body[key]) <= 100:
        body[key] = value


def at_most(body, key, limit):
    value = body.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and limit < value <= 1000:
        body[key] = limit


def soon(body, key):
    value = body.setdefault(key, SECOND)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and SECOND < value <= 3600:
        body[key] = SECOND
