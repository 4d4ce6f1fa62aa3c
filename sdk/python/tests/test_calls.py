"""Functions, results and errors over the binary wire."""

import os

from harness import WorkerProcess, WorkerTest, wire

SOURCE = """
import os

@ostler.function
def echo(data):
    return data

@ostler.function
def raw(data: bytes) -> bytes:
    return data

@ostler.function
def view(data: memoryview):
    return [type(data).__name__, len(data)]

@ostler.function(name="renamed", thread_safe=True)
def original():
    "What it does."
    return "original"

@ostler.function
def fail(kind):
    class Odd(Exception):
        def __str__(self):
            raise ValueError("no text")
    if kind == "retryable":
        raise ostler.Retryable("later")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "cancelled":
        raise ostler.Cancelled("by myself")
    if kind == "odd":
        raise Odd
    if kind == "surrogate":
        raise ValueError("lone \\ud800")
    if kind == "long":
        raise ValueError("x" * 100_000)
    if kind == "deep":
        return fail_deeply()
    raise LookupError(kind)

def fail_deeply():
    return fail_deeply()

@ostler.function
def odd_result(kind):
    if kind == "nan":
        return {"a": [float("nan")]}
    if kind == "null":
        return {"a": None}
    if kind == "surrogate":
        return "\\ud800"
    if kind == "object":
        return object()
    if kind == "bytearray":
        return bytearray(b"abc")
    if kind == "typed":
        return ostler.Raw(b"<p>", "text/html")
    if kind == "numbers":
        return {1: 2 ** 70}
    if kind == "set":
        return {7}
    if kind == "large":
        return "x" * 300_000
    if kind == "coroutine":
        return waits(5)
    if kind == "generator":
        return (i for i in range(3))
    loop = []
    loop.append(loop)
    return loop

@ostler.function
async def waits(n: int):
    import asyncio
    await asyncio.sleep(0)
    return n + 1

@ostler.function
def about():
    r = ostler.request()
    left = r.remaining()
    return [r.id, r.session, r.attempt, r.shard, r.shard_count, r.job, r.cancelled,
            left is not None and 0 < left <= 60, r.traceparent]

@ostler.function
def environment():
    return sorted(name for name in os.environ if name in ("OSTLER_FD", "OSTLER_TOKEN"))

@ostler.function
def says_nonsense():
    ostler.request().progress(object())

@ostler.function
def talks():
    r = ostler.request()
    r.log("hello", level="warning")
    r.progress({"done": 1})
    ostler.metric("rows", 3, table="a")
    ostler.retire("old")
    ostler.retire("shaken", tainted=True)
    print("printed")
    return "said"
"""


