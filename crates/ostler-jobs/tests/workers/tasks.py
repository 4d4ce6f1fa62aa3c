"""Functions that the tests of jobs run. Workers leave traces in a yard and wait there for signs."""

import asyncio
import os
import time

import ostler

from yard import await_sign, is_given, lines, note


@ostler.function
def echo(value=None):
    return value


@ostler.function
def run(name: str):
    """Leaves its name."""
    note("run", name)
    return name


@ostler.function
def who():
    job = ostler.request().job
    return {
        "id": job.id,
        "attempt": job.attempt,
        "shard": job.shard,
        "shard_count": job.shard_count,
        "depth": job.depth,
        "pid": os.getpid(),
    }


@ostler.function
def hold(name: str):
    """Leaves its name, then waits for a sign."""
    note("begun", name)
    await_sign("go")
    note("ended", name)
    return name


@ostler.function
async def hold_together(name: str):
    """As `hold`, beside others."""
    note("begun", name)
    while not is_given("go"):
        await asyncio.sleep(0.05)
    return name


@ostler.function
def retry_until(attempt: int):
    note("attempts", str(ostler.request().job.attempt))
    if ostler.request().job.attempt < attempt:
        raise ostler.Retryable("not yet")
    return ostler.request().job.attempt


@ostler.function
def fail(until: int = 0):
    note("attempts", str(ostler.request().job.attempt))
    if ostler.request().job.attempt != until:
        raise ValueError("as asked")
    return "at last"


@ostler.function
def die(until: int = 0):
    note("attempts", str(ostler.request().job.attempt))
    if ostler.request().job.attempt != until:
        os._exit(3)
    return "survived"


@ostler.function
def needs(number: int):
    return number


@ostler.function
def count(n: int):
    for i in range(n):
        yield i


@ostler.function
def says():
    request = ostler.request()
    request.progress({"done": 1})
    request.log("a line")
    request.progress({"done": 2})
    return "said"


@ostler.function
def only_one_fails():
    """The second shard fails once the first is at it."""
    if ostler.request().job.shard == 0:
        note("begun", "first")
        while True:
            time.sleep(0.002)
    while lines("begun") == 0:
        time.sleep(0.002)
    raise ValueError("the second shard")


@ostler.function
def descend(levels: int):
    """Its child is itself, one level lower."""
    note("run", f"{levels} {ostler.request().job.depth}")
    if levels:
        ostler.submit("test", "descend", levels - 1)
    return levels


@ostler.function
def scatter(n: int, attempts: int):
    """Submits the same children in each attempt; one of them twice."""
    request = ostler.request()
    jobs = [ostler.submit("test", "run", f"child {i}") for i in range(n)]
    jobs.append(ostler.submit("test", "run", "child 0"))
    if request.job.attempt < attempts:
        raise ostler.Retryable("once more")
    return [job.known for job in jobs]


@ostler.function
def hands_in_what_is_hard_to_read():
    """How many children came of so many different payloads."""
    deep = []
    for _ in range(200):
        deep = [deep]
    payloads = [2**70, 2**70 + 1, 10**400, deep]
    jobs = [ostler.submit("test", "echo", payload) for payload in payloads]
    return [len(jobs), len({job.id for job in jobs})]


@ostler.function
def asks_about(id: str):
    try:
        return ostler.Job(id).refresh()
    except ostler.CallError as error:
        return error.code


@ostler.function
def hands_in(options: dict):
    """The id of what it has submitted and cancelled, or the code of the refusal."""
    try:
        job = ostler.submit_job(options.pop("pool", "test"), "hold", ["child"], **options)
    except ostler.CallError as error:
        return error.code
    job.cancel("not needed")
    return job.id
