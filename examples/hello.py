import ostler


@ostler.function
def greet(name: str = "world") -> str:
    return f"hello, {name}"


@ostler.function
def count(n: int):  # a generator streams
    for i in range(n):
        yield i
