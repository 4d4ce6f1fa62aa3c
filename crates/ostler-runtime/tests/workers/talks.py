"""Functions that print and measure."""

import os
import sys

import ostler

from yard import await_sign, note

print("warming up")


@ostler.function
def say(line: str):
    print(line)
    print(line.upper(), file=sys.stderr)
    note("begun", line)
    await_sign("go")


@ostler.function
def chatter(n: int):
    for i in range(n):
        print(f"line {i} of many", flush=True)


@ostler.function
def die():
    print("farewell", flush=True)
    os._exit(1)


@ostler.function
def measure(n: int):
    ostler.metric("batches", n)
    ostler.metric("temperature", n / 2, device="gpu0")
    for i in range(n):
        ostler.metric("series", i, number=i)
