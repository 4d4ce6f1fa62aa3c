"""Functions that the tests of the API call. Workers leave traces in a yard and wait there for signs."""

import os
import time

import ostler

YARD = os.environ.get("YARD", "")


def note(file, line):
    with open(os.path.join(YARD, file), "a") as trace:
        trace.write(line + "\n")


@ostler.function
def echo(value=None):
    return value


@ostler.function
def run(name: str):
    """Leaves its name."""
    note("run", name)
    return name


@ostler.function
def hold(name: str):
    """Leaves its name, then waits for a sign."""
    note("begun", name)
    while not os.path.exists(os.path.join(YARD, "go")):
        time.sleep(0.002)
    note("ended", name)
    return name


@ostler.function
def fail():
    note("run", "fail")
    raise ValueError("as asked")


@ostler.function
def large(size: int):
    return "x" * size


@ostler.function
def steps(n: int):
    """Says how far it is, and yields."""
    for i in range(n):
        ostler.request().progress({"done": i + 1, "of": n})
        yield {"step": i}


@ostler.function
def picture():
    return b"\x89PNG"
