"""Objects with fields of their own: dataclasses and TypedDicts.

Apart from the other shapes because these may contain themselves, and because
a dataclass is made by code of the user's.
"""

import dataclasses
import inspect

from .shapes import Misfit, Shape, fit_inside, kind_of, shown

# A record inside this many others is announced as an object and no more. It is
# checked all the same.
DEPTH = 8


class Field:
    def __init__(self, shape, required, schema=None):
        self.shape = shape
        self.required = required
        # Called as ``shape.schema`` is; for what a default adds to that.
        self.schema = schema or shape.schema


class Record(Shape):
    """Made before its fields are known, so that they may lead back to it."""

    def __init__(self, name, build):
        self.name = name
        self.build = build
        self.fields = {}

    def schema(self, within=()):
        if self in within or len(within) >= DEPTH:
            return {"type": "object"}
        within = (*within, self)
        return {
            "type": "object",
            "properties": {name: field.schema(within) for name, field in self.fields.items()},
            "required": [name for name, field in self.fields.items() if field.required],
            "additionalProperties": False,
        }

    def fit(self, value):
        if type(value) is not dict:
            raise Misfit(f"must be {self.name} (an object), not {kind_of(value)}")
        fitted = {}
        for name, field in self.fields.items():
            if name in value:
                fitted[name] = self.fit_field(name, field.shape, value[name])
            elif field.required:
                raise Misfit("is required").inside(f".{name}")
        if len(fitted) < len(value):
            unknown = next(name for name in value if name not in fitted)
            raise Misfit("is unknown").inside(f"[{shown(unknown)}]")
        return self.build(fitted)

    def fit_field(self, name, shape, value):
        quick = shape.quick
        if quick is None or type(value) in quick:
            return value
        return fit_inside(shape, value, f".{name}")


def is_typed_dict(hint):
    marks = ("__total__", "__required_keys__")
    return issubclass(hint, dict) and all(hasattr(hint, mark) for mark in marks)


def maker(cls):
    """What makes a ``cls`` of its fields; what it refuses does not fit."""

    def make(fields):
        try:
            return cls(**fields)
        except (TypeError, ValueError) as error:
            raise Misfit(f"is no {cls.__name__}: {error}") from None

    return make


def constructor_fields(cls):
    """The fields that its constructor takes; None if that takes something else too."""
    fields = [field for field in dataclasses.fields(cls) if field.init]
    taken = inspect.signature(cls).parameters
    return fields if {*taken} == {field.name for field in fields} else None
