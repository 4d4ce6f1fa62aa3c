"""The async profile: coroutines side by side on one loop."""

import json
import signal

from harness import STRIKES, WorkerTest, environment, wire

SOURCE = """
import asyncio, contextvars, threading, time

def say(word):
    print(word, flush=True)

loops = set()
state = {}

@ostler.on_start
async def begin():
    loops.add(asyncio.get_running_loop())
    state["gate"] = asyncio.Event()
    state["meeting"] = 0

@ostler.on_stop
async def end():
    loops.add(asyncio.get_running_loop())
    say("stopped on %d loop" % len(loops))

@ostler.function
async def meets(x):
    # Passes only if two are in here at the same time.
    loops.add(asyncio.get_running_loop())
    state["meeting"] += 1
    if state["meeting"] == 2:
        state["gate"].set()
    await asyncio.wait_for(state["gate"].wait(), 30)
    return x

@ostler.function
async def echo(x=None):
    return x

meeting = threading.Barrier(2)

@ostler.function
def meets_in_threads(x):
    meeting.wait(30)
    return [x, threading.current_thread() is threading.main_thread()]

@ostler.function
async def whoami():
    async def child():
        await asyncio.sleep(0)
        return ostler.request().id
    inner = await asyncio.gather(child(), asyncio.to_thread(lambda: ostler.request().id))
    return [ostler.request().id, *inner]

@ostler.function
async def sleeps():
    say("in")
    await asyncio.sleep(600)

@ostler.function
async def cleans_up():
    try:
        say("in")
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        ostler.request().log("cleaning")
        await asyncio.sleep(0)
        raise

@ostler.function
async def swallows():
    try:
        say("in")
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        with ostler.shield():
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return ["kept", ostler.request().cancelled]

@ostler.function
async def shielded():
    steps = []
    try:
        with ostler.shield():
            say("in")
            while not ostler.request().cancelled:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            steps.append("whole")
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        steps.append("raised after it")
    return steps

@ostler.function
async def cancels_itself():
    asyncio.current_task().cancel()
    await asyncio.sleep(600)

@ostler.function
async def blocks():
    say("in")
    time.sleep(0.3)  # pings are answered by the control thread meanwhile
    return "blocked"

@ostler.function
async def calls_wrongly():
    ostler.call("other", "double", 1)

@ostler.function
async def exits():
    raise SystemExit(3)

@ostler.function
async def leaves_a_task_that_exits():
    async def leave():
        raise SystemExit(3)
    asyncio.create_task(leave())

@ostler.function
def polls():
    say("in")
    while not ostler.request().cancelled:
        time.sleep(0.001)
    raise ostler.Cancelled("seen")

@ostler.function
def spins():
    say("in")
    while True:
        pass

@ostler.function
def hands_back_a_coroutine(x):
    return echo(x)

@ostler.function
def hands_back_one_that_sleeps():
    return sleeps()

@ostler.function
async def unclosable():
    try:
        yield 1
        yield 2
    finally:
        await asyncio.sleep(600)

@ostler.function
async def talks(n: int):
    for i in range(n):
        ostler.request().log("x" * 3000)
        ostler.request().progress(i)
        await asyncio.sleep(0)
    return "y" * 100_000
"""


class TaskTest(WorkerTest):
    def tasks(self, source=SOURCE, capacity=8, **options):
        return self.worker(source, environ=environment("async", capacity), **options)

    def begin(self, w, function, *args):
        w.stdout.lines.clear()
        rid = w.query(function, *args)
        w.stdout.wait_for("in")
        return rid


