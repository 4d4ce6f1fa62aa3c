import os
import time

import ostler


@ostler.function
def greet(name: str = "world") -> str:
    return f"hello, {name}"


@ostler.function
def count(n: int):
    for i in range(n):
        yield i


@ostler.function
def add(a: int, b: int) -> int:
    return a + b


@ostler.function
def reverse(data: bytes) -> bytes:
    return data[::-1]


@ostler.function
def fail():
    raise ValueError("as asked")


@ostler.function
def die():
    import sys
    print("last words", file=sys.stderr, flush=True)
    os._exit(7)


@ostler.function
def hold(name: str):
    """Leaves its name, then waits for a sign."""
    with open("begun", "a") as ledger:
        ledger.write(name + "\n")
    try:
        while not os.path.exists("go"):
            time.sleep(0.002)
    except BaseException as end:
        with open("interrupted", "a") as ledger:
            ledger.write(type(end).__name__ + "\n")
        raise
    return name


@ostler.function
def break_after(n: int):
    yield from range(n)
    os._exit(1)


@ostler.function
def request_id():
    return ostler.request().id


@ostler.function
def first_then_wait():
    """The second chunk comes with a sign."""
    yield "first"
    while not os.path.exists("go"):
        time.sleep(0.002)
    yield "second"


@ostler.function
def report(n: int):
    """Says n times how far it is, at length."""
    for i in range(n):
        ostler.request().progress({"step": i, "words": "x" * 2000})


@ostler.function
def nap(seconds: float):
    time.sleep(seconds)
