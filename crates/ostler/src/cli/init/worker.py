"""The functions of the pool `POOL`: each worker imports this file once and stays warm."""

import ostler


@ostler.function
def greet(name: str = "world") -> str:
    """Say hello."""
    return f"hello, {name}"


@ostler.function
def count(n: int):
    """Stream the numbers below n: a generator's values arrive one by one."""
    for i in range(n):
        yield i
