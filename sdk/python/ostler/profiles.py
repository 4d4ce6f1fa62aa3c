"""Which kind of worker the environment asks for."""

from .functions import registry
from .process import Worker
from .thread_safety import CHECKS

CAPACITIES = {"process": 1, "thread": 8, "async": 64}


class Unserviceable(Exception):
    """The environment or the functions do not allow what was asked for."""


def make(environ, data, control, binary, limit):
    """The worker of OSTLER_PROFILE; raises Unserviceable."""
    refuse_if(registry.objection())
    profile = chosen(environ, "OSTLER_PROFILE", tuple(CAPACITIES), "process")
    if profile == "process":
        return Worker(registry, data, control, binary, limit)
    capacity = capacity_of(environ, CAPACITIES[profile])
    if profile == "async":
        from .tasks import AsyncWorker

        return AsyncWorker(registry, data, control, capacity, binary, limit)
    from .threads import ThreadWorker

    checks = chosen(environ, "OSTLER_THREAD_SAFETY", CHECKS, "warn")
    worker = ThreadWorker(registry, data, control, capacity, binary, limit, checks)
    refuse_if(worker.thread_safety.objection(registry.functions))
    return worker


def refuse_if(objection):
    if objection:
        raise Unserviceable(objection)


def chosen(environ, name, allowed, default):
    value = environ.get(name) or default
    if value not in allowed:
        raise Unserviceable(f"{name} is {value!r}; use one of {', '.join(allowed)}")
    return value


def capacity_of(environ, default):
    value = environ.get("OSTLER_CAPACITY") or str(default)
    if not value.isdigit() or int(value) < 1:
        raise Unserviceable(f"OSTLER_CAPACITY is {value!r}; use a number from 1 on")
    return int(value)
