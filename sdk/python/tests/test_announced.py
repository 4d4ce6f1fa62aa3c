"""What a function announces of its arguments is what it accepts."""

import dataclasses
import json
import random
import sys
import unittest
from enum import Enum, IntEnum
from typing import (
    Any, Dict, FrozenSet, List, Literal, Mapping, NewType, Optional, Sequence, Set, Tuple, TypedDict, Union,
)

import harness  # noqa: F401  puts the package on the path
from drawing import Impossible, draw, spoil, valid
from ostler.arguments import Parameters
from ostler.errors import Unfit

ROUNDS = 150


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    PAIR = (1, 2)
    NOT = None
    YES = True
    ONE = "1"
    TABLE = {"a": [1]}


class Place(TypedDict):
    x: int
    label: Optional[str]


class Partial(Place, total=False):
    tags: List[str]


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0
    name: str = None
    colours: List[Colour] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Line:
    ends: Tuple[Point, Point]
    places: Dict[str, Place] = dataclasses.field(default_factory=dict)


Id = NewType("Id", int)

HINTS = [
    int, float, str, bool, None, list, dict, tuple, Any, object, Id,
    Literal["a", "b"], Literal[1, True, None], Literal[Colour.RED, 2], Literal[b"x", "a"],
    Colour, Level, Mixed, Optional[Colour],
    List[int], list[float], List[List[bool]], Sequence[str], List[Any], List[bytes], List[Optional[int]],
    Dict[str, int], Dict[str, Any], Mapping[str, List[int]], Dict[int, str], Dict[Colour, int],
    Dict[Literal["x", "y"], Any], Dict[Any, bool],
    Tuple[int, str], Tuple[int, ...], Tuple[()], Tuple[Literal["a"], List[int]], Tuple,
    Set[int], FrozenSet[Colour], Set[Any],
    Optional[int], Union[int, str], Union[int, float], Union[List[int], Dict[str, int]],
    Union[Colour, int], Union[str, bytes], Union[Point, Colour], Optional[List[Optional[str]]],
    Union[int, Any], Union[Place, List[Place]],
    Place, Partial, Point, Line, List[Point], Dict[str, Partial],
]
if sys.version_info >= (3, 10):
    HINTS += [int | None, list[int | str], Colour | dict[str, int] | None]


def positional_form(schema):
    """The schema of an array of arguments; None where none will do."""
    names = schema.get("x-ostler-positional", list(schema["properties"]))
    if not set(schema["required"]) <= set(names):
        return None
    form = {"type": "array", "prefixItems": [schema["properties"][name] for name in names]}
    least = max((names.index(name) + 1 for name in schema["required"]), default=0)
    if "x-ostler-rest" in schema:
        return {**form, "minItems": least, "items": schema["x-ostler-rest"]}
    return {**form, "minItems": least, "maxItems": len(names)}


class Taker:
    """A function with one parameter that matters, as its callers know it."""

    def __init__(self, hint, *default):
        def fn(given, unused=0):
            return None

        fn.__annotations__ = {"given": hint}
        fn.__defaults__ = (*default, 0)
        parameters = Parameters(fn)
        self.hint = hint
        self.schema = parameters.schema()["properties"]["given"]
        self.call = parameters.json_caller()


class Announced(unittest.TestCase):
    def accepts(self, call, value):
        try:
            call(json.dumps(value).encode())
        except Unfit as unfit:
            self.assertRegex(str(unfit), r"^\w+: (takes |(\w+|\".*\")(\[.*\]|\.\w+)* (must|is|has) )")
            return False
        return True

    def judge(self, taker, value):
        """What fits the schema is accepted, what does not is refused, in each form."""
        fits = valid(taker.schema, value)
        for body in ({"given": value}, [value], {"given": value, "unused": 1}):
            message = f"{taker.hint} is announced as {taker.schema} and got {body}"
            self.assertEqual(self.accepts(taker.call, body), fits, message)
        return fits

    def try_out(self, taker, rng, rounds):
        """How many of the values near fitting ones were refused."""
        refused = 0
        for _ in range(rounds):
            try:
                value = draw(taker.schema, rng)
            except Impossible:
                continue
            self.assertTrue(self.judge(taker, value), (taker.hint, value))
            refused += not self.judge(taker, spoil(value, rng))
        return refused

    def test_each_hint_accepts_what_it_announces_and_no_more(self):
        for hint in HINTS:
            taker = Taker(hint)
            refused = self.try_out(taker, random.Random(str(taker.schema)), ROUNDS)
            self.assertEqual(refused > 0, taker.schema != {}, f"{hint}: {refused} refused")

    def test_hints_inside_hints_do_so_too(self):
        rng = random.Random(7)
        wraps = [
            lambda a, b: List[a], lambda a, b: Dict[str, a], lambda a, b: Tuple[a, b],
            lambda a, b: Optional[a], lambda a, b: Union[a, b], lambda a, b: Tuple[a, ...],
        ]
        for _ in range(ROUNDS):
            hint = rng.choice(HINTS)
            for _ in range(rng.randint(1, 3)):
                hint = rng.choice(wraps)(hint, rng.choice(HINTS))
            self.try_out(Taker(hint), rng, 10)

    def test_whole_signatures_do_so_too(self):
        def star(a: int, *rest: List[int], b: Colour = Colour.RED, **more: Optional[bool]):
            return None

        def ordered(a: Literal["x"], b: Point, /, c: int = 0, *, d: Tuple[int, int]):
            return None

        def plain(a: int, b: str = "", *, c: Optional[float] = None):
            return None

        for fn in (star, ordered, plain):
            parameters, rng = Parameters(fn), random.Random(fn.__name__)
            call, schema = parameters.json_caller(), parameters.schema()
            array = positional_form(schema)
            schema = {key: value for key, value in schema.items() if not key.startswith("x-")}
            seen = set()
            for _ in range(ROUNDS * 4):
                body = draw(rng.choice([schema, array]) if array else schema, rng)
                body = spoil(body, rng) if rng.random() < 0.5 else body
                if type(body) in (list, dict):
                    fits = valid(schema if type(body) is dict else array or False, body)
                    self.assertEqual(self.accepts(call, body), fits, (fn.__name__, body))
                    seen.add((type(body), fits))
            self.assertGreaterEqual(len(seen), 3, seen)

    def test_none_as_a_default_is_announced_and_accepted(self):
        for hint in HINTS:
            taker = Taker(hint, None)
            self.assertTrue(self.judge(taker, None))
            self.assertIsNone(taker.schema["default"])

    def test_a_default_that_does_not_fit_is_not_announced(self):
        self.assertEqual(Taker(int, "auto").schema, {"type": "integer"})
        self.assertEqual(Taker(Colour, Colour.RED).schema["default"], "red")
        self.assertNotIn("default", Taker(Literal["a"], "b").schema)
        point = Taker(Point, Point(1.5)).schema["default"]
        self.assertEqual(point, {"x": 1.5, "y": 0.0, "name": None, "colours": []})

    def test_announcements_are_json(self):
        for hint in HINTS:
            json.dumps(Taker(hint).schema, allow_nan=False)


if __name__ == "__main__":
    unittest.main()
