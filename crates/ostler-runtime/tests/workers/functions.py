"""Functions that the tests of pools call. Workers leave traces in a yard and wait there for signs."""

import functools
import os
import time

import ostler

from yard import YARD, await_sign, note


@ostler.function
def echo(value=None):
    return value


@ostler.function
def letters(n: int) -> str:
    return "x" * n


@ostler.function
def count(n: int):
    for i in range(n):
        yield i


@ostler.function
def produce(n: int):
    """Each chunk leaves a byte in the yard before it is handed over."""
    ledger = os.open(os.path.join(YARD, "produced"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for i in range(n):
        os.write(ledger, b".")
        yield i


@ostler.function
def produce_and_die(k: int):
    """Dies after k chunks, once their reader has them."""
    yield from range(k)
    await_sign("go")
    os._exit(1)


@ostler.function
def await_token(number: int):
    """Ends when its number comes through the pipe; smaller ones are of races that are over."""
    pipe = _pipe()
    while int.from_bytes(os.read(pipe, 8), "little") != number:
        pass
    return number


@functools.lru_cache(maxsize=None)
def _pipe():
    return os.open(os.path.join(YARD, "pipe"), os.O_RDONLY)


@ostler.function
def fails_at_first():
    """Says that trying again may work, and is right."""
    if ostler.request().attempt == 1:
        raise ostler.Retryable("not yet")
    return ostler.request().attempt


@ostler.function
def wait(seconds: float = 60):
    time.sleep(seconds)
    return "waited"


@ostler.function
def fail():
    raise ValueError("as asked")


@ostler.function
def die(code: int = 1):
    os._exit(code)


@ostler.function
def hold(name: str):
    """Leaves its name, then waits for a sign."""
    note("begun", f"{name} {os.environ['OSTLER_GENERATION']}")
    await_sign("go")
    return name


@ostler.function
def hold_and_die():
    note("begun", "doomed")
    await_sign("go")
    os._exit(1)


@ostler.function
def record(name: str):
    note("ledger", f"{name} {os.environ['OSTLER_WORKER']}#{os.environ['OSTLER_GENERATION']}")
    return name
