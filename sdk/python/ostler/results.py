"""Results that JSON is not the right form for."""

from .jsontext import dumps
from .wire import RAW


class Raw:
    """Bytes with a content type of their own."""

    def __init__(self, data, content_type="application/octet-stream"):
        self.data = data
        self.content_type = content_type


def encoded(value):
    """(flags, body, meta) of any result or chunk."""
    if isinstance(value, Raw):
        return RAW, bytes(value.data), {"contentType": value.content_type}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return RAW, value, None
    return 0, dumps(value), None
