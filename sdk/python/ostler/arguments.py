"""How a request's body becomes a function's arguments.

A JSON object is keyword arguments, an array positional ones, any other value
the one argument, an empty body none. Raw bytes go to the parameter annotated
as bytes, or to the only one. The signature is read once, here; per call there
is a look at the keys and the types, and more only where a hint says more. What
does not fit raises Unfit, which names it, before the function has begun.
"""

import inspect

from .errors import Malformed, Unfit
from .jsontext import SMALL, loads, scan
from .schema import EMPTY, bytes_type, hints_of, shape_of, with_default
from .shapes import Misfit, shown_name

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# A refusal names this many problems and counts the others.
PROBLEMS = 20


class Parameter:
    def __init__(self, spec, hint):
        self.name = spec.name
        self.kind = spec.kind
        self.required = spec.default is EMPTY
        self.default = spec.default
        self.shape = shape_of(hint, spec.default)
        # Types whose values need no further look, or None for all.
        self.quick = self.shape.quick
        # bytes, bytearray or memoryview if it is to be one.
        self.binary = bytes_type(hint)

    def fit(self, value, name=None):
        """``value`` as the function gets it; Misfit says what is wrong with it."""
        if self.quick is None or type(value) in self.quick:
            return value
        try:
            return self.shape.fit(value)
        except Misfit as misfit:
            raise misfit.inside(name or self.name)
        except RecursionError:
            raise Misfit("is nested too deeply").inside(name or self.name) from None

    def schema(self):
        announce = self.binary_schema if self.binary else self.shape.schema
        return with_default(announce, self.shape, self.default)()

    def binary_schema(self, within=()):
        """A body of bytes, never JSON text; beside it there may be null."""
        schema = {"type": "string", "format": "binary"}
        null = self.shape.schema(within)
        return schema if "not" in null else {"format": "binary", "anyOf": [schema, null]}


