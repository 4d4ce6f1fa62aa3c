"""Results that JSON is not the right form for."""

from .jsontext import dumps
from .wire import RAW


_JSON = frozenset((str, int, float, bool, list, dict, type(None)))


class Raw:
    """Bytes with a content type of their own."""

    def __init__(self, data, content_type="application/octet-stream"):
        self.data = data
        self.content_type = content_type


def encoded(value):
    """(flags, body, meta) of any result or chunk."""
    kind = type(value)
    if kind is bytes:
        return RAW, value, None
    if kind in _JSON:
        return 0, dumps(value), None
    if isinstance(value, Raw):
        return RAW, bytes(value.data), {"contentType": value.content_type}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return RAW, value, None
    return 0, dumps(value), None