class Calls(WorkerTest):
    @classmethod
    def setUpClass(cls):
        cls.w = WorkerProcess(SOURCE)
        cls.addClassCleanup(cls.w.close)

    def error(self, *args, **options):
        frame = self.w.call(*args, **options)
        self.assertEqual(frame.kind, wire.ERROR)
        return frame.meta

    def test_a_value_comes_back_as_it_went(self):
        for value in [None, True, 1, 2**70, -1.5, "ü", [], {}, [1, [2]], {"a": {"b": None}}]:
            self.assertEqual(self.w.value("echo", {"data": value}["data"]), value)

    def test_a_long_integer_in_a_large_body_keeps_its_digits(self):
        value = ["x" * 1000, 123456789012345678901234567890]
        self.assertEqual(self.w.value("echo", value), value)

    def test_bytes_pass_untouched(self):
        body = bytes(range(256))
        frame = self.w.call("raw", body=body, flags=wire.RAW)
        self.assertEqual((frame.flags & wire.RAW, bytes(frame.body)), (wire.RAW, body))

    def test_bytes_reach_the_only_parameter(self):
        self.assertEqual(self.w.value("echo", body=b"\xff", flags=wire.RAW), b"\xff")

    def test_large_bodies_pass_in_both_directions(self):
        for size in (65_500, 65_536, 65_537, 3_000_000):
            body = b"y" * size
            self.assertEqual(self.w.value("raw", body=body, flags=wire.RAW), body)
        self.assertEqual(self.w.value("view", body=b"z" * 200_000, flags=wire.RAW), ["memoryview", 200_000])

    def test_a_large_body_may_have_a_small_one_behind_it(self):
        first = self.w.query("raw", body=b"a" * 500_000, flags=wire.RAW)
        second = self.w.query("echo", 5)
        self.assertEqual([self.w.data.next().id, self.w.data.next().id], [first, second])

    def test_a_named_function_is_found_by_name_and_by_number(self):
        self.assertEqual(self.w.value("renamed"), "original")
        frame = self.w.call("missing")
        self.assertEqual(frame.meta["code"], "function_not_found")
        self.assertIs(frame.meta["started"], False)

    def test_a_body_that_is_not_json_is_malformed_and_starts_nothing(self):
        for function in ("echo", "about"):
            meta = self.error(function, body=b'{"a":')
            self.assertEqual((meta["code"], meta["started"]), ("malformed", False))
        self.assertEqual(self.error("echo", 1, 2)["code"], "invalid_arguments")

    def test_ready_describes_the_functions(self):
        entry = self.w.ready["functions"][self.w.index["renamed"]]
        self.assertEqual((entry["threadSafe"], self.w.ready["profile"]), (True, "process"))
        self.assertEqual((entry["doc"], entry["streaming"]), ("What it does.", False))
        self.assertEqual(self.w.ready["cancelSignal"], 23)
        self.assertEqual(self.w.ready["pid"], self.w.process.pid)

    def test_an_exception_is_an_application_error_with_the_users_frames(self):
        meta = self.error("fail", "boom")
        self.assertEqual((meta["code"], meta["type"]), ("application_error", "LookupError"))
        self.assertIn("served.py", meta["traceback"])
        self.assertNotIn("process.py", meta["traceback"])
        self.assertFalse(meta.get("retryable"))

    def test_retryable_says_so(self):
        self.assertIs(self.error("fail", "retryable")["retryable"], True)

    def test_exit_and_interrupt_in_a_handler_do_not_end_the_worker(self):
        self.assertEqual(self.error("fail", "exit")["type"], "SystemExit")
        self.assertEqual(self.error("fail", "interrupt")["type"], "KeyboardInterrupt")

    def test_cancelled_raised_by_the_handler_is_a_cancelled_frame(self):
        frame = self.w.call("fail", "cancelled")
        self.assertEqual((frame.kind, frame.flags, frame.meta["reason"]), (wire.CANCELLED, 0, "by myself"))

    def test_messages_are_bounded_and_readable_whatever_the_exception_does(self):
        self.assertIn("readable", self.error("fail", "odd")["message"])
        self.assertEqual(self.error("fail", "surrogate")["message"], "lone \\ud800")
        self.assertEqual(len(self.error("fail", "long")["message"]), 8192)
        deep = self.error("fail", "deep")
        self.assertEqual(deep["type"], "RecursionError")
        self.assertLessEqual(len(deep["traceback"]), 65536)

    def test_results_that_are_not_json_are_errors(self):
        for kind in ("nan", "surrogate", "object", "circular"):
            meta = self.error("odd_result", kind)
            self.assertIn("cannot be sent as JSON", meta["message"], kind)

    def test_unusual_results_keep_their_meaning(self):
        self.assertEqual(self.w.value("odd_result", "null"), {"a": None})
        self.assertEqual(self.w.value("odd_result", "bytearray"), b"abc")
        self.assertEqual(self.w.value("odd_result", "numbers"), {"1": 2**70})
        self.assertEqual(self.w.value("odd_result", "set"), [7])
        self.assertEqual(self.w.value("odd_result", "large"), "x" * 300_000)
        typed = self.w.call("odd_result", "typed")
        self.assertEqual((bytes(typed.body), typed.meta["contentType"]), (b"<p>", "text/html"))

    def test_a_function_that_returns_a_generator_streams(self):
        self.w.query("odd_result", "generator")
        kinds = [self.w.data.next().kind for _ in range(4)]
        self.assertEqual(kinds, [wire.MESSAGE] * 3 + [wire.COMPLETE])

    def test_and_it_keeps_to_the_credit_of_its_query(self):
        rid = self.w.query("odd_result", "generator", credit={"chunks": 1, "bytes": 100})
        self.assertEqual(self.w.data.next().kind, wire.MESSAGE)
        self.w.cancel(rid)
        frame = self.w.data.next()
        self.assertEqual((frame.kind, frame.count), (wire.CANCELLED, 1))

    def test_a_coroutine_function_is_awaited(self):
        self.assertEqual(self.w.value("waits", 4), 5)

    def test_the_request_tells_about_itself(self):
        plain = self.w.value("about")
        self.assertEqual(plain, [str(self.w.last_id), None, 1, 0, 1, None, False, False, None])
        full = self.w.value(
            "about", deadline_ms=60_000, requestId="r_1", sessionId="s", attempt=2,
            traceparent="00-1", job={"id": "j_1", "attempt": 4, "shard": 1, "shardCount": 3, "depth": 2},
        )
        self.assertEqual(full, ["r_1", "s", 2, 1, 3, ["j_1", 4, 1, 3, 2], False, True, "00-1"])

    def test_programs_that_a_handler_starts_do_not_see_the_streams(self):
        self.assertEqual(self.w.value("environment"), [])

    def test_what_a_handler_says_comes_before_its_terminal_frame(self):
        rid = self.w.query("talks")
        log, progress, metric, retire, tainted, end = (self.w.data.next() for _ in range(6))
        self.assertEqual((log.kind, log.id, log.meta), (wire.LOG, rid, {"level": "warning", "message": "hello"}))
        self.assertEqual((progress.kind, bytes(progress.body)), (wire.PROGRESS, b'{"done":1}'))
        self.assertEqual(metric.meta, {"name": "rows", "value": 3.0, "labels": {"table": "a"}})
        self.assertEqual((retire.kind, retire.meta), (wire.RETIRE, {"reason": "old"}))
        self.assertEqual(tainted.meta, {"reason": "shaken", "tainted": True})
        self.assertEqual(end.kind, wire.COMPLETE)
        self.w.stdout.wait_for("printed")

    def test_a_signal_makes_the_stacks_appear(self):
        os.kill(self.w.process.pid, self.w.ready["traceSignal"])
        self.w.stderr.wait_for("in run_binary")

    def test_what_a_handler_cannot_say_in_json_is_its_own_error(self):
        self.assertEqual(self.error("says_nonsense")["type"], "TypeError")

    def test_a_plain_function_may_hand_back_a_coroutine(self):
        self.assertEqual(self.w.value("odd_result", "coroutine"), 6)

    def test_pings_and_traces_are_answered_on_control(self):
        self.w.control.send(wire.PING, 99)
        pong = self.w.control.next()
        self.assertEqual((pong.kind, pong.id), (wire.PONG, 99))
        self.w.control.send(wire.TRACE, 5)
        trace = self.w.control.next()
        self.assertEqual((trace.kind, trace.id), (wire.TRACE_RESULT, 5))
        self.assertIn(b"run_binary", trace.body)
