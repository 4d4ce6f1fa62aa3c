"""Type hints as shapes, and what a default adds to a schema.

What JSON can tell apart becomes a shape. A hint that means more than that (a
class of the user's, say) or that cannot be read accepts anything, and is
announced so.
"""

import collections.abc
import dataclasses
import enum
import inspect
import sys
import typing

from .errors import Unencodable
from .jsontext import dumps, loads
from .records import Field, Record, constructor_fields, is_typed_dict, maker
from .shapes import (
    ANYTHING,
    ARRAY,
    BINARY,
    BOOLEAN,
    INTEGER,
    NONE,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Choice,
    IntegerKey,
    Items,
    Nothing,
    Places,
    Table,
    Union,
)

EMPTY = inspect.Parameter.empty
BYTES = (bytes, bytearray, memoryview)

_PLAIN = {
    int: INTEGER,
    float: NUMBER,
    str: STRING,
    bool: BOOLEAN,
    NONE: NULL,
    None: NULL,
    **{kind: BINARY for kind in BYTES},
}
_SEQUENCES = (list, collections.abc.Sequence, collections.abc.MutableSequence)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_SETS = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}
_HASHABLE = frozenset((int, float, str, bool, NONE))
# They say something of a field, not of its values.
_WRAPPERS = ("Annotated", "Final", "NotRequired", "ReadOnly", "Required")


def hints_of(declared, **options):
    """The hints of a function or class. One that cannot be read is none."""
    try:
        return typing.get_type_hints(declared, **options)
    except Exception:  # whatever evaluating a user's text raises
        return _hints_one_by_one(declared, options)


def _hints_one_by_one(declared, options):
    read = {}
    for owner in reversed(getattr(declared, "__mro__", (declared,))):
        module = sys.modules.get(getattr(owner, "__module__", None))
        names = getattr(inspect.unwrap(owner), "__globals__", None) or vars(module or object)
        for name, hint in _annotations(owner).items():
            read.pop(name, None)
            # get_type_hints asks no more of what it reads than this.
            alone = type("Alone", (), {"__annotations__": {name: hint}})
            try:
                read.update(typing.get_type_hints(alone, dict(names), **options))
            except Exception:
                continue
    return read


def _annotations(owner):
    if inspect.isclass(owner):  # which shows those of its base where it has none
        return vars(owner).get("__annotations__", {})
    return getattr(owner, "__annotations__", {})


def is_union(hint):
    origin = typing.get_origin(hint)
    return origin is typing.Union or getattr(origin, "__name__", "") == "UnionType"


def bytes_type(hint):
    """bytes, bytearray or memoryview where ``hint`` is that, or that or None."""
    members = typing.get_args(hint) if is_union(hint) else (hint,)
    members = [member for member in members if member is not NONE]
    return members[0] if len(members) == 1 and members[0] in BYTES else None


def shape_of(hint, default=EMPTY, known=None):
    """``known`` has the shapes of the classes and aliases met on the way to ``hint``."""
    try:
        shape = _shape(hint, {} if known is None else known)
    except Exception:  # hints are objects of anyone's making
        return ANYTHING
    if default is None and not fits(shape, None):
        return Union([shape, NULL])
    return shape


def fits(shape, value):
    try:
        shape.fit(value)
    except Exception:  # a Misfit, or what a dataclass raises when it is made
        return False
    return True


def _shape(hint, known):
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if is_union(hint):
        return Union([shape_of(member, known=known) for member in members])
    if origin is typing.Literal:
        return _literal(members)
    if origin is not None and _name(origin) in _WRAPPERS:
        return shape_of(members[0], known=known)
    if hasattr(hint, "__supertype__"):
        return shape_of(hint.__supertype__, known=known)
    if type(hint).__name__ == "TypeAliasType":
        return _alias(hint, known)
    return _container(hint, origin or hint, members, known)


def _name(origin):
    return getattr(origin, "_name", None) or getattr(origin, "__name__", None)


