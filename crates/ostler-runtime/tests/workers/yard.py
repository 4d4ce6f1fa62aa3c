"""The directory in which workers leave traces and wait for signs."""

import os
import time

YARD = os.environ.get("YARD", "")


def note(file: str, line: str) -> None:
    with open(os.path.join(YARD, file), "a") as ledger:
        ledger.write(line + "\n")


def given(sign: str) -> bool:
    return os.path.exists(os.path.join(YARD, sign))


def await_sign(sign: str) -> None:
    while not given(sign):
        time.sleep(0.002)


def await_lines(file: str, n: int) -> None:
    while len(lines(file)) < n:
        time.sleep(0.002)


def lines(file: str) -> list:
    try:
        with open(os.path.join(YARD, file)) as ledger:
            return ledger.readlines()
    except FileNotFoundError:
        return []
