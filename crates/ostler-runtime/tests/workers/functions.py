"""Functions that the tests of pools call. Workers leave traces in a yard and wait there for signs."""

import os
import time

from concurrent.futures import ThreadPoolExecutor

import ostler

YARD = os.environ.get("YARD", "")


def note(file: str, line: str) -> None:
    with open(os.path.join(YARD, file), "a") as ledger:
        ledger.write(line + "\n")


def await_sign(sign: str) -> None:
    while not os.path.exists(os.path.join(YARD, sign)):
        time.sleep(0.002)


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


@ostler.function
def calls_back():
    return ostler.call("other", "function", 1)


@ostler.function
def calls_back_from_a_thread():
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(ostler.call, "other", "function", 1).result()
