"""The functions of the pool. Each execution tells the journal that it began and that it ended well."""

import contextlib
import os
import time

import journal
import ostler

JOURNAL = journal.Journal(os.environ["CHAOS_JOURNAL"])

# Kills use attempts up too: these many are enough for most jobs to end well all the same.
PATIENT = {"max_attempts": 12, "backoff": {"initial": "20ms", "max": "200ms"}}


@contextlib.contextmanager
def execution():
    job = ostler.request().job
    facts = {"job": job.id, "attempt": job.attempt, "shard": job.shard, "pid": os.getpid()}
    JOURNAL.note("began", **facts)
    yield job
    JOURNAL.note("ended", **facts)


@ostler.function
def quick(token: str) -> str:
    with execution():
        return token


@ostler.function
def slow(token: str, seconds: float) -> str:
    with execution():
        time.sleep(seconds)
        return token


@ostler.function
def crash(token: str) -> str:
    """Takes its worker along, the first time."""
    with execution() as job:
        if job.attempt == 1:
            os._exit(7)
        return token


@ostler.function
def again(token: str) -> str:
    """Asks for another try, the first time."""
    with execution() as job:
        if job.attempt == 1:
            raise ostler.Retryable("not yet")
        return token


@ostler.function
def broken(token: str) -> str:
    with execution():
        raise ValueError("never")


@ostler.function
def shard(token: str, seconds: float) -> list:
    """One of several at once; the last of them crashes, the first time."""
    with execution() as job:
        time.sleep(seconds)
        if job.attempt == 1 and job.shard == job.shard_count - 1 and token.endswith("0"):
            os._exit(7)
        return [token, job.shard]


@ostler.function
def parent(token: str, width: int, depth: int) -> str:
    """Has children, and they have some; the first time it crashes between two of them."""
    with execution() as job:
        for slot in range(width):
            if job.attempt == 1 and slot == width // 2:
                os._exit(7)
            child(f"{token}.{slot}", slot, width, depth - 1)
        return token


def child(token, slot, width, depth):
    function = "parent" if depth else "quick"
    arguments = {"token": token, "width": width, "depth": depth} if depth else {"token": token}
    tags = {"kind": "child", "slot": str(slot)}
    ostler.submit_job("work", function, kwargs=arguments, tags=tags, **PATIENT)
