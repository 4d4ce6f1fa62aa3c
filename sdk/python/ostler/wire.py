"""The binary wire: frames of a 24-byte header, meta and body.

Bytes and frames only: no sockets, no handlers. The process loop unpacks the
header of plain queries itself, by HEADER; everything else passes through here.
"""

import struct
from struct import Struct

from .errors import StreamClosed
from .jsontext import loads, meta as encode_meta

HEADER = Struct("<IBBHQII")
HEAD = HEADER.size
MAX_FRAME = 64 * 1024 * 1024 + 4096
SMALL = 65536  # frames up to this are sent and read in one piece

QUERY, CANCEL, SHUTDOWN, HEALTH_CHECK = 0x01, 0x02, 0x03, 0x04
PING, CREDIT, CALL_RESULT, TRACE, WITHDRAW = 0x05, 0x06, 0x07, 0x08, 0x09
READY, SESSION, MESSAGE, COMPLETE, ERROR = 0x81, 0x82, 0x83, 0x84, 0x85
CANCELLED, SHUTDOWN_ACK, HEALTH_OK, HEALTH_FAILED = 0x86, 0x87, 0x88, 0x89
PONG, PROGRESS, LOG, METRIC, RETIRE, CALL = 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F
TRACE_RESULT = 0x90

_WITHOUT_META = frozenset((CANCEL, WITHDRAW, SHUTDOWN, HEALTH_CHECK, PING, TRACE, PONG, SHUTDOWN_ACK))
_WITH_META = frozenset((QUERY, CALL_RESULT, CALL, *range(SESSION, TRACE_RESULT + 1))) - _WITHOUT_META

RAW = 0x80  # the body is bytes, not JSON
STREAM = 0x01  # query: the caller wants chunks
GRACEFUL = 0x01  # shutdown
NOT_STARTED = 0x01  # cancelled
FAILED = 0x02  # call_result: meta is the problem
NAMED = 0xFFFF  # query: the function is named in meta


class Frame:
    """One message. ``code`` and ``count`` mean what the kind says."""

    __slots__ = ("kind", "flags", "code", "id", "meta", "body", "chunks", "count")

    def __init__(self, kind, id=0, flags=0, code=0, meta=None, body=b"", count=0, chunks=0):
        self.kind = kind
        self.flags = flags
        self.code = code
        self.id = id
        self.meta = meta or {}
        self.body = body
        self.chunks = chunks
        self.count = count


def encode(kind, id=0, flags=0, meta=None, body=b"", count=0, code=0, chunks=0):
    """A whole frame; ``chunks`` is for credit, whose header has no meta."""
    head = encode_meta(meta) if meta else b""
    a = chunks if kind == CREDIT else len(head)
    size = HEAD - 4 + len(head) + len(body)
    return HEADER.pack(size, kind, flags, code, id, a, count) + head + body


def check(length, limit):
    """Refuse a length no frame may have, before anything is allocated."""
    if not HEAD - 4 <= length <= limit:
        raise StreamClosed(f"a frame of {length} bytes is outside 20..{limit}")


def decode(view, start, end):
    """The frame that lies in ``view[start:end]``."""
    _, kind, flags, code, id, a, b = HEADER.unpack_from(view, start)
    body = start + HEAD
    if kind == CREDIT:
        return Frame(kind, id, flags, code, chunks=a, count=b)
    if kind not in _WITH_META and kind not in _WITHOUT_META:
        return Frame(kind, id, flags, code, body=view[body:end])  # of a later version
    if body + a > end:
        raise StreamClosed(f"meta of {a} bytes is longer than its frame")
    fields = read_meta(bytes(view[body : body + a])) if a and kind in _WITH_META else None
    return Frame(kind, id, flags, code, fields, view[body + a : end], b)


def read_meta(text):
    try:
        fields = loads(text)
    except ValueError as error:
        raise StreamClosed(f"meta is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise StreamClosed("meta is not an object")
    return fields


class Decoder:
    """Cuts a stream of bytes into frames."""

    def __init__(self, limit=MAX_FRAME):
        self.limit = limit
        self.rest = b""

    def feed(self, data):
        data = self.rest + data if self.rest else data
        frames, start, total = [], 0, len(data)
        while total - start >= 4:
            length = struct.unpack_from("<I", data, start)[0]
            check(length, self.limit)
            end = start + 4 + length
            if end > total:
                break
            frames.append(decode(data, start, end))
            start = end
        self.rest = data[start:]
        return frames

    def missing(self):
        """Bytes that the frame at the front still lacks; 0 if unknown."""
        if len(self.rest) < 4:
            return 0
        return 4 + struct.unpack_from("<I", self.rest)[0] - len(self.rest)
