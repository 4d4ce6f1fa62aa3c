"""The functions that the examples beside this file call."""

import os

import ostler


@ostler.function
def greet(name: str = "world") -> str:
    return f"hello, {name}"


@ostler.function
def count(n: int):
    for i in range(n):
        yield i


@ostler.function
def total(prices: list) -> float:
    """Asks the embedding program for the rate."""
    rate = ostler.call("host", "rate", currency="EUR")
    return sum(prices) * rate


kept = []


@ostler.function
def remember(thing: str) -> list:
    """What this process was told so far, and who it is."""
    kept.append(thing)
    return [os.getpid(), kept]
