"""Generators, credit, and calls back."""

import json

from harness import WorkerTest, wire

SOURCE = """
import threading

@ostler.function
def count(n: int):
    for i in range(n):
        made.append(i)
        yield i
    return "done"

made = []

@ostler.function
def produced():
    return len(made)

@ostler.function
def pieces(n: int, size: int):
    for _ in range(n):
        yield b"x" * size

@ostler.function
def breaks(n: int):
    yield from range(n)
    raise ValueError("broken")

@ostler.function
async def ticks(n: int):
    import asyncio
    for i in range(n):
        await asyncio.sleep(0)
        yield i

closed = []

@ostler.function
def endless():
    try:
        while True:
            yield None
    finally:
        closed.append(1)

@ostler.function
def unclosable():
    import time
    try:
        yield 1
        yield 2
    finally:
        time.sleep(600)

@ostler.function
def closings():
    return len(closed)

@ostler.function
def echo(x):
    return x

@ostler.function
def relays(x):
    return ["relayed", ostler.call("other", "double", x)]

@ostler.function
def relays_bytes():
    return ostler.call("other", "raw", b"in")

@ostler.function
def relays_failure():
    try:
        ostler.call("other", "fails", n=1)
    except ostler.CallError as error:
        return [error.code, error.retryable, str(error)]

@ostler.function
def relays_from_a_thread():
    got = []
    def work():
        ostler.request().log("from a thread")
        got.append(ostler.call("other", "double", 4))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return got

@ostler.function
async def relays_async(x):
    import asyncio
    return await asyncio.gather(ostler.acall("other", "double", x), ostler.acall("other", "double", x + 1))

@ostler.function
async def blocks_in_a_coroutine():
    return ostler.call("other", "slow")

@ostler.function
def twice():
    return [ostler.call("other", "a"), ostler.call("other", "b")]
"""


class Streams(WorkerTest):
    def test_a_generator_sends_its_chunks_and_its_value(self):
        w = self.worker(SOURCE)
        w.query("count", 3, flags=wire.STREAM)
        frames = [w.data.next() for _ in range(4)]
        self.assertEqual([(f.kind, f.count, bytes(f.body)) for f in frames[:3]],
                         [(wire.MESSAGE, i, str(i).encode()) for i in range(3)])
        self.assertEqual((frames[3].kind, frames[3].count, bytes(frames[3].body)),
                         (wire.COMPLETE, 3, b'"done"'))

    def test_an_async_generator_streams_too(self):
        w = self.worker(SOURCE)
        w.query("ticks", 2)
        self.assertEqual([w.data.next().kind for _ in range(3)], [wire.MESSAGE] * 2 + [wire.COMPLETE])

    def test_an_exception_after_chunks_says_how_many_there_were(self):
        w = self.worker(SOURCE)
        frame = w.call("breaks", 2)
        self.assertEqual((frame.kind, frame.count, frame.meta["type"]), (wire.ERROR, 2, "ValueError"))

    def test_a_producer_stays_within_its_window_while_the_reader_stalls(self):
        w = self.worker(SOURCE)
        rid = w.query("count", 1000, credit={"chunks": 10, "bytes": 1 << 20})
        behind = w.query("echo", "next")
        for i in range(10):
            self.assertEqual(w.data.next().count, i)
        for nonce in range(5):  # still heard while it waits
            w.control.send(wire.PING, nonce)
            self.assertEqual(w.control.next().id, nonce)
        w.data.send(wire.CREDIT, rid, chunks=5, count=0)
        for i in range(10, 15):
            self.assertEqual(w.data.next().count, i)
        w.cancel(rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)
        self.assertEqual(w.data.next().id, behind)
        self.assertEqual(w.value("produced"), 15)

    def test_bytes_count_against_the_window_too(self):
        w = self.worker(SOURCE)
        rid = w.query("pieces", 5, 100, credit={"chunks": 100, "bytes": 150})
        self.assertEqual([w.data.next().count for _ in range(2)], [0, 1])
        w.data.send(wire.CREDIT, rid, chunks=0, count=60)  # 10 above zero: one more
        self.assertEqual(w.data.next().count, 2)
        w.cancel(rid)
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.count), (wire.CANCELLED, 3))

    def test_a_long_stream_runs_through_on_steady_credit(self):
        w = self.worker(SOURCE)
        rid = w.query("count", 5000)
        seen = 0
        while True:
            frame = w.data.next()
            if frame.kind == wire.COMPLETE:
                break
            self.assertEqual(frame.count, seen)
            seen += 1
            if seen % 128 == 0:
                w.data.send(wire.CREDIT, rid, chunks=128, count=4096)
        self.assertEqual((seen, frame.count), (5000, 5000))

    def test_requests_met_while_waiting_for_credit_run_afterwards_in_order(self):
        w = self.worker(SOURCE)
        rid = w.query("count", 4, credit={"chunks": 2, "bytes": 100})
        later = [w.query("echo", i) for i in range(20)]
        big = w.query("echo", body=json.dumps(["z" * 200_000]).encode())
        w.data.until(wire.MESSAGE)
        w.data.until(wire.MESSAGE)
        w.data.send(wire.CREDIT, rid, chunks=10, count=100)
        ends = [w.data.until(wire.COMPLETE).id for _ in range(22)]
        self.assertEqual(ends, [rid, *later, big])

    def test_a_cancelled_generator_is_closed(self):
        w = self.worker(SOURCE)
        rid = w.query("endless", credit={"chunks": 3, "bytes": 1000})
        for _ in range(3):
            w.data.next()
        w.cancel(rid, signalled=False)
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.count), (wire.CANCELLED, 3))
        self.assertEqual(w.value("closings"), 1)

    def test_a_generator_that_cannot_stop_cleaning_up_is_interrupted(self):
        w = self.worker(SOURCE)
        rid = w.query("unclosable", credit={"chunks": 1, "bytes": 1000})
        w.data.next()
        w.cancel(rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)
        self.assertEqual(w.value("echo", 1), 1)

    def test_credit_for_a_finished_request_is_ignored(self):
        w = self.worker(SOURCE)
        rid = w.query("count", 1)
        w.data.until(wire.COMPLETE)
        w.data.send(wire.CREDIT, rid, chunks=5, count=5)
        self.assertEqual(w.value("echo", 1), 1)


