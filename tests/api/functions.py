"""Functions of every kind that a description has to tell apart. None of them raises."""

import dataclasses
import enum
import typing

import ostler


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Label(typing.TypedDict):
    text: str
    colour: typing.Optional[Colour]


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0
    labels: typing.List[Label] = dataclasses.field(default_factory=list)


@ostler.function
def nothing() -> None:
    """Takes nothing and gives nothing."""


@ostler.function
def greet(name: str = "world", times: int = 1) -> str:
    """Says hello."""
    return f"hello, {name}" * min(max(times, 0), 10)


@ostler.function
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@ostler.function
def scale(value: float, by: typing.Optional[float] = None) -> float:
    """A number and perhaps another one."""
    return value if by is None else by


@ostler.function
def flags(on: bool, tags: list, options: dict) -> list:
    """Takes a truth, a list and an object."""
    return [on, len(tags), len(options)]


@ostler.function
def anything(value):
    """Takes whatever there is, bytes included."""
    return type(value).__name__


@ostler.function
def keywords(first: str, **others) -> int:
    """Takes names that nobody foresaw."""
    return len(others)


@ostler.function
def count(n: int):
    """Streams a few numbers."""
    yield from range(min(max(n, 0), 10))


@ostler.function
def reverse(data: bytes) -> bytes:
    """Bytes in, bytes out."""
    return data[::-1]


@ostler.function
def measure(data: bytes, unit: str = "byte") -> str:
    """Bytes, and something beside them."""
    return f"{len(data)} {unit}"


@ostler.function
def choose(mode: typing.Literal["fast", "safe", 3, None], colour: Colour = Colour.RED) -> str:
    """Some values and no others."""
    return colour.name


@ostler.function
def gather(
    numbers: typing.List[int],
    table: typing.Dict[str, typing.List[bool]],
    by_number: typing.Dict[int, str],
    pair: typing.Tuple[int, typing.Optional[str]] = (0, None),
) -> int:
    """Values inside of values."""
    return len(numbers) + len(table) + len(by_number) + len(pair)


@ostler.function
def outline(points: typing.List[Point], closed: bool = None) -> float:
    """Objects with fields of their own."""
    return float(sum(len(point.labels) for point in points))


@ostler.function
def either(value: typing.Union[int, typing.List[str], Point, Colour]) -> str:
    """One of several."""
    return type(value).__name__


@ostler.function
def named(first: int, *, second: str = "") -> str:
    """One by its place or its name, one by its name only."""
    return second


@ostler.function
def total(first: int, *more: int) -> int:
    """As many as there are."""
    return first + sum(more)
