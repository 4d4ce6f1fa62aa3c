"""The base wire: lines of JSON, on one stream or two."""

import json

from harness import WorkerTest, wire
from test_streams import SOURCE


class Lines(WorkerTest):
    def lines(self, **options):
        return self.worker(SOURCE, wires="ndjson", **options)

    def test_it_is_chosen_when_binary_is_not_offered(self):
        w = self.lines(control=False)
        self.assertEqual((w.ready["wire"], w.ready["control"], w.ready["credit"]), ("ndjson", False, True))

    def test_values_and_bytes_pass(self):
        w = self.lines(control=False)
        self.assertEqual(w.value("echo", {"a": "ü\n"}), {"a": "ü\n"})
        self.assertEqual(w.value("echo", body=b"\xff\x00", flags=wire.RAW), b"\xff\x00")

    def test_errors_and_unknown_functions_are_told(self):
        w = self.lines(control=False)
        self.assertEqual(w.call("echo", 1, 2).meta["error"]["code"], "invalid_arguments")
        self.assertEqual(w.call("nowhere").meta["error"]["code"], "function_not_found")

    def test_streams_keep_to_their_credit_and_hear_cancel_and_ping_on_the_one_stream(self):
        w = self.lines(control=False)
        rid = w.query("endless", credit={"chunks": 2, "bytes": 100})
        self.assertEqual([w.data.next().count for _ in range(2)], [0, 1])
        w.data.send(wire.PING, 9)
        self.assertEqual((w.data.next().kind), wire.PONG)
        w.data.send(wire.CREDIT, rid, chunks=1, count=100)
        self.assertEqual(w.data.next().count, 2)
        w.data.send(wire.CANCEL, rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)
        self.assertEqual(w.value("closings"), 1)

    def test_a_control_stream_works_on_lines_too(self):
        w = self.lines()
        rid = w.query("endless", credit={"chunks": 1, "bytes": 100})
        w.data.next()
        w.control.send(wire.PING, 4)
        self.assertEqual((w.control.next().kind), wire.PONG)
        w.cancel(rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)

    def test_nested_calls_work_on_lines(self):
        w = self.lines(control=False)
        w.query("relays", 3)
        call = w.data.next()
        self.assertEqual((call.kind, call.meta["pool"], json.loads(call.body)), (wire.CALL, "other", [3]))
        w.data.send(wire.CALL_RESULT, call.id, body=b"6")
        self.assertEqual(json.loads(w.data.next().body), ["relayed", 6])

    def test_shutdown_is_acknowledged(self):
        w = self.lines(control=False)
        w.data.send(wire.SHUTDOWN, flags=wire.GRACEFUL)
        self.assertEqual(w.data.next().kind, wire.SHUTDOWN_ACK)
        self.assertEqual(w.wait(), 0)


class OneBinaryStream(WorkerTest):
    def test_everything_comes_in_turn(self):
        w = self.worker(SOURCE, control=False)
        self.assertEqual((w.ready["wire"], w.ready["control"]), ("binary", False))
        self.assertEqual(w.value("echo", 1), 1)
        w.data.send(wire.PING, 6)
        self.assertEqual(w.data.next().id, 6)
        rid = w.query("endless", credit={"chunks": 1, "bytes": 100})
        w.data.next()
        w.data.send(wire.CANCEL, rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)
        self.assertEqual(w.value("echo", 2), 2)