class CallsBack(WorkerTest):
    def test_a_nested_call_waits_for_its_result(self):
        w = self.worker(SOURCE)
        rid = w.query("relays", 21, deadline_ms=60_000)
        call = w.data.next()
        self.assertEqual((call.kind, call.meta["pool"], call.meta["function"]), (wire.CALL, "other", "double"))
        self.assertEqual(call.meta["requestId"], str(rid))
        self.assertTrue(0 < call.meta["deadlineMs"] <= 60_000)
        self.assertEqual(json.loads(call.body), [21])
        w.data.send(wire.CALL_RESULT, call.id, body=b"42")
        self.assertEqual(json.loads(w.data.next().body), ["relayed", 42])

    def test_requests_met_while_waiting_for_a_result_are_put_aside(self):
        w = self.worker(SOURCE)
        first = w.query("relays", 1)
        rest = [w.query("echo", i) for i in range(5)]
        call = w.data.next()
        w.data.send(wire.CALL_RESULT, call.id, body=b"2")
        self.assertEqual([w.data.next().id for _ in range(6)], [first, *rest])

    def test_bytes_and_problems_come_back_as_such(self):
        w = self.worker(SOURCE)
        w.query("relays_bytes")
        call = w.data.next()
        self.assertEqual((call.flags & wire.RAW, bytes(call.body)), (wire.RAW, b"in"))
        w.data.send(wire.CALL_RESULT, call.id, wire.RAW, body=b"out")
        self.assertEqual(bytes(w.data.next().body), b"out")
        w.query("relays_failure")
        call = w.data.next()
        problem = {"code": "pool_saturated", "retryable": True, "detail": "full"}
        w.data.send(wire.CALL_RESULT, call.id, wire.FAILED, problem)
        self.assertEqual(json.loads(w.data.next().body), ["pool_saturated", True, "full"])

    def test_a_call_from_a_thread_is_answered_on_control(self):
        w = self.worker(SOURCE)
        w.query("relays_from_a_thread")
        self.assertEqual(w.control.next().kind, wire.LOG)
        call = w.control.next()
        self.assertEqual((call.kind, call.meta["answerOn"]), (wire.CALL, "control"))
        w.control.send(wire.CALL_RESULT, call.id, body=b"8")
        self.assertEqual(json.loads(w.data.next().body), [8])

    def test_a_cancelled_call_leaves_the_stream_whole(self):
        w = self.worker(SOURCE)
        rid = w.query("relays", 1)
        call = w.data.next()
        w.cancel(rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)
        w.data.send(wire.CALL_RESULT, call.id, body=b"2")  # too late: nobody waits
        self.assertEqual(w.value("echo", 7), 7)
        w.query("twice")
        for answer in (b"1", b"2"):
            w.data.send(wire.CALL_RESULT, w.data.next().id, body=answer)
        self.assertEqual(json.loads(w.data.next().body), [1, 2])

    def test_coroutines_wait_for_results_side_by_side(self):
        w = self.worker(SOURCE)
        rid = w.query("relays_async", 1)
        calls = [w.control.next(), w.control.next()]
        self.assertEqual([call.meta["requestId"] for call in calls], [str(rid)] * 2)
        for call in reversed(calls):
            w.control.send(wire.CALL_RESULT, call.id, body=json.dumps(2 * json.loads(call.body)[0]).encode())
        self.assertEqual(json.loads(w.data.next().body), [2, 4])
        rid = w.query("relays_async", 1)
        w.control.next()
        w.control.next()
        w.cancel(rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)

    def test_a_cancel_wakes_a_coroutine_that_blocks_in_a_call(self):
        for signalled in (True, False):
            w = self.worker(SOURCE)
            rid = w.query("blocks_in_a_coroutine")
            self.assertEqual(w.data.next().kind, wire.CALL)
            w.cancel(rid, signalled)
            self.assertEqual((w.data.next().kind), wire.CANCELLED)
            self.assertEqual(w.value("echo", 1), 1)

    def test_on_one_stream_a_coroutine_can_call_too(self):
        w = self.worker(SOURCE, control=False)
        w.query("relays_async", 3)
        for answer in (b"6", b"8"):
            w.data.send(wire.CALL_RESULT, w.data.next().id, body=answer)
        self.assertEqual(json.loads(w.data.next().body), [6, 8])
