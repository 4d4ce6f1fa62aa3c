"""Type hints as JSON types and JSON schemas.

Only what JSON itself can tell apart is checked; a hint that means more than
that (a class of the user's, say) accepts anything.
"""

import enum
import inspect
import typing

from .errors import Unencodable
from .jsontext import dumps, loads

EMPTY = inspect.Parameter.empty
NONE = type(None)

_ACCEPTED = {
    int: {int},
    float: {int, float},
    str: {str},
    bool: {bool},
    list: {list},
    dict: {dict},
    NONE: {NONE},
    None: {NONE},
    bytes: set(),
    bytearray: set(),
    memoryview: set(),
}

_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", NONE: "null"}


def is_union(hint):
    origin = typing.get_origin(hint)
    return origin is typing.Union or getattr(origin, "__name__", "") == "UnionType"


def json_types(hint, default=EMPTY):
    """The types a decoded JSON value may have for ``hint``; None for any."""
    accepted = _accepted(hint)
    if accepted is None:
        return None
    if default is None:
        accepted = accepted | {NONE}
    return frozenset(accepted)


def _accepted(hint):
    if is_union(hint):
        members = [_accepted(member) for member in typing.get_args(hint)]
        return None if None in members else set().union(*members)
    if typing.get_origin(hint) is typing.Literal:
        return {type(value) for value in typing.get_args(hint)}
    known = typing.get_origin(hint) or hint
    try:
        return _ACCEPTED.get(known)
    except TypeError:  # a hint that cannot be hashed
        return None


def bytes_type(parameters):
    """bytes, bytearray or memoryview if the first parameter is annotated so."""
    for parameter in parameters:
        if parameter.hint in (bytes, bytearray, memoryview):
            return parameter.hint
    return None


def parameter_schema(parameter):
    schema = hint_schema(parameter.hint)
    if parameter.default is EMPTY:
        return schema
    try:
        return {**schema, "default": loads(dumps(parameter.default))}
    except (Unencodable, ValueError):
        return schema


def hint_schema(hint):
    if is_union(hint):
        return {"anyOf": [hint_schema(member) for member in typing.get_args(hint)]}
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(members)}
    if origin is list or hint is list:
        return {"type": "array", **({"items": hint_schema(members[0])} if members else {})}
    if origin is dict or hint is dict:
        values = {"additionalProperties": hint_schema(members[1])} if members else {}
        return {"type": "object", **values}
    if hint in (bytes, bytearray, memoryview):
        return {"type": "string", "format": "binary"}
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    try:
        return {"type": _NAMES[hint]} if hint in _NAMES else {}
    except TypeError:
        return {}
