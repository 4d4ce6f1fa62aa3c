"""JSON text: values to UTF-8 and back, strictly.

The standard library decides what is valid; orjson, where it is installed,
only makes the same answer come sooner. NaN, Infinity and lone surrogates are
refused in both directions a peer could trip over them.
"""

import datetime
import enum
import json
import json.encoder
import os
import uuid
from dataclasses import asdict, is_dataclass

from .errors import Unencodable

try:
    import orjson
except ImportError:
    orjson = None

# Below this size the C scanner of the standard library is as quick as orjson
# with the check for long integers that orjson needs.
SMALL = 512

# orjson reads integers beyond 64 bits as floats; a run of 19 digits is the
# shortest that can be one.
_DIGITS = bytes(48 if 48 <= c <= 57 else 32 for c in range(256))
_LONG_INTEGER = b"0" * 19


def plain(value):
    """What common non-JSON values look like in JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (set, frozenset)):
        return list(value)
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _make_encoder():
    make = json.encoder.c_make_encoder
    if make is None:
        options = {"ensure_ascii": False, "allow_nan": False, "check_circular": False}
        slow = json.JSONEncoder(separators=(",", ":"), default=plain, **options)
        return lambda value, _indent: (slow.encode(value),)
    # Made once: json.dumps would make it anew for every value.
    quote = json.encoder.encode_basestring
    return make(None, plain, quote, None, ":", ",", False, False, False)


_encode = _make_encoder()


def _standard_dumps(value):
    try:
        return "".join(_encode(value, 0)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unencodable(value, error) from None


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_no_constant)
scan = _decoder.scan_once


def _standard_loads(body):
    text = body.decode() if type(body) is not memoryview else bytes(body).decode()
    try:
        value, end = scan(text, 0)
    except StopIteration:
        return _decoder.decode(text)
    return value if end == len(text) else _decoder.decode(text)


if orjson is None:
    dumps = _standard_dumps
    loads = _standard_loads
else:
    _OPTIONS = (
        orjson.OPT_PASSTHROUGH_DATACLASS
        | orjson.OPT_PASSTHROUGH_DATETIME
        | orjson.OPT_PASSTHROUGH_SUBCLASS
    )

    def dumps(value, _fast=orjson.dumps):
        try:
            if type(value) is str:
                return _fast(value)
            body = _fast(value, plain, _OPTIONS)
        except TypeError:
            return _standard_dumps(value)
        # orjson writes NaN as null without a word.
        if b"null" in body and value is not None:
            return _standard_dumps(value)
        return body

    def loads(body, _fast=orjson.loads):
        if len(body) < SMALL or _LONG_INTEGER in body.translate(_DIGITS):
            return _standard_loads(body)
        try:
            return _fast(body)
        except ValueError:
            return _standard_loads(body)


def text(value, limit=8192):
    """``value`` as text that any JSON reader accepts, cut to ``limit`` bytes."""
    raw = str(value).encode("utf-8", "backslashreplace")
    return raw[:limit].decode("utf-8", "ignore")


def meta(fields):
    """A small object for a frame's meta; None fields are left out."""
    return _standard_dumps({k: v for k, v in fields.items() if v is not None})
