"""What a decoded JSON value may look like.

A shape announces itself as a JSON schema and fits values to itself, so that
the two cannot differ. Fitting gives the value that the function gets, or
raises Misfit. Shapes know nothing of hints, signatures or requests.
"""

import json
import re

NONE = type(None)

# Names and values out of a body are cut to this many characters in messages.
SHOWN = 40


class Misfit(Exception):
    """What is wrong with a value, and where in the argument it is."""

    def __init__(self, problem):
        self.problem = problem
        self.path = ""

    def inside(self, step):
        self.path = step + self.path
        return self

    def __str__(self):
        return f"{self.path} {self.problem}"


def kind_of(value):
    return "None" if value is None else type(value).__name__


def shown(value):
    """A scalar as JSON, of anything else its type."""
    if isinstance(value, (bool, int, float, str)):
        value = value[:SHOWN] if isinstance(value, str) else value
        try:
            text = json.dumps(value, ensure_ascii=False)
        except ValueError:  # more digits than Python likes to write
            return "a huge number"
        return text if len(text) <= SHOWN + 2 else text[:SHOWN] + "…"
    return kind_of(value)


def shown_name(name):
    return name if name.isidentifier() and len(name) <= SHOWN else shown(name)


def json_key(value):
    """Equal for what JSON calls equal: 1 and 1.0 are, 1 and true are not."""
    kind = type(value)
    if kind is bool:
        return bool, value
    if kind is list:
        return (list, *map(json_key, value))
    if kind is dict:
        return dict, frozenset((name, json_key(member)) for name, member in value.items())
    return value


def fit_inside(shape, value, step):
    """``shape.fit`` for a part of a value; ``step`` leads to it."""
    try:
        return shape.fit(value)
    except Misfit as misfit:
        raise misfit.inside(step)


class Shape:
    # Types whose values all fit as they are; None if all values do.
    quick = frozenset()
    # Whether ``quick`` tells all that fits as it is.
    flat = False
    # Whether it is announced as anything.
    open = False
    name = ""

    def schema(self, within=()):
        """``within`` are the records that this one is announced inside of."""
        raise NotImplementedError

    def fit(self, value):
        raise NotImplementedError

    def misfit(self, value):
        return Misfit(f"must be {self.name}, not {kind_of(value)}")


class Anything(Shape):
    quick = None
    flat = open = True
    name = "anything"

    def schema(self, within=()):
        return {}

    def fit(self, value):
        return value


class Plain(Shape):
    flat = True

    def __init__(self, name, json_name, *types):
        self.name = name
        self.json_name = json_name
        self.quick = frozenset(types)

    def schema(self, within=()):
        return {"type": self.json_name}

    def fit(self, value):
        if type(value) in self.quick:
            return value
        raise self.misfit(value)


class Integer(Plain):
    """JSON calls 2.0 an integer, and some languages write it so."""

    def fit(self, value):
        if type(value) is float and value.is_integer():
            return int(value)
        return super().fit(value)


class Nothing(Shape):
    """A hint that no JSON value fits."""

    flat = True

    def __init__(self, name, reason):
        self.name = name
        self.reason = reason

    def schema(self, within=()):
        return {"not": {}}

    def fit(self, value):
        raise Misfit(f"must be {self.name}, {self.reason}")


ANYTHING = Anything()
INTEGER = Integer("int", "integer", int)
EXACT_INTEGER = Plain("int", "integer", int)
NUMBER = Plain("float", "number", int, float)
STRING = Plain("str", "string", str)
BOOLEAN = Plain("bool", "boolean", bool)
NULL = Plain("None", "null", NONE)
ARRAY = Plain("list", "array", list)
OBJECT = Plain("dict", "object", dict)
BINARY = Nothing("bytes", "which JSON cannot carry: send them as the body")


class Choice(Shape):
    """One of some values; each stands for what the function gets."""

    def __init__(self, pairs):
        self.values = []
        self.meant = {}
        for value, meant in pairs:
            if json_key(value) not in self.meant:
                self.values.append(value)
                self.meant[json_key(value)] = meant
        some = ", ".join(shown(value) for value in self.values[:10])
        more = ", …" if len(self.values) > 10 else ""
        self.name = f"one of {some}{more}" if len(self.values) > 1 else some

    def schema(self, within=()):
        return {"enum": self.values}

    def fit(self, value):
        try:
            return self.meant[json_key(value)]
        except KeyError:
            raise Misfit(f"must be {self.name}, not {shown(value)}") from None


