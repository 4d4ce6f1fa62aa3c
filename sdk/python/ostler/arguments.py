"""How a request's body becomes a function's arguments.

A JSON object is keyword arguments, an array positional ones, any other value
the one argument, an empty body none. Raw bytes go to the parameter annotated
as bytes, or to the only one. The signature is read once, here; per call there
is a look at the keys and the types. What does not fit raises Unfit, which
names it, before the function has begun.
"""

import inspect
import typing

from .errors import Malformed, Unfit
from .jsontext import SMALL, loads, scan
from .schema import EMPTY, bytes_type, json_types, parameter_schema

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
BINARY = (bytes, bytearray, memoryview)


class Parameter:
    def __init__(self, spec, hint):
        self.name = spec.name
        self.hint = hint
        self.kind = spec.kind
        self.required = spec.default is EMPTY
        self.default = spec.default
        # The JSON types it accepts, or None for any.
        self.types = json_types(hint, spec.default)

    def accepts(self, value):
        return self.types is None or type(value) in self.types

    def expected(self):
        return getattr(self.hint, "__name__", None) or str(self.hint)


def hints_of(fn):
    try:
        return typing.get_type_hints(fn)
    except Exception:  # a hint that names what is not there yet is no hint
        return {}


class Parameters:
    """The signature of one function, and the callers made from it."""

    def __init__(self, fn):
        self.fn = fn
        hints = hints_of(fn)
        specs = inspect.signature(fn).parameters.values()
        kinds = {spec.kind for spec in specs}
        self.extra_positional = inspect.Parameter.VAR_POSITIONAL in kinds
        self.extra_keyword = inspect.Parameter.VAR_KEYWORD in kinds
        named = [
            Parameter(spec, hints.get(spec.name, EMPTY))
            for spec in specs
            if spec.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        ]
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
        return self.general_caller()

    def open_ended(self):
        return self.extra_positional or self.extra_keyword or bool(self.positional_only)

    def takes_only_bytes(self):
        return len(self.by_name) == 1 and bytes_type(self.positional[:1]) is not None

    def one_argument_caller(self):
        fn = self.fn
        (parameter,) = self.positional
        name, types = parameter.name, parameter.types

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
            if types is not None and type(value) not in types:
                raise Unfit(self.mistyped(parameter, value))
            return fn(value)

        return call

    def general_caller(self):
        fn, invoke = self.fn, self.invoke
        simple = not self.open_ended()
        expected = [(p.name, p.types, p.required) for p in self.by_name.values()]

        def call(body):
            value = load_any(body) if body else {}
            if not simple or type(value) is not dict:
                return invoke(value)
            fitting = 0
            for name, types, required in expected:
                if name in value:
                    if types is None or type(value[name]) in types:
                        fitting += 1
                elif required:
                    return invoke(value)
            # Whatever did not fit, the careful way says what it was.
            return fn(**value) if fitting == len(value) else invoke(value)

        return call

    def raw_caller(self):
        """The function itself where it can take the body as it is."""
        target = self.bytes_parameter()
        if target is None:
            return self.refuse_bytes
        wanted = bytes_type([target]) or bytes
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
        annotated = [p for p in self.by_name.values() if p.hint in BINARY]
        if len(annotated) != 1:
            free = [p for p in self.by_name.values() if p.types is None]
            annotated = free if len(self.by_name) == 1 else []
        if not annotated or self.required - {annotated[0].name}:
            return None
        return annotated[0]

    def keeps_bytearray(self):
        """A large body may stay in the buffer that it was read into."""
        target = self.bytes_parameter()
        return target is None or target.hint in (bytearray, memoryview)

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
            problems += [f"{name} is unknown" for name in sorted(given.keys() - self.names)]
        for name in self.by_name.keys() & given.keys():
            if not self.by_name[name].accepts(given[name]):
                problems.append(self.mistyped(self.by_name[name], given[name]))
        self.raise_if(problems)
        kwargs = dict(given)
        args = []
        for parameter in self.positional_only:
            if parameter.name not in kwargs:
                break
            args.append(kwargs.pop(parameter.name))
        return args, kwargs

    def from_array(self, given):
        problems = []
        if len(given) > len(self.positional) and not self.extra_positional:
            problems.append(f"takes {len(self.positional)} positional arguments, got {len(given)}")
        for parameter, value in zip(self.positional, given):
            if not parameter.accepts(value):
                problems.append(self.mistyped(parameter, value))
        filled = {p.name for p in self.positional[: len(given)]}
        problems += [f"{name} is required" for name in sorted(self.required - filled)]
        self.raise_if(problems)
        return given

    def raise_if(self, problems):
        if problems:
            raise Unfit(f"{self.fn.__name__}: " + "; ".join(problems))

    def mistyped(self, parameter, value):
        return f"{parameter.name} must be {parameter.expected()}, not {type(value).__name__}"

    def schema(self):
        properties = {p.name: parameter_schema(p) for p in self.by_name.values()}
        return {
            "type": "object",
            "properties": properties,
            "required": [p.name for p in self.by_name.values() if p.required],
            "additionalProperties": self.extra_keyword,
        }


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