def _alias(hint, known):
    if hint not in known:
        known[hint] = ANYTHING
        known[hint] = shape_of(hint.__value__, known=known)
    return known[hint]


def _container(hint, kind, members, known):
    shapes = [shape_of(member, known=known) for member in members if member is not ...]
    if kind in _SEQUENCES:
        return ARRAY if shapes in ([], [ANYTHING]) else Items(*shapes, list)
    if kind in _MAPPINGS:
        return _table(*shapes) if shapes else OBJECT
    if kind in _SETS:
        return Items(*shapes, _SETS[kind]) if shapes and _hashable(*shapes) else ANYTHING
    if kind is tuple:
        return _tuple(hint, members, shapes)
    return _class(kind, known) if inspect.isclass(kind) else ANYTHING


def _hashable(shape):
    """Whether all its values are known to have a place in a set."""
    return isinstance(shape, Choice) or (shape.flat and not shape.open and shape.quick <= _HASHABLE)


def _table(key, value):
    if key is INTEGER:
        return Table(IntegerKey(), value)
    if isinstance(key, Choice) and all(type(name) is str for name in key.values):
        return Table(key, value)
    # Names are text whatever the hint says.
    return OBJECT if value is ANYTHING else Table(None, value)


def _tuple(hint, members, shapes):
    if members[1:] == (...,):
        return Items(shapes[0], tuple)
    if hint is tuple or hint is typing.Tuple:
        return Items(ANYTHING, tuple)
    if any(map(_is_unpacked, members)):
        return ANYTHING
    return Places([] if members == ((),) else shapes)


def _is_unpacked(member):
    """As in ``tuple[int, *rest]``, which says nothing of its length."""
    return getattr(member, "__unpacked__", False) or _name(typing.get_origin(member)) == "Unpack"


def _class(cls, known):
    if issubclass(cls, enum.Enum):
        return _enumeration(cls)
    if cls in known:
        return known[cls]
    if is_typed_dict(cls):
        return _typed_dict(cls, known)
    if dataclasses.is_dataclass(cls):
        return _dataclass(cls, known)
    return ANYTHING


def _literal(values):
    pairs = []
    for value in values:
        try:
            pairs.append((loads(dumps(value)), value))
        except Unencodable:  # bytes have no form in JSON
            continue
    return Choice(pairs) if pairs else Nothing("bytes", "which JSON cannot carry")


def _enumeration(cls):
    # Flags combine, so their values are more than their members.
    if issubclass(cls, enum.Flag) or not len(cls):
        return ANYTHING
    try:
        return Choice([(loads(dumps(one.value)), one) for one in cls])
    except Unencodable:
        return ANYTHING


def _typed_dict(cls, known):
    record = known[cls] = Record(cls.__name__, lambda fields: fields)
    hints = hints_of(cls, include_extras=True)
    for name in cls.__annotations__:
        hint = hints.get(name, EMPTY)
        said = _name(typing.get_origin(hint) or hint)
        required = {"Required": True, "NotRequired": False}.get(said, name in cls.__required_keys__)
        record.fields[name] = Field(shape_of(hint, known=known), required)
    return record


def _dataclass(cls, known):
    fields = constructor_fields(cls)
    if fields is None:
        return ANYTHING
    record = known[cls] = Record(cls.__name__, maker(cls))
    hints = hints_of(cls)
    for field in fields:
        default = EMPTY if field.default is dataclasses.MISSING else field.default
        shape = shape_of(hints.get(field.name, EMPTY), default, known)
        required = default is EMPTY and field.default_factory is dataclasses.MISSING
        announce = with_default(shape.schema, shape, default)
        record.fields[field.name] = Field(shape, required, announce)
    return record


def with_default(schema, shape, default):
    """``schema``, a function, with ``default`` announced where that is JSON and fits."""
    if default is EMPTY:
        return schema
    try:
        value = loads(dumps(default))
    except Exception:  # a default may be any object
        return schema
    if not fits(shape, value):
        return schema
    return lambda within=(): {**schema(within), "default": value}