class Items(Shape):
    """An array of items of one shape, given as a ``build``."""

    def __init__(self, item, build):
        self.item = item
        self.build = build
        self.name = f"{build.__name__}[{item.name}]"

    def schema(self, within=()):
        return {"type": "array", **member("items", self.item, within)}

    def fit(self, value):
        if type(value) is not list:
            raise self.misfit(value)
        quick = self.item.quick
        if not (quick is None or quick.issuperset(map(type, value))):
            value = [fit_inside(self.item, one, f"[{i}]") for i, one in enumerate(value)]
        return value if self.build is list else self.build(value)


class Places(Shape):
    """An array with a shape for each of its places, given as a tuple."""

    def __init__(self, places):
        self.places = places
        self.name = f"tuple[{', '.join(place.name for place in places) or '()'}]"

    def schema(self, within=()):
        count = len(self.places)
        schema = {"type": "array", "minItems": count, "maxItems": count}
        if count:
            schema["prefixItems"] = [place.schema(within) for place in self.places]
        return schema

    def fit(self, value):
        if type(value) is not list:
            raise self.misfit(value)
        if len(value) != len(self.places):
            raise Misfit(f"must be {self.name}, not {len(value)} items")
        pairs = enumerate(zip(self.places, value))
        return tuple([fit_inside(place, one, f"[{i}]") for i, (place, one) in pairs])


class Table(Shape):
    """An object with any names and values of one shape, given as a dict."""

    def __init__(self, key, value):
        self.key = key
        self.value = value
        self.name = f"dict[{'str' if key is None else key.name}, {value.name}]"

    def schema(self, within=()):
        names = {} if self.key is None else {"propertyNames": self.key.schema(within)}
        return {"type": "object", **names, **member("additionalProperties", self.value, within)}

    def fit(self, value):
        if type(value) is not dict:
            raise self.misfit(value)
        quick = self.value.quick
        if not (quick is None or quick.issuperset(map(type, value.values()))):
            value = {k: fit_inside(self.value, v, key_step(k)) for k, v in value.items()}
        if self.key is not None:
            value = {self.fit_key(k): v for k, v in value.items()}
        return value

    def fit_key(self, key):
        try:
            return self.key.fit(key)
        except Misfit:
            raise Misfit(f"has the key {shown(key)}; keys must be {self.key.name}") from None


class IntegerKey(Shape):
    """An integer as the name of a member, as JSON has it."""

    name = "int"
    FORM = "^(0|-?[1-9][0-9]{0,18})$"
    # Python's $ also matches before a last newline.
    _matches = re.compile(FORM[:-1] + r"\Z").match

    def schema(self, within=()):
        return {"pattern": self.FORM}

    def fit(self, value):
        if IntegerKey._matches(value):
            return int(value)
        raise self.misfit(value)


class Union(Shape):
    """The first of its members that fits."""

    def __init__(self, members):
        # A float must not become an int where it may stay what it is.
        exact = NUMBER in members
        self.members = [EXACT_INTEGER if exact and m is INTEGER else m for m in members]
        self.name = " or ".join(dict.fromkeys(m.name for m in self.members))
        self.open = any(m.open for m in self.members)
        self.flat = all(m.flat for m in self.members)
        if self.flat:
            known = [m.quick for m in self.members]
            self.quick = None if None in known else frozenset().union(*known)

    def schema(self, within=()):
        if self.open:
            return {}
        schemas = []
        for one in self.members:
            schema = one.schema(within)
            if not isinstance(one, Nothing) and schema not in schemas:
                schemas.append(schema)
        if len(schemas) > 1:
            return {"anyOf": schemas}
        return schemas[0] if schemas else {"not": {}}

    def fit(self, value):
        deeper = []
        for one in self.members:
            try:
                return one.fit(value)
            except Misfit as misfit:
                if misfit.path:
                    deeper.append(misfit)
        # Only one member came close: what it missed is what the caller got wrong.
        raise deeper[0] if len(deeper) == 1 else self.misfit(value)


def member(keyword, shape, within):
    return {} if shape.open else {keyword: shape.schema(within)}


def key_step(name):
    return f"[{shown(name)}]"
