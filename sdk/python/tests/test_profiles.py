"""What the thread and the async profile have in common, asked of both."""

import json

from harness import WorkerTest, environment, wire

THREADS = """
import threading
made = []

@ostler.function
def count(n: int):
    for i in range(n):
        made.append(i)
        yield i
    return "done"

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
def spins():
    print("in", flush=True)
    while not ostler.request().cancelled:
        pass
    raise ostler.Cancelled
"""

ASYNC = """
import asyncio
made = []

@ostler.function
async def count(n: int):
    for i in range(n):
        made.append(i)
        yield i

@ostler.function
async def relays(x):
    return ["relayed", await ostler.acall("other", "double", x)]

@ostler.function
async def relays_bytes():
    return await ostler.acall("other", "raw", b"in")

@ostler.function
async def relays_failure():
    try:
        await ostler.acall("other", "fails", n=1)
    except ostler.CallError as error:
        return [error.code, error.retryable, str(error)]

@ostler.function
async def spins():
    print("in", flush=True)
    while True:
        await asyncio.sleep(0)
"""

# In the async profile these two run in the executor.
BOTH = """
closed = []

@ostler.function
def echo(x=None):
    return x

@ostler.function
def produced():
    return len(made)

@ostler.function
def endless():
    try:
        while True:
            yield None
    finally:
        closed.append(1)

@ostler.function
def closings():
    return len(closed)

@ostler.function
def breaks(n: int):
    yield from range(n)
    raise ValueError("broken")

@ostler.function
def blocks_in_a_call():
    return ostler.call("other", "slow")

mood = []

@ostler.health
{hook}
    if mood and mood[-1] == "raise":
        raise RuntimeError("disk full")
    return not mood

@ostler.function
def become(how):
    mood.append(how)
"""


