"""Functions that know whose they are."""

import os
import time

import ostler

kept = {}


@ostler.function
def pid() -> int:
    return os.getpid()


@ostler.function
def remember(value):
    """In the memory of this process only."""
    kept[ostler.request().session] = value
    return os.getpid()


@ostler.function
def recall():
    return kept.get(ostler.request().session)


@ostler.function
def note(key: str, value):
    ostler.session()[key] = value


@ostler.function
def pids(n: int):
    for _ in range(n):
        yield os.getpid()


@ostler.function
def hold(name: str):
    """Leaves its name, then waits for a sign."""
    with open("begun", "a") as ledger:
        ledger.write(name + "\n")
    while not os.path.exists("go"):
        time.sleep(0.002)
    return os.getpid()


@ostler.function
def die():
    os._exit(7)
