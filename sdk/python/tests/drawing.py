"""JSON schemas from the caller's side: what fits one, and values near it.

Written apart from the shapes that announce the schemas, from what JSON Schema
says of the keywords, so that a mistake there is not repeated here.
"""

import json
import re

KINDS = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}
KNOWN = {
    "type", "enum", "anyOf", "not", "items", "prefixItems", "minItems", "maxItems", "properties",
    "required", "additionalProperties", "propertyNames", "pattern", "default",
}
SCALARS = [None, True, False, 0, 1, 2, -1, 1.0, 2.5, 10**30, "", "a", "red", "1", "01", "-7", "1\n"]


def same(a, b):
    """Equality as JSON has it."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def is_kind(name, value):
    if name in ("integer", "number"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (name == "number" or value == int(value))
    return isinstance(value, KINDS[name])


def matches(pattern, text):
    return re.search(pattern.replace("$", r"\Z"), text) is not None


def valid(schema, value):
    if schema is True or schema is False:
        return schema
    unknown = schema.keys() - KNOWN
    if unknown:
        raise AssertionError(f"the schema says {unknown}")
    return (
        ("type" not in schema or is_kind(schema["type"], value))
        and ("enum" not in schema or any(same(value, one) for one in schema["enum"]))
        and ("anyOf" not in schema or any(valid(one, value) for one in schema["anyOf"]))
        and ("not" not in schema or not valid(schema["not"], value))
        and (not isinstance(value, str) or matches(schema.get("pattern", ""), value))
        and (not isinstance(value, list) or valid_items(schema, value))
        and (not isinstance(value, dict) or valid_members(schema, value))
    )


def valid_items(schema, value):
    places = schema.get("prefixItems", [])
    return (
        schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        and all(valid(place, one) for place, one in zip(places, value))
        and all(valid(schema.get("items", True), one) for one in value[len(places):])
    )


def valid_members(schema, value):
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    return (
        all(name in value for name in schema.get("required", []))
        and all(valid(schema.get("propertyNames", True), name) for name in value)
        and all(valid(known.get(name, others), one) for name, one in value.items())
    )


class Impossible(Exception):
    """Nothing fits the schema."""


def draw(schema, rng):
    """A value that fits ``schema``."""
    if schema is True or not schema.keys() - {"default"}:
        return anything(rng)
    if "not" in schema:
        raise Impossible
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return draw(rng.choice(schema["anyOf"]), rng)
    if schema["type"] == "array":
        return draw_array(schema, rng)
    if schema["type"] == "object":
        return draw_object(schema, rng)
    return draw_scalar(schema["type"], rng)


def draw_scalar(kind, rng):
    return rng.choice([value for value in SCALARS if is_kind(kind, value)])


def draw_array(schema, rng):
    places = schema.get("prefixItems", [])
    most = min(schema.get("maxItems", 3), len(places) + 3)
    count = rng.randint(schema.get("minItems", 0), most)
    items = [*places, *[schema.get("items", True)] * count][:count]
    return [draw(one, rng) for one in items]


def draw_object(schema, rng):
    value = {}
    for name, one in schema.get("properties", {}).items():
        if name in schema.get("required", []) or rng.random() < 0.5:
            value[name] = draw(one, rng)
    others = schema.get("additionalProperties", True)
    if others is not False:
        for _ in range(rng.randint(0, 2)):
            value[draw_name(schema.get("propertyNames", {}), rng)] = draw(others, rng)
    return value


def draw_name(schema, rng):
    if "pattern" in schema:
        return rng.choice(["0", "7", "-12", "9" * 19])
    return rng.choice(schema.get("enum", ["x", "y", "", "é", "0"]))


def anything(rng, depth=2):
    kind = rng.randint(0, 5 if depth else 3)
    if kind < 4:
        return rng.choice(SCALARS)
    if kind == 4:
        return [anything(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return {rng.choice("abxyz"): anything(rng, depth - 1) for _ in range(rng.randint(0, 3))}


def spoil(value, rng):
    """``value`` with one thing in it changed; it may fit all the same."""
    value = json.loads(json.dumps(value))
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = rng.randrange(len(value))
        value[i] = spoil(value[i], rng)
        return value
    if isinstance(value, dict) and value and rng.random() < 0.7:
        name = rng.choice(list(value))
        value[name] = spoil(value[name], rng)
        return value
    return resized(value, rng) if rng.random() < 0.5 else anything(rng)


def resized(value, rng):
    if isinstance(value, list):
        return value[:-1] if value and rng.random() < 0.5 else [*value, anything(rng)]
    if isinstance(value, dict):
        if value and rng.random() < 0.5:
            value.pop(rng.choice(list(value)))
            return value
        return {**value, rng.choice(["x", "new", "1\n"]): anything(rng)}
    return [value]