class SideBySide(TaskTest):
    def test_two_coroutines_are_inside_at_the_same_time(self):
        w = self.tasks()
        rids = [w.query("meets", 1), w.query("meets", 2)]
        found = w.answers(*rids)
        self.assertEqual([json.loads(found[rid].body) for rid in rids], [1, 2])

    def test_ready_says_what_it_can_do(self):
        w = self.tasks(capacity=50)
        self.assertEqual((w.ready["profile"], w.ready["capacity"], w.ready["withdraw"]), ("async", 50, True))
        self.assertNotIn("cancelSignal", w.ready)

    def test_plain_functions_run_beside_each_other_in_threads(self):
        w = self.tasks()
        rids = [w.query("meets_in_threads", 1), w.query("meets_in_threads", 2)]
        found = w.answers(*rids)
        self.assertEqual([json.loads(found[rid].body) for rid in rids], [[1, False], [2, False]])

    def test_no_more_begin_than_the_capacity(self):
        w = self.tasks(capacity=2)
        running = [self.begin(w, "sleeps"), self.begin(w, "sleeps")]
        waiting, last = w.query("echo", 1), w.query("echo", 2)
        for rid in (*running, waiting):
            w.control.send(wire.WITHDRAW, rid)
        frame = w.control.next()
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, waiting, wire.NOT_STARTED))
        w.cancel(running[0])
        found = w.answers(running[0], last)
        self.assertEqual([found[rid].kind for rid in (running[0], last)], [wire.CANCELLED, wire.COMPLETE])

    def test_each_request_knows_itself_in_tasks_and_threads_that_it_starts(self):
        w = self.tasks()
        rids = [w.query("whoami", requestId=name) for name in ("r_a", "r_b")]
        found = w.answers(*rids)
        self.assertEqual([json.loads(found[rid].body) for rid in rids], [["r_a"] * 3, ["r_b"] * 3])

    def test_frames_of_several_tasks_do_not_mix(self):
        w = self.tasks()
        rids = [w.query("talks", 20) for _ in range(16)]
        logs = dict.fromkeys(rids, 0)
        left = set(rids)
        while left:
            frame = w.data.next()
            if frame.kind == wire.COMPLETE:
                self.assertEqual(json.loads(frame.body), "y" * 100_000)
                left.remove(frame.id)
            else:
                self.assertIn(frame.id, left)
                logs[frame.id] += frame.kind == wire.LOG
        self.assertEqual(set(logs.values()), {20})

    def test_a_blocking_call_on_the_loop_is_refused_with_advice(self):
        meta = self.tasks().call("calls_wrongly").meta
        self.assertEqual(meta["type"], "RuntimeError")
        self.assertIn("await ostler.acall", meta["message"])

    def test_errors_are_told_and_end_nothing(self):
        w = self.tasks()
        self.assertEqual(w.call("exits").meta["type"], "SystemExit")
        self.assertEqual(w.call("cancels_itself").meta["type"], "CancelledError")
        self.assertEqual(w.call("echo", 1, 2).meta["code"], "invalid_arguments")
        self.assertEqual(w.call("echo", body=b"{").meta["code"], "malformed")
        self.assertEqual(w.call("nowhere").meta["code"], "function_not_found")
        w.call("leaves_a_task_that_exits")
        w.stderr.wait_for("SystemExit")
        self.assertEqual(w.value("echo", 1), 1)

    def test_a_plain_function_may_hand_back_a_coroutine(self):
        w = self.tasks()
        self.assertEqual(w.value("hands_back_a_coroutine", 5), 5)
        rid = self.begin(w, "hands_back_one_that_sleeps")
        w.cancel(rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)

    def test_a_ping_is_answered_while_the_loop_is_blocked(self):
        w = self.tasks()
        rid = self.begin(w, "blocks")
        self.assertTrue(w.pinged())
        self.assertEqual(json.loads(w.answers(rid)[rid].body), "blocked")

    def test_it_speaks_lines_on_one_stream(self):
        w = self.tasks(wires="ndjson", control=False)
        self.assertIs(w.ready["withdraw"], False)
        rid = self.begin(w, "sleeps")
        self.assertEqual(w.value("echo", "ü\n"), "ü\n")
        w.data.send(wire.PING, 9)
        self.assertEqual(w.data.next().kind, wire.PONG)
        w.data.send(wire.CANCEL, rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)

    def test_large_bodies_pass(self):
        w = self.tasks()
        value = "z" * 3_000_000
        self.assertEqual(w.value("echo", value), value)


