"""The NDJSON wire: the same frames, one JSON object per line.

The base form that any worker can speak; here it exists so that the SDK also
works with a server that offers nothing else. Bodies stay JSON text inside.
"""

import base64
import json

from . import wire
from .errors import StreamClosed
from .jsontext import dumps, loads

MAX_LINE = 16 * 1024 * 1024

_TYPES = {
    "query": wire.QUERY,
    "cancel": wire.CANCEL,
    "withdraw": wire.WITHDRAW,
    "shutdown": wire.SHUTDOWN,
    "health_check": wire.HEALTH_CHECK,
    "ping": wire.PING,
    "credit": wire.CREDIT,
    "call_result": wire.CALL_RESULT,
    "trace": wire.TRACE,
    "session": wire.SESSION,
    "message": wire.MESSAGE,
    "complete": wire.COMPLETE,
    "error": wire.ERROR,
    "cancelled": wire.CANCELLED,
    "shutdown_ack": wire.SHUTDOWN_ACK,
    "health_ok": wire.HEALTH_OK,
    "health_failed": wire.HEALTH_FAILED,
    "pong": wire.PONG,
    "progress": wire.PROGRESS,
    "log": wire.LOG,
    "metric": wire.METRIC,
    "retire": wire.RETIRE,
    "call": wire.CALL,
    "trace_result": wire.TRACE_RESULT,
}
_NAMES = {kind: name for name, kind in _TYPES.items()}

_BODY_KEYS = {
    wire.QUERY: "payload",
    wire.CALL: "payload",
    wire.MESSAGE: "content",
    wire.PROGRESS: "content",
    wire.COMPLETE: "result",
    wire.CALL_RESULT: "result",
}
_COUNTS = {
    wire.QUERY: "deadlineMs",
    wire.MESSAGE: "seq",
    wire.CREDIT: "bytes",
    wire.COMPLETE: "chunks",
    wire.ERROR: "chunks",
    wire.CANCELLED: "chunks",
}
_FLAGS = {
    (wire.QUERY, "stream", True): wire.STREAM,
    (wire.CANCELLED, "started", False): wire.NOT_STARTED,
}


_IDS = {
    **dict.fromkeys((wire.QUERY, wire.CANCEL, wire.WITHDRAW), "requestId"),
    **dict.fromkeys((wire.CREDIT, wire.SESSION), "requestId"),
    **dict.fromkeys((wire.MESSAGE, wire.COMPLETE, wire.ERROR, wire.CANCELLED), "requestId"),
    **dict.fromkeys((wire.PROGRESS, wire.LOG), "requestId"),
    **dict.fromkeys((wire.CALL, wire.CALL_RESULT), "callId"),
    **dict.fromkeys((wire.PING, wire.PONG, wire.TRACE, wire.TRACE_RESULT), "nonce"),
}


def encode(kind, id=0, flags=0, meta=None, body=b"", count=0, code=0, chunks=0):
    """A whole line. A JSON body is put in as it is, never parsed."""
    head = {"type": _NAMES[kind]}
    if kind in _IDS and (id or kind != wire.LOG):
        head[_IDS[kind]] = str(id)
    if kind == wire.CREDIT:
        head["chunks"] = chunks
    if kind in _COUNTS and (count or kind != wire.QUERY):
        head[_COUNTS[kind]] = count
    for (owner, key, value), flag in _FLAGS.items():
        if owner == kind and flags & flag:
            head[key] = value
    if kind == wire.SHUTDOWN:
        head["graceful"] = bool(flags & wire.GRACEFUL)
    fields = {k: v for k, v in (meta or {}).items() if v is not None}
    kept_type = fields.pop("contentType", None) if flags & wire.RAW else None
    if kind == wire.ERROR or (kind == wire.CALL_RESULT and flags & wire.FAILED):
        head["error"] = fields
    else:
        head.update(fields)
    if kind == wire.TRACE_RESULT:
        head["text"] = body.decode("utf-8", "replace")
        body = b""
    return _line(head, _BODY_KEYS.get(kind), _json_body(flags, body, kept_type))


def _json_body(flags, body, content_type):
    if not flags & wire.RAW:
        return bytes(body)
    raw = {"$bytes": base64.b64encode(body).decode()}
    if content_type:
        raw["contentType"] = content_type
    return dumps(raw)


def _line(head, key, body):
    text = dumps(head)
    if not key or not body:
        return text + b"\n"
    # JSON text may hold line breaks between its tokens; a line may not.
    if b"\n" in body or b"\r" in body:
        body = body.replace(b"\n", b" ").replace(b"\r", b" ")
    return b'%b,"%b":%b}\n' % (text[:-1], key.encode(), body)


def decode(line):
    """The frame in one line, or None for a type this version does not know."""
    try:
        fields = loads(line)
    except ValueError as error:
        raise StreamClosed(f"a line is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise StreamClosed("a line is not a JSON object")
    kind = _TYPES.get(fields.pop("type", None))
    if kind is None:
        return None
    frame = wire.Frame(kind, id=int(fields.pop(_IDS.get(kind), 0) or 0), code=wire.NAMED)
    if kind == wire.CREDIT:
        frame.chunks = fields.pop("chunks", None) or fields.pop("n", None) or 0
    if kind in _COUNTS:
        frame.count = fields.pop(_COUNTS[kind], None) or 0
    for (owner, key, value), flag in _FLAGS.items():
        if owner == kind and fields.pop(key, None) is value:
            frame.flags |= flag
    if kind == wire.SHUTDOWN and fields.pop("graceful", True) is not False:
        frame.flags |= wire.GRACEFUL
    _take_body(frame, fields)
    _take_meta(frame, fields)
    return frame


def _take_body(frame, fields):
    key = _BODY_KEYS.get(frame.kind)
    if key not in fields:
        return
    value = fields.pop(key)
    raw = _raw_bytes(value)
    if raw is None:
        frame.body = dumps(value)
        return
    frame.flags |= wire.RAW
    frame.body = raw
    if "contentType" in value:
        fields["contentType"] = value["contentType"]


def _raw_bytes(value):
    """The bytes that an object of ``$bytes`` stands for; None for any other value."""
    if not isinstance(value, dict) or "$bytes" not in value:
        return None
    if value.keys() - {"$bytes", "contentType"}:
        return None
    try:
        return base64.b64decode(value["$bytes"], validate=True)
    except (ValueError, TypeError):
        return None


def _take_meta(frame, fields):
    if frame.kind == wire.CALL_RESULT and fields.get("error") is not None:
        frame.flags |= wire.FAILED
        error = fields["error"]
        frame.meta = error if isinstance(error, dict) else {"message": str(error)}
        return
    if "publicId" in fields:
        fields["requestId"] = fields.pop("publicId")
    frame.meta = fields


class Decoder:
    """Cuts a stream of bytes into lines, and lines into frames."""

    def __init__(self, limit=MAX_LINE):
        self.limit = limit
        self.rest = b""

    def feed(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > self.limit or any(len(line) > self.limit for line in lines):
            raise StreamClosed(f"a line is longer than {self.limit} bytes")
        frames = [decode(line) for line in lines if line.strip()]
        return [frame for frame in frames if frame is not None]


def ready(fields):
    """The first line, on every wire."""
    present = {k: v for k, v in fields.items() if v is not None}
    return json.dumps({"type": "ready", **present}, separators=(",", ":")).encode() + b"\n"


def control(token):
    """The first line of a control stream that the worker opened itself."""
    fields = {"type": "control", **({"token": token} if token else {})}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
