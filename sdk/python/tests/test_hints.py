"""What hints make of arguments, and what is said of those that do not fit."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
import typing
import unittest
from typing import Dict, List, Literal, Optional, Set, Tuple, TypedDict, Union

import harness
from ostler.arguments import Parameters
from ostler.errors import Malformed, Unfit

if typing.TYPE_CHECKING:
    from nowhere import Missing


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.Flag):
    READ = 1
    WRITE = 2


class Opaque(enum.Enum):
    THING = object()


class Place(TypedDict):
    x: int
    colour: Colour


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 0

    def __post_init__(self):
        if self.x < 0:
            raise ValueError("x is left of everything")


@dataclasses.dataclass
class Tree:
    name: str
    children: List[Tree] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Shape:
    points: List[Point]
    place: Optional[Place] = None


@dataclasses.dataclass
class Seeded:
    x: int
    seed: dataclasses.InitVar[int] = 0


def taking(hint, *default):
    def fn(given, unused=0):
        return given

    fn.__annotations__ = {"given": hint}
    fn.__defaults__ = (*default, 0)
    return fn


def call(fn, value):
    body = value if type(value) is bytes else json.dumps(value).encode()
    return Parameters(fn).json_caller()(body)


def given(hint, value):
    return call(taking(hint), {"given": value})


def announced(fn, name="given"):
    return Parameters(fn).schema()["properties"][name]


class Refusals(unittest.TestCase):
    def refusal(self, fn, value):
        with self.assertRaises(Unfit) as caught:
            call(fn, value)
        return str(caught.exception)

    def refused(self, hint, value):
        return self.refusal(taking(hint), {"given": value})

    def test_it_names_the_place_inside_the_argument(self):
        for hint, value, said in (
            (List[int], [1, 2, "x"], "given[2] must be int, not str"),
            (List[List[int]], [[], [None]], "given[1][0] must be int, not None"),
            (Dict[str, int], {"a b": True}, 'given["a b"] must be int, not bool'),
            (Dict[int, str], {"x": "y"}, 'given has the key "x"; keys must be int'),
            (Tuple[int, str], [1], "given must be tuple[int, str], not 1 items"),
            (Optional[List[int]], ["x"], "given[0] must be int, not str"),
            (Literal["a", "b"], "c", 'given must be one of "a", "b", not "c"'),
            (Literal["a"], 1, 'given must be "a", not 1'),
            (Optional[Colour], "green", 'given must be one of "red", "blue" or None, not str'),
            (Place, {"x": 1}, "given.colour is required"),
            (Place, {"x": 1, "colour": "red", "z": 1}, 'given["z"] is unknown'),
            (Point, [1, 2], "given must be Point (an object), not list"),
            (Shape, {"points": [{"x": "1"}]}, "given.points[0].x must be int, not str"),
            (Shape, {"points": [], "place": {"x": 1, "colour": 2}}, "given.place.colour must be one of"),
            (Union[int, List[int], None], {}, "given must be int or list[int] or None, not dict"),
            (List[bytes], ["x"], "given[0] must be bytes, which JSON cannot carry"),
        ):
            self.assertIn(said, self.refused(hint, value))

    def test_it_names_all_arguments_that_do_not_fit(self):
        def fn(a: List[int], b: Literal["x"], *, c: int):
            return None

        said = self.refusal(fn, {"a": [""], "b": "y", "d": 1})
        for part in ("c is required", "d is unknown", "a[0] must be int", 'b must be "x"'):
            self.assertIn(part, said)

    def test_it_stays_short(self):
        def fn(**more: int):
            return None

        said = self.refusal(fn, {f"n{i}" * 1000: "x" for i in range(1000)})
        self.assertIn("and 980 more", said)
        self.assertLess(len(said), 2000)
        self.assertLess(len(self.refused(Literal["a"], "b" * 10**6)), 200)
        self.assertLess(len(self.refused(Dict[str, int], {"b" * 10**6: ""})), 200)
        self.assertLess(len(self.refused(Place, {"b" * 10**6: "", "x": 1, "colour": "red"})), 200)

    def test_what_a_dataclass_refuses_does_not_fit(self):
        self.assertIn("given is no Point: x is left of everything", self.refused(Point, {"x": -1}))
        self.assertIn("given[1] is no Point", self.refused(List[Point], [{"x": 1}, {"x": -1}]))

    def test_numbers_are_told_apart(self):
        self.assertIn("not bool", self.refused(int, True))
        self.assertIn("not bool", self.refused(float, False))
        self.assertIn("not float", self.refused(int, 1.5))
        self.assertIn("not float", self.refusal(taking(int), b'{"given": 1e400}'))
        self.assertIn("must be 1, not true", self.refused(Literal[1], True))
        for text in (b"NaN", b"[Infinity]", b'{"given": -Infinity}'):
            with self.assertRaises(Malformed):
                call(taking(float), text)

    def test_open_ended_signatures_are_checked(self):
        def fn(a: int, *rest: int, **more: bool):
            return [a, rest, more]

        self.assertEqual(call(fn, [1, 2, 3]), [1, (2, 3), {}])
        self.assertEqual(call(fn, {"a": 1, "b": True}), [1, (), {"b": True}])
        self.assertIn("rest[1] must be int, not str", self.refusal(fn, [1, 2, "x"]))
        self.assertIn("b must be bool, not int", self.refusal(fn, {"a": 1, "b": 1}))


class Given(unittest.TestCase):
    def test_functions_get_what_their_hints_say(self):
        self.assertIs(given(Colour, "red"), Colour.RED)
        self.assertIs(given(Level, 1.0), Level.LOW)
        self.assertIs(given(Literal[Colour.BLUE, None], "blue"), Colour.BLUE)
        self.assertEqual(given(Tuple[int, Colour], [1, "red"]), (1, Colour.RED))
        self.assertEqual(given(Tuple[int, ...], [1, 2]), (1, 2))
        self.assertEqual(given(Set[str], ["a", "a"]), {"a"})
        self.assertEqual(given(Dict[int, Colour], {"-3": "red"}), {-3: Colour.RED})
        self.assertEqual(given(Place, {"x": 2.0, "colour": "red"}), {"x": 2, "colour": Colour.RED})
        self.assertEqual(given(List[Point], [{"x": 1}, {"x": 2, "y": 3}]), [Point(1), Point(2, 3)])
        shape = given(Shape, {"points": [{"x": 1}], "place": {"x": 1, "colour": "blue"}})
        self.assertEqual(shape, Shape([Point(1)], {"x": 1, "colour": Colour.BLUE}))

    def test_numbers_keep_their_value(self):
        whole = given(int, 3.0)
        self.assertEqual((whole, type(whole)), (3, int))
        self.assertEqual(given(int, 10**40), 10**40)
        self.assertIs(type(given(float, 1)), int)
        self.assertIs(type(given(Union[int, float], 1.0)), float)
        self.assertIs(type(given(Union[int, float, List[int]], 1.0)), float)
        self.assertIs(type(given(Union[int, str], 1.0)), int)

    def test_the_first_member_of_a_union_that_fits_is_taken(self):
        self.assertIs(given(Union[Colour, str], "red"), Colour.RED)
        self.assertEqual(given(Union[Colour, str], "x"), "x")
        self.assertEqual(given(Union[str, Colour], "red"), "red")
        self.assertEqual(given(Union[Place, Point], {"x": 1}), Point(1))

    def test_parameters_by_position_only_can_be_named(self):
        def fn(a: Colour = Colour.RED, b: int = 2, /, c: int = 3):
            return [a, b, c]

        self.assertEqual(call(fn, {"b": 5}), [Colour.RED, 5, 3])
        self.assertEqual(call(fn, {"c": 5, "a": "blue"}), [Colour.BLUE, 2, 5])
        self.assertEqual(call(fn, {}), [Colour.RED, 2, 3])

    def test_a_body_may_be_bytes_or_nothing(self):
        def fn(data: Optional[bytes] = None, size: int = 0):
            return data

        def alone(data: bytearray = None):
            return data

        parameters = Parameters(fn)
        self.assertEqual(parameters.raw_caller()(b"x"), b"x")
        self.assertIsNone(call(fn, {"data": None, "size": 1}))
        with self.assertRaises(Unfit):
            call(fn, {"data": "x"})
        either = [{"type": "string", "format": "binary"}, {"type": "null"}]
        schema = {"format": "binary", "anyOf": either, "default": None}
        self.assertEqual(announced(fn, "data"), schema)
        self.assertEqual(announced(taking(Union[str, bytes])), {"type": "string"})
        self.assertEqual(Parameters(alone).raw_caller()(b"x"), bytearray(b"x"))
        self.assertIsNone(Parameters(alone).raw_caller()(b""))


class Hints(unittest.TestCase):
    def test_text_is_read_as_the_hint_that_it_names(self):
        def fn(given: "Optional[List[Colour]]", place: "Place" = None):
            return given, place

        self.assertEqual(call(fn, [["red"]]), ([Colour.RED], None))
        self.assertEqual(announced(fn, "place")["anyOf"][1], {"type": "null"})

    def test_one_that_cannot_be_read_leaves_the_others(self):
        def fn(a: Missing, b: Colour, c: List[Missing] = ()):
            return a, b, c

        self.assertEqual(call(fn, {"a": {}, "b": "red"}), ({}, Colour.RED, ()))
        self.assertEqual(announced(fn, "a"), {})
        self.assertEqual(announced(fn, "b"), {"enum": ["red", "blue"]})

        @dataclasses.dataclass
        class Half:
            a: Missing
            b: int

        self.assertEqual(given(Half, {"a": [1], "b": 2.0}), Half([1], 2))
        self.assertEqual(announced(taking(Half))["properties"], {"a": {}, "b": {"type": "integer"}})

        class Other(TypedDict):
            a: Missing
            b: int

        self.assertEqual(given(Other, {"a": [1], "b": 2.0}), {"a": [1], "b": 2})

    def test_what_cannot_be_judged_is_anything(self):
        class Own:
            pass

        for hint in (Own, Mode, Opaque, Seeded, complex, typing.TypeVar("T"), Set[List[int]], List, 5, [], "?"):
            schema = announced(taking(hint))
            self.assertIn(schema, ({}, {"type": "array"}))
            self.assertEqual(given(hint, [[1]]), [[1]])

    def test_a_record_may_contain_itself(self):
        tree = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
        self.assertEqual(given(Tree, tree), Tree("a", [Tree("b", [Tree("c")])]))
        inner = announced(taking(Tree))["properties"]["children"]["items"]
        self.assertEqual(inner, {"type": "object"})
        tree["children"][0]["children"][0]["name"] = 1
        with self.assertRaisesRegex(Unfit, r"given\.children\[0\]\.children\[0\]\.name must be str"):
            given(Tree, tree)

    def test_announcements_end_where_records_do_not(self):
        inner = Point
        for _ in range(20):
            inner = dataclasses.make_dataclass("Outer", [("a", inner), ("b", inner)])
        schema, value, depth = announced(taking(inner)), {"x": "1"}, 0
        while "properties" in schema:
            schema, depth = schema["properties"]["a"], depth + 1
        self.assertEqual((schema, depth), ({"type": "object"}, 8))
        for _ in range(20):
            value = {"a": value}
        with self.assertRaisesRegex(Unfit, r"given(\.a){20}\.x must be int"):
            given(inner, value)

    def test_too_deep_a_value_is_refused(self):
        limit, deep = sys.getrecursionlimit(), {"name": "x"}
        for _ in range(limit // 4):
            deep = {"name": "x", "children": [deep]}
        with self.assertRaisesRegex(Unfit, "given is nested too deeply"):
            given(Tree, deep)

    @unittest.skipIf(sys.version_info < (3, 11), "typing has no NotRequired")
    def test_members_that_need_not_be_there_are_known_from_text(self):
        schema = announced(taking(Loose))
        self.assertEqual((schema["required"], list(schema["properties"])), (["a"], ["a", "b"]))
        self.assertEqual(given(Loose, {"a": 1}), {"a": 1})

    @unittest.skipIf(sys.version_info < (3, 11), "typing has no Unpack")
    def test_a_tuple_of_unknown_length_is_anything(self):
        hint = Tuple[int, typing.Unpack[Tuple[str, ...]]]
        self.assertEqual(announced(taking(hint)), {})
        self.assertEqual(given(hint, [1, "a", "b"]), [1, "a", "b"])

    @unittest.skipIf(sys.version_info < (3, 12), "there is no type statement")
    def test_aliases_are_what_they_stand_for(self):
        names = {}
        exec("type Ids = list[int]\ntype Json = dict[str, Json] | int", names)
        self.assertEqual(announced(taking(names["Ids"])), {"type": "array", "items": {"type": "integer"}})
        self.assertEqual(given(names["Json"], {"a": {"b": 1}}), {"a": {"b": 1}})
        either = [{"type": "object"}, {"type": "integer"}]
        self.assertEqual(announced(taking(names["Json"]))["anyOf"], either)

    def test_signatures_say_which_parameters_an_array_fills(self):
        def fn(a, /, b=1, *rest: int, c=2, **more: str):
            return None

        schema = Parameters(fn).schema()
        self.assertEqual(schema["x-ostler-positional"], ["a", "b"])
        self.assertEqual(schema["x-ostler-rest"], {"type": "integer"})
        self.assertEqual(schema["additionalProperties"], {"type": "string"})
        plain = Parameters(taking(int)).schema()
        self.assertEqual(set(plain), {"type", "properties", "required", "additionalProperties"})


if sys.version_info >= (3, 11):

    class Loose(TypedDict):
        a: int
        b: typing.NotRequired[str]


SOURCE = """
import dataclasses, enum, typing
import ostler

class Colour(enum.Enum):
    RED = "red"

@dataclasses.dataclass
class Point:
    x: "int"
    colour: "typing.Optional[Colour]" = None

started = 0

@ostler.function
def draw(points: "typing.List[Point]"):
    global started
    started += 1
    return [type(p).__name__ for p in points] + [started]

@ostler.function
async def later(points: "typing.List[Point]"):
    return draw(points)

@ostler.function
def each(points: "typing.List[Point]"):
    yield from draw(points)
"""


class Worker(harness.WorkerTest):
    def test_a_worker_refuses_before_anything_has_started(self):
        w = self.worker(SOURCE)
        for function in ("draw", "later", "each"):
            meta = w.call(function, [{"x": 1}, {"x": 1, "colour": "blue"}]).meta
            self.assertEqual((meta["code"], meta["started"]), ("invalid_arguments", False))
            self.assertIn("points[1].colour must be", meta["message"])
        self.assertEqual(w.value("draw", [{"x": 1, "colour": "red"}]), ["Point", 1])


if __name__ == "__main__":
    unittest.main()
