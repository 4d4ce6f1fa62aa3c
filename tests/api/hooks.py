"""What a description of the API cannot say, and a tester must not do to the machine it runs on."""

import schemathesis

WORKERS = 3  # enough to see a pool grow
SECOND = 1


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    if "Ostler-Affinity" in headers and "Ostler-Session" not in headers:
        headers["Ostler-Session"] = "tester"
    if not isinstance(case.body, dict):
        return
    if case.path.endswith("/scale"):
        for key in ("size", "min", "max"):
            at_most(case.body, key, WORKERS)
    if case.path.endswith("/leases"):
        at_most(case.body, "workers", WORKERS)
        for key in ("ttl", "timeout"):
            soon(case.body, key)


def at_most(body, key, limit):
    value = body.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and limit < value <= 1000:
        body[key] = limit


def soon(body, key):
    value = body.setdefault(key, SECOND)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and SECOND < value <= 3600:
        body[key] = SECOND
