"""The golden vectors that every implementation reads."""

import json
import os
import unittest

from harness import PACKAGE, ndjson, wire
from ostler.errors import StreamClosed

FOLDER = os.path.join(os.path.dirname(os.path.dirname(PACKAGE)), "testdata", "protocol")
CODECS = {"binary": wire, "ndjson": ndjson}
KINDS = ndjson._TYPES

# What any reader must refuse, whichever way a message goes.
REFUSED = {
    "frame_too_short", "frame_too_long", "meta_too_long", "line_too_long", "bad_json", "not_utf8",
}


def vectors(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return json.load(file)


def frames(codec, data, limit=1 << 26):
    return codec.Decoder(limit).feed(data)


def body_of(message):
    """(flags, body, content type) of a vector's body."""
    body = message.get("body") or {}
    if "raw" in body:
        return wire.RAW, bytes.fromhex(body["raw"]), body.get("contentType")
    if "jsonHex" in body:
        return 0, bytes.fromhex(body["jsonHex"]), None
    return 0, body.get("json", "").encode(), None


def as_query(frame):
    """A query frame in the words of the vectors."""
    meta = frame.meta
    if frame.code != wire.NAMED:
        function = {"index": frame.code}
    else:
        function = {"name": meta["function"]} if "function" in meta else None
    return {
        "type": "query",
        "id": str(frame.id),
        "function": function,
        "stream": bool(frame.flags & wire.STREAM),
        "deadlineMs": frame.count or None,
        "attempt": meta.get("attempt", 1),
        "credit": meta.get("credit"),
        "idempotent": meta.get("idempotent", False),
        "requestId": meta.get("requestId"),
        "sessionId": meta.get("sessionId"),
        "continuity": meta.get("continuity"),
        "job": meta.get("job"),
        "traceparent": meta.get("traceparent"),
    }


def parts_of(message):
    """The arguments of ``encode`` for a vector that a worker sends."""
    kind = KINDS[message["type"]]
    flags, body, content_type = body_of(message)
    id = int(message.get("id") or message.get("callId") or message.get("nonce") or 0)
    keys = {
        "session": ["sessionId"],
        "error": ["code", "message", "traceback"],
        "cancelled": ["reason"],
        "health_ok": ["uptime", "queriesProcessed"],
        "health_failed": ["reason"],
        "log": ["level", "message"],
        "metric": ["name", "value", "labels"],
        "retire": ["reason", "tainted"],
        "call": ["pool", "function", "deadlineMs"],
    }
    meta = {key: message.get(key) for key in keys.get(message["type"], [])}
    meta["contentType"] = content_type
    if message["type"] == "error":
        meta["type"] = message["exception"]
        meta["retryable"] = message["retryable"] or None
        meta["started"] = None if message["started"] else False
    if message["type"] == "call":
        meta["requestId"] = message["request"]
        meta["answerOn"] = "control" if message["answerOnControl"] else None
    if message["type"] == "cancelled" and not message["started"]:
        flags |= wire.NOT_STARTED
    if message["type"] == "trace_result":
        body = message["text"].encode()
    meta = {key: value for key, value in meta.items() if value is not None}
    count = message.get("seq") or message.get("chunks") or 0
    return {"kind": kind, "id": id, "flags": flags, "meta": meta, "body": body, "count": count}


def flat(frame):
    return (frame.kind, frame.id, frame.flags, frame.meta, bytes(frame.body), frame.count)


class Vectors(unittest.TestCase):
    def cases(self, direction):
        for name, codec in CODECS.items():
            for vector in vectors(f"{name}.json"):
                if vector["direction"] == direction:
                    yield codec, vector, vector["message"], bytes.fromhex(vector["hex"])

    def test_what_a_server_sends_is_understood(self):
        seen = 0
        for codec, vector, message, data in self.cases("to_worker"):
            seen += 1
            with self.subTest(vector["name"], wire=vector["wire"]):
                got = frames(codec, data)
                if message["type"] == "unknown":
                    self.assertFalse([f for f in got if f.kind in KINDS.values()])
                else:
                    (frame,) = got
                    self.assertEqual(frame.kind, KINDS[message["type"]])
                    self.check(frame, message)
        self.assertGreater(seen, 40)

    def check(self, frame, message):
        if frame.kind == wire.QUERY:
            told = {"continuity": None, **message}
            self.assertEqual({**as_query(frame), "body": message["body"]}, told)
        for key in ("id", "callId", "nonce"):
            if key in message:
                self.assertEqual(str(frame.id), message[key])
        if frame.kind in (wire.QUERY, wire.CALL_RESULT) and message["body"] is not None:
            flags, body, content_type = body_of(message)
            self.assertEqual(frame.flags & wire.RAW, flags)
            self.assertEqual(frame.meta.get("contentType"), content_type)
            same = (lambda b: b) if flags or not body else json.loads
            self.assertEqual(same(bytes(frame.body)), same(body))
        if frame.kind == wire.CALL_RESULT and message["problem"] is not None:
            self.assertEqual((frame.flags & wire.FAILED, frame.meta), (wire.FAILED, message["problem"]))
        if frame.kind == wire.CREDIT:
            self.assertEqual((frame.chunks, frame.count), (message["chunks"], message["bytes"]))
        if frame.kind == wire.SHUTDOWN:
            self.assertEqual(bool(frame.flags & wire.GRACEFUL), message["graceful"])

    def test_what_a_worker_sends_is_spelled_as_everybody_spells_it(self):
        seen = 0
        for codec, vector, message, data in self.cases("from_worker"):
            if vector["opening"] or not vector["canonical"]:
                continue
            seen += 1
            with self.subTest(vector["name"], wire=vector["wire"]):
                self.check_spelling(codec, codec.encode(**parts_of(message)), data)
        self.assertGreater(seen, 50)

    def check_spelling(self, codec, mine, data):
        if codec is wire:
            self.assertEqual([flat(f) for f in frames(wire, mine)], [flat(f) for f in frames(wire, data)])
            return
        optional = {"chunks", "seq"} - json.loads(data).keys()  # zero goes without saying
        self.assertEqual({k: v for k, v in json.loads(mine).items() if k not in optional}, json.loads(data))
        self.assertTrue(mine.endswith(b"\n") and mine.count(b"\n") == 1)

    def test_opening_lines_are_spelled_as_everybody_spells_them(self):
        for vector in vectors("ndjson.json"):
            if vector["opening"] and vector["canonical"]:
                with self.subTest(vector["name"]):
                    fields = json.loads(bytes.fromhex(vector["hex"]))
                    if fields.pop("type") == "control":
                        mine = ndjson.control(fields["token"])
                    else:
                        mine = ndjson.ready(fields)
                    self.assertEqual(mine, bytes.fromhex(vector["hex"]))

    def test_broken_frames_and_lines_are_refused(self):
        seen = 0
        for vector in vectors("violations.json"):
            if vector["violation"] not in REFUSED or vector["opening"]:
                continue
            with self.subTest(vector["name"]):
                seen += 1
                codec = CODECS[vector["wire"]]
                limit = vector["maxFrame"] if codec is wire else vector["maxLine"]
                with self.assertRaises(StreamClosed):
                    frames(codec, bytes.fromhex(vector["hex"]), limit)
        self.assertGreater(seen, 10)

    def test_frames_may_come_in_any_pieces(self):
        for name, codec in CODECS.items():
            whole = b"".join(bytes.fromhex(v["hex"]) for v in vectors(f"{name}.json") if v["direction"] == "to_worker")
            expected = [flat(f) for f in frames(codec, whole)]
            for size in (1, 3, 23, 24, 25, 100):
                decoder, got = codec.Decoder(1 << 26), []
                for start in range(0, len(whole), size):
                    got += decoder.feed(whole[start : start + size])
                self.assertEqual([flat(f) for f in got], expected)