class Cancel(TaskTest):
    def test_it_is_the_cancellation_of_the_task(self):
        w = self.tasks()
        kept = self.begin(w, "sleeps")
        for function in ("sleeps", "cleans_up", "polls", *(["spins"] if STRIKES else [])):
            with self.subTest(function):
                rid = self.begin(w, function)
                w.cancel(rid)
                frame = w.answers(rid)[rid]
                self.assertEqual((frame.kind, frame.flags), (wire.CANCELLED, 0))
        w.cancel(kept)
        w.answers(kept)

    def test_a_task_that_swallows_it_goes_on_and_is_cancelled_once(self):
        w = self.tasks()
        rid = self.begin(w, "swallows")
        w.cancel(rid)
        w.cancel(rid)
        self.assertEqual(json.loads(w.answers(rid)[rid].body), ["kept", True])

    def test_a_shield_defers_it_to_the_first_await_after_its_end(self):
        w = self.tasks()
        rid = self.begin(w, "shielded")
        w.cancel(rid)
        self.assertEqual(json.loads(w.answers(rid)[rid].body), ["whole", "raised after it"])

    def test_a_generator_that_cannot_stop_cleaning_up_is_interrupted(self):
        w = self.tasks()
        rid = w.query("unclosable", credit={"chunks": 1, "bytes": 1000})
        w.data.next()
        w.cancel(rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)
        self.assertEqual(w.value("echo", 1), 1)


class Stopping(TaskTest):
    def test_graceful_finishes_what_runs(self):
        w = self.tasks()
        first = w.query("meets", 1)
        rids = [first, w.query("echo", 2), w.query("meets", 3)]
        w.data.send(wire.SHUTDOWN, flags=wire.GRACEFUL)
        w.answers(*rids)
        self.assertEqual(w.data.next().kind, wire.SHUTDOWN_ACK)
        self.assertEqual(w.wait(), 0)
        self.assertIn("stopped on 1 loop", w.stdout.text())

    def test_immediate_cancels_all_and_begins_nothing_that_waits(self):
        w = self.tasks(capacity=2)
        running = [self.begin(w, "sleeps"), self.begin(w, "sleeps")]
        waiting = w.query("echo", 1)
        w.data.send(wire.HEALTH_CHECK)  # read after the query
        w.data.until(wire.HEALTH_OK)
        w.control.send(wire.SHUTDOWN)
        found = w.answers(*running, waiting)
        self.assertEqual([found[rid].flags for rid in (*running, waiting)], [0, 0, wire.NOT_STARTED])
        self.assertEqual(w.data.next().kind, wire.SHUTDOWN_ACK)
        self.assertEqual(w.wait(), 0)
        self.assertIn("stopped", w.stdout.text())

    def test_sigterm_ends_an_idle_and_a_busy_worker(self):
        for busy in (False, True):
            w = self.tasks()
            if busy:
                self.begin(w, "sleeps")
            w.process.send_signal(signal.SIGTERM)
            self.assertEqual(w.wait(), 0)
            self.assertIn("stopped", w.stdout.text())

    def test_the_end_of_either_stream_ends_it_idle_or_busy(self):
        for stream in ("data", "control"):
            for busy in (False, True):
                with self.subTest(stream=stream, busy=busy):
                    w = self.tasks()
                    if busy:
                        self.begin(w, "sleeps")
                    getattr(w, stream).sock.close()
                    w.wait()
                    self.assertIn("stopped", w.stdout.text())

    def test_a_loop_that_is_blocked_does_not_keep_it(self):
        w = self.tasks("import time\n@ostler.function\nasync def stuck():\n"
                       "    print('in', flush=True)\n    time.sleep(600)\n")
        self.begin(w, "stuck")
        w.process.send_signal(signal.SIGTERM)
        w.wait()