class Profile:
    profile = source = None
    value = b"null"

    def started(self, capacity=4, hook="def well():", **options):
        source = self.source + BOTH.format(hook=hook)
        return self.worker(source, environ=environment(self.profile, capacity), **options)

    # Streams.

    def test_a_generator_sends_its_chunks_and_its_value(self):
        w = self.started()
        w.query("count", 3, flags=wire.STREAM)
        frames = [w.data.next() for _ in range(4)]
        self.assertEqual([(f.kind, f.count, bytes(f.body)) for f in frames[:3]],
                         [(wire.MESSAGE, i, str(i).encode()) for i in range(3)])
        self.assertEqual((frames[3].kind, frames[3].count, bytes(frames[3].body)),
                         (wire.COMPLETE, 3, self.value))

    def test_a_stalled_stream_stays_within_its_window_and_others_go_on(self):
        w = self.started()
        stalled = w.query("count", 1000, credit={"chunks": 10, "bytes": 1 << 20})
        for i in range(10):
            self.assertEqual(w.data.next().count, i)
        for value in range(20):
            self.assertEqual(w.value("echo", value), value)
        other = w.query("count", 30, credit={"chunks": 31, "bytes": 1 << 20})
        self.assertEqual({w.data.next().id for _ in range(31)}, {other})
        self.assertTrue(w.pinged())
        w.data.send(wire.CREDIT, stalled, chunks=5, count=0)
        for i in range(10, 15):
            self.assertEqual(w.data.next().count, i)
        w.cancel(stalled)
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.id, frame.count), (wire.CANCELLED, stalled, 15))
        self.assertEqual(w.value("produced"), 45)

    def test_two_long_streams_run_through_on_steady_credit(self):
        w = self.started()
        rids = [w.query("count", 3000), w.query("count", 3000)]
        seen = dict.fromkeys(rids, 0)
        left = set(rids)
        while left:
            frame = w.data.next()
            if frame.kind == wire.COMPLETE:
                self.assertEqual(frame.count, 3000)
                left.remove(frame.id)
                continue
            self.assertEqual(frame.count, seen[frame.id])
            seen[frame.id] += 1
            if seen[frame.id] % 128 == 0:
                w.data.send(wire.CREDIT, frame.id, chunks=128, count=4096)
        self.assertEqual(set(seen.values()), {3000})

    def test_a_cancelled_generator_is_closed(self):
        w = self.started()
        rid = w.query("endless", credit={"chunks": 3, "bytes": 1000})
        for _ in range(3):
            w.data.next()
        w.cancel(rid)
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.count), (wire.CANCELLED, 3))
        self.assertEqual(w.value("closings"), 1)

    def test_an_exception_after_chunks_says_how_many_there_were(self):
        frame = self.started().call("breaks", 2)
        self.assertEqual((frame.kind, frame.count, frame.meta["type"]), (wire.ERROR, 2, "ValueError"))

    # Calls.

    def test_nested_calls_side_by_side_get_each_its_own_result(self):
        w = self.started()
        rids = [w.query("relays", n, deadline_ms=60_000) for n in range(3)]
        calls = [w.data.next() for _ in rids]
        self.assertEqual({call.meta["requestId"] for call in calls}, {str(rid) for rid in rids})
        for call in calls:
            self.assertEqual((call.kind, call.meta["pool"], call.meta["function"]), (wire.CALL, "other", "double"))
            self.assertTrue(0 < call.meta["deadlineMs"] <= 60_000)
        for call in reversed(calls):
            w.data.send(wire.CALL_RESULT, call.id, body=json.dumps(2 * json.loads(call.body)[0]).encode())
        found = w.answers(*rids)
        self.assertEqual([json.loads(found[rid].body) for rid in rids], [["relayed", 2 * n] for n in range(3)])

    def test_bytes_and_problems_come_back_as_such(self):
        w = self.started()
        w.query("relays_bytes")
        call = w.data.next()
        self.assertEqual((call.flags & wire.RAW, bytes(call.body)), (wire.RAW, b"in"))
        w.data.send(wire.CALL_RESULT, call.id, wire.RAW, body=b"out")
        self.assertEqual(bytes(w.data.next().body), b"out")
        w.query("relays_failure")
        problem = {"code": "nested_deadlock", "retryable": False, "detail": "nobody is free"}
        w.data.send(wire.CALL_RESULT, w.data.next().id, wire.FAILED, problem)
        self.assertEqual(json.loads(w.data.next().body), ["nested_deadlock", False, "nobody is free"])

    def test_a_cancel_wakes_a_handler_that_waits_for_a_result(self):
        w = self.started()
        for function in ("relays", "blocks_in_a_call"):
            with self.subTest(function):
                rid = w.query(function, *([1] if function == "relays" else []))
                call = w.data.next()
                w.cancel(rid)
                frame = w.data.next()
                self.assertEqual((frame.kind, frame.id), (wire.CANCELLED, rid))
                w.data.send(wire.CALL_RESULT, call.id, body=b"2")  # too late: nobody waits
                self.assertEqual(w.value("echo", 7), 7)

    # Health and pings.

    def test_health_is_answered_on_the_stream_it_came_on_also_while_busy(self):
        w = self.started(capacity=2)
        running = []
        for _ in range(2):
            w.stdout.lines.clear()
            running.append(w.query("spins"))
            w.stdout.wait_for("in")
        self.assertTrue(w.pinged())
        for stream in (w.control, w.data):
            stream.send(wire.HEALTH_CHECK)
            self.assertEqual(stream.next().kind, wire.HEALTH_OK)
        for rid in running:
            w.cancel(rid)
        w.answers(*running)

    def test_the_hook_may_say_that_it_is_not_well(self):
        for hook in ("def well():", "async def well():"):
            w = self.started(hook=hook)
            w.control.send(wire.HEALTH_CHECK)
            self.assertEqual(w.control.next().kind, wire.HEALTH_OK)
            for how, reason in (("ill", "said no"), ("raise", "disk full")):
                w.value("become", how)
                w.control.send(wire.HEALTH_CHECK)
                frame = w.control.next()
                self.assertEqual(frame.kind, wire.HEALTH_FAILED)
                self.assertIn(reason, frame.meta["reason"])


class Threads(Profile, WorkerTest):
    profile, source, value = "thread", THREADS, b'"done"'


class Tasks(Profile, WorkerTest):
    profile, source = "async", ASYNC


del Profile
