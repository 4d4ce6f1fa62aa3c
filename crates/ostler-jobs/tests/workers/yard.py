"""The directory in which workers leave traces and wait for signs."""

import os
import time

YARD = os.environ.get("YARD", "")


def note(file: str, line: str) -> None:
    with open(os.path.join(YARD, file), "a") as trace:
        trace.write(line + "\n")


def is_given(sign: str) -> bool:
    return os.path.exists(os.path.join(YARD, sign))


def await_sign(sign: str) -> None:
    while not is_given(sign):
        time.sleep(0.002)


def lines(file: str) -> int:
    try:
        with open(os.path.join(YARD, file)) as trace:
            return len(trace.readlines())
    except FileNotFoundError:
        return 0
