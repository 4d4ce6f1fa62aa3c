"""How bodies become arguments, without a process."""

import json
import unittest
from enum import Enum
from typing import Any, Dict, List, Literal, Optional, Union

import harness  # noqa: F401  puts the package on the path
from ostler.arguments import Parameters
from ostler.errors import Unfit


def call(fn, value=..., raw=None):
    parameters = Parameters(fn)
    if raw is not None:
        return parameters.raw_caller()(raw)
    return parameters.json_caller()(b"" if value is ... else json.dumps(value).encode())


def pair(a, b=2):
    return [a, b]


def one(value):
    return value


def nothing():
    return "none"


def typed(n: int, s: str = "", f: float = 0.0, flag: bool = False, items: List[int] = None,
          maybe: Optional[int] = None, either: Union[int, str] = 0, table: Dict[str, Any] = None):
    return n


class Rules(unittest.TestCase):
    def refused(self, fn, value=..., **options):
        with self.assertRaises(Unfit) as caught:
            call(fn, value, **options)
        return str(caught.exception)

    def test_an_object_is_keyword_arguments(self):
        self.assertEqual(call(pair, {"a": 1, "b": 3}), [1, 3])
        self.assertEqual(call(one, {"value": {"x": 1}}), {"x": 1})

    def test_an_array_is_positional_arguments(self):
        self.assertEqual(call(pair, [1]), [1, 2])
        self.assertEqual(call(one, [[1, 2]]), [1, 2])

    def test_another_value_is_the_one_argument(self):
        for value in ("x", 5, None, True):
            self.assertEqual(call(one, value), value)
            self.assertEqual(call(pair, value), [value, 2])

    def test_an_empty_body_is_no_arguments(self):
        self.assertEqual(call(nothing), "none")
        self.assertIn("a is required", self.refused(pair))
        self.assertIn("value is required", self.refused(one))

    def test_what_does_not_fit_is_named(self):
        self.assertIn("c is unknown", self.refused(pair, {"a": 1, "c": 1}))
        self.assertIn("b is unknown", self.refused(one, {"b": 1}))
        self.assertIn("a is required", self.refused(pair, {"b": 1}))
        self.assertIn("takes 2 positional arguments, got 3", self.refused(pair, [1, 2, 3]))
        self.assertIn("got 2", self.refused(one, [1, 2]))
        self.assertIn("takes 0", self.refused(nothing, 5))

    def test_types_that_json_can_tell_are_checked(self):
        for bad in ({"n": "1"}, {"n": True}, {"n": 1.5}, {"n": 1, "s": 2}, {"n": 1, "f": "x"},
                    {"n": 1, "flag": 0}, {"n": 1, "items": {}}, {"n": 1, "maybe": "x"},
                    {"n": 1, "either": 1.5}, {"n": 1, "table": []}):
            name = list(bad)[-1]
            self.assertIn(f"{name} must be", self.refused(typed, bad))
        good = {"n": 1, "s": "a", "f": 1, "flag": True, "items": None, "maybe": None, "either": "x"}
        self.assertEqual(call(typed, good), 1)
        self.assertIn("n must be int, not str", self.refused(typed, ["x"]))

    def test_a_body_that_is_not_json_is_named_as_such(self):
        for bad in (b"{", b"NaN", b"[1] 2", b"\xff"):
            for fn in (one, pair):
                with self.assertRaises(Unfit):
                    Parameters(fn).json_caller()(bad)

    def test_open_ended_signatures_take_what_they_say(self):
        def star(*args, **kwargs):
            return [list(args), kwargs]

        def only(a, b=2, /, *, c):
            return [a, b, c]

        self.assertEqual(call(star, [1, 2]), [[1, 2], {}])
        self.assertEqual(call(star, {"x": 1}), [[], {"x": 1}])
        self.assertEqual(call(star), [[], {}])
        self.assertEqual(call(only, {"a": 1, "c": 3}), [1, 2, 3])
        self.assertIn("c is required", self.refused(only, [1]))

    def test_raw_bytes_go_to_the_bytes_parameter_or_the_only_one(self):
        def annotated(size: int = 0, data: bytes = b""):
            return data

        def array(data: bytearray):
            return type(data)

        self.assertEqual(call(one, raw=b"x"), b"x")
        self.assertEqual(call(annotated, raw=b"x"), b"x")
        self.assertIs(call(array, raw=b"x"), bytearray)
        for fn in (pair, nothing, typed):
            self.assertIn("not a raw body", self.refused(fn, raw=b"x"))

    def test_a_bytes_function_takes_json_text_as_it_is(self):
        def data(body: bytes):
            return body

        self.assertEqual(call(data, {"a": 1}), b'{"a": 1}')

    def test_schemas_follow_the_hints(self):
        class Colour(Enum):
            RED = "red"

        def fn(n: int, s: Optional[str] = None, l: List[int] = [], m: Literal["a", "b"] = "a",
               c: Colour = Colour.RED, b: bytes = b"", x=object()):
            return None

        schema = Parameters(fn).schema()
        self.assertEqual(schema["required"], ["n"])
        self.assertEqual(schema["properties"]["n"], {"type": "integer"})
        self.assertEqual(schema["properties"]["s"]["anyOf"], [{"type": "string"}, {"type": "null"}])
        self.assertEqual(schema["properties"]["l"], {"type": "array", "items": {"type": "integer"}, "default": []})
        self.assertEqual(schema["properties"]["m"], {"enum": ["a", "b"], "default": "a"})
        self.assertEqual(schema["properties"]["c"], {"enum": ["red"], "default": "red"})
        self.assertEqual(schema["properties"]["x"], {})
        json.dumps(schema)
