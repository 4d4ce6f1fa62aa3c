"""A call before it has a number, and what its answer says.

Between the functions that handlers use and ``calls.py``, which sends it and
waits; knows no streams and no profiles.
"""

from . import wire
from .errors import CallError, Unencodable
from .jsontext import dumps, loads

SERVER = "ostler"  # the pool that is the server itself

# What may not be used where waiting would stop a loop, and what to use there.
CALL = ("ostler.call", "await ostler.acall")


class Outgoing:
    """``request`` is the one that it is made for, by default that of the code that makes it.

    A ``patient`` call hands something over in its answer: a cancel of the
    request does not end the wait for it.
    """

    __slots__ = ("body", "flags", "meta", "patient", "request", "spelling")

    def __init__(self, pool, function, flags=0, body=b"", content_type=None,
                 request=None, patient=False, spelling=CALL):
        self.meta = {"pool": pool, "function": function, "contentType": content_type}
        self.flags = flags
        self.body = body
        self.request = request
        self.patient = patient
        self.spelling = spelling


def with_arguments(pool, function, args, kwargs):
    if args and kwargs:
        raise TypeError("ostler.call takes positional or keyword arguments, not both")
    if len(args) == 1 and isinstance(args[0], (bytes, bytearray, memoryview)):
        return Outgoing(pool, function, wire.RAW, bytes(args[0]))
    body = json_body(list(args) if args else kwargs) if args or kwargs else b""
    return Outgoing(pool, function, body=body)


def json_body(value):
    try:
        return dumps(value)
    except Unencodable as error:
        raise TypeError(str(error)) from None


def result_of(frame):
    """What the call came to; raises CallError."""
    if frame.flags & wire.FAILED:
        raise CallError(frame.meta)
    if frame.flags & wire.RAW:
        return bytes(frame.body)
    return loads(frame.body) if frame.body else None