class Parameters:
    """The signature of one function, and the callers made from it."""

    def __init__(self, fn):
        self.fn = fn
        hints = hints_of(fn)
        specs = inspect.signature(fn).parameters.values()
        named = [Parameter(spec, hints.get(spec.name, EMPTY)) for spec in specs]
        # What *args and **kwargs say of each value that they take, or None.
        extra = {p.kind: p for p in named}
        self.extra_positional = extra.get(inspect.Parameter.VAR_POSITIONAL)
        self.extra_keyword = extra.get(inspect.Parameter.VAR_KEYWORD)
        named = [p for p in named if p not in (self.extra_positional, self.extra_keyword)]
        self.by_name = {p.name: p for p in named}
        self.positional = [p for p in named if p.kind in POSITIONAL]
        self.positional_only = [p for p in named if p.kind == POSITIONAL[0]]
        self.required = frozenset(p.name for p in named if p.required)
        self.names = frozenset(self.by_name)

    # Callers: take a body, return what the function returns.

    def json_caller(self):
        if self.takes_only_bytes():
            return self.raw_caller()
        if len(self.by_name) == 1 == len(self.positional) and not self.open_ended():
            return self.one_argument_caller()
        if self.open_ended():
            return lambda body: self.invoke(load_any(body) if body else {})
        if all(p.shape.flat for p in self.by_name.values()):
            return self.plain_caller()
        return self.fitting_caller()

    def open_ended(self):
        return bool(self.extra_positional or self.extra_keyword or self.positional_only)

    def takes_only_bytes(self):
        return len(self.by_name) == 1 == len(self.positional) and bool(self.positional[0].binary)

    def one_argument_caller(self):
        fn = self.fn
        (parameter,) = self.positional
        name, quick = parameter.name, parameter.quick

        def call(body):
            if not body:
                return self.invoke({})
            value = load_any(body)
            kind = type(value)
            if kind is dict:
                if len(value) != 1 or name not in value:
                    return self.invoke(value)
                value = value[name]
            elif kind is list:
                if len(value) != 1:
                    return self.invoke(value)
                value = value[0]
            if quick is not None and type(value) not in quick:
                value = self.fit_only(parameter, value)
            return fn(value)

        return call

    def fit_only(self, parameter, value):
        try:
            return parameter.fit(value)
        except Misfit as misfit:
            raise self.unfit([misfit]) from None

    def plain_caller(self):
        """For hints that a look at the types settles."""
        fn, invoke = self.fn, self.invoke
        expected = [(p.name, p.quick, p.required) for p in self.by_name.values()]

        def call(body):
            value = load_any(body) if body else {}
            if type(value) is not dict:
                return invoke(value)
            fitting = 0
            for name, quick, required in expected:
                if name in value:
                    if quick is None or type(value[name]) in quick:
                        fitting += 1
                elif required:
                    return invoke(value)
            # Whatever did not fit, the careful way says what it was.
            return fn(**value) if fitting == len(value) else invoke(value)

        return call

    def fitting_caller(self):
        """For hints that need a look inside, or make something of the value."""
        fn, invoke = self.fn, self.invoke
        expected = [(p.name, p.fit, p.required) for p in self.by_name.values()]

        def call(body):
            value = load_any(body) if body else {}
            if type(value) is not dict:
                return invoke(value)
            fitted = {}
            try:
                for name, fit, required in expected:
                    if name in value:
                        fitted[name] = fit(value[name])
                    elif required:
                        return invoke(value)
            except Misfit:
                return invoke(value)
            return fn(**fitted) if len(fitted) == len(value) else invoke(value)

        return call

    def raw_caller(self):
        """The function itself where it can take the body as it is."""
        target = self.bytes_parameter()
        if target is None:
            return self.refuse_bytes
        wanted = target.binary or bytes
        alone = len(self.by_name) == 1 and target.kind in POSITIONAL
        if alone and wanted is bytes and target.required:
            return self.fn
        return self.converting_caller(target, wanted)

    def converting_caller(self, target, wanted):
        fn, name = self.fn, target.name
        by_position = bool(self.positional) and self.positional[0] is target

        def call(body):
            if not body and not target.required:
                return fn()
            value = body if wanted is memoryview or type(body) is wanted else wanted(body)
            value = memoryview(value) if wanted is memoryview else value
            return fn(value) if by_position else fn(**{name: value})

        return call

    def bytes_parameter(self):
        """The one parameter that a raw body can be, if there is one."""
        annotated = [p for p in self.by_name.values() if p.binary]
        if len(annotated) != 1:
            free = [p for p in self.by_name.values() if p.shape.open]
            annotated = free if len(self.by_name) == 1 else []
        if not annotated or self.required - {annotated[0].name}:
            return None
        return annotated[0]

    def keeps_bytearray(self):
        """A large body may stay in the buffer that it was read into."""
        target = self.bytes_parameter()
        return target is None or target.binary in (bytearray, memoryview)

    def refuse_bytes(self, _body):
        raise Unfit(f"{self.fn.__name__} takes JSON arguments, not a raw body")

    # The careful way, for everything that the quick ones do not cover.

    def invoke(self, value):
        if type(value) is dict:
            args, kwargs = self.from_object(value)
        else:
            args, kwargs = self.from_array(value if type(value) is list else [value]), {}
        return self.fn(*args, **kwargs)

    def from_object(self, given):
        problems = [f"{name} is required" for name in sorted(self.required - given.keys())]
        if not self.extra_keyword:
            unknown = sorted(given.keys() - self.names)
            problems += [f"{shown_name(name)} is unknown" for name in unknown]
        kwargs = {}
        for name, value in given.items():
            parameter = self.by_name.get(name, self.extra_keyword)
            if parameter is not None:
                kwargs[name] = self.fit_or_note(parameter, value, shown_name(name), problems)
        self.raise_if(problems)
        return self.positional_only_from(kwargs), kwargs

    def positional_only_from(self, kwargs):
        """The values of those that Python takes by position only, out of ``kwargs``."""
        named = [i for i, p in enumerate(self.positional_only) if p.name in kwargs]
        wanted = self.positional_only[: named[-1] + 1 if named else 0]
        return [kwargs.pop(p.name, p.default) for p in wanted]

    def from_array(self, given):
        problems = []
        count = len(self.positional)
        if len(given) > count and not self.extra_positional:
            problems.append(f"takes {count} positional arguments, got {len(given)}")
        args = [self.fit_or_note(p, v, p.name, problems) for p, v in zip(self.positional, given)]
        if self.extra_positional:
            more, name = self.extra_positional, self.extra_positional.name
            for i, value in enumerate(given[count:]):
                args.append(self.fit_or_note(more, value, f"{name}[{i}]", problems))
        filled = {p.name for p in self.positional[: len(given)]}
        problems += [f"{name} is required" for name in sorted(self.required - filled)]
        self.raise_if(problems)
        return args

    def fit_or_note(self, parameter, value, name, problems):
        try:
            return parameter.fit(value, name)
        except Misfit as misfit:
            problems.append(misfit)

    def raise_if(self, problems):
        if problems:
            raise self.unfit(problems)

    def unfit(self, problems):
        more = len(problems) - PROBLEMS
        told = "; ".join(map(str, problems[:PROBLEMS]))
        return Unfit(f"{self.fn.__name__}: {told}" + (f"; and {more} more" if more > 0 else ""))

    def schema(self):
        """Of the object of keyword arguments. An array fills the properties in
        their order, unless ``x-ostler-positional`` names those that it fills;
        ``x-ostler-rest`` is the schema of each item after them."""
        named = self.by_name.values()
        more = self.extra_keyword.shape.schema() if self.extra_keyword else False
        schema = {
            "type": "object",
            "properties": {p.name: p.schema() for p in named},
            "required": [p.name for p in named if p.required],
            "additionalProperties": True if more == {} else more,
        }
        if self.extra_positional or len(self.positional) < len(named):
            schema["x-ostler-positional"] = [p.name for p in self.positional]
        if self.extra_positional:
            schema["x-ostler-rest"] = self.extra_positional.shape.schema()
        return schema


def load_any(body):
    """As ``load``; small bodies by the shortest way there is."""
    if len(body) >= SMALL:
        return load(body)
    try:
        text = body.decode()
        value, end = scan(text, 0)
    except (ValueError, RecursionError, StopIteration):
        return load(body)
    return value if end == len(text) else load(body)


def load(body):
    try:
        return loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None
