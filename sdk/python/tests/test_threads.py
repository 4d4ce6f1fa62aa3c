"""The thread profile: requests side by side, each with its own answer."""

import json
import signal

from harness import WorkerTest, environment, strikes, wire

SOURCE = """
import contextvars, os, threading, time

def say(word):
    print(word, flush=True)

meeting = threading.Barrier(2)
gate = threading.Event()
mine = contextvars.ContextVar("mine", default=None)

@ostler.function
def meets(x):
    meeting.wait(30)  # passes only if two are in here at the same time
    return x

@ostler.function
def waits_at_gate(x):
    say("in")
    gate.wait(30)
    return x

@ostler.function
def opens_gate():
    gate.set()

@ostler.function
def echo(x=None):
    return x

@ostler.function
def whoami():
    first = ostler.request().id
    meeting.wait(30)
    seen = []
    helper = threading.Thread(
        target=contextvars.copy_context().run, args=(lambda: seen.append(ostler.request().id),))
    helper.start()
    helper.join()
    return [first, ostler.request().id, *seen]

@ostler.function
def without_context():
    seen = []
    def look():
        try:
            ostler.request()
        except RuntimeError as error:
            seen.append(str(error))
    helper = threading.Thread(target=look)
    helper.start()
    helper.join()
    return seen

@ostler.function
def leaves_a_mark():
    before = mine.get()
    mine.set("left by another request")
    return before

@ostler.function
def spins():
    say("in")
    while True:
        pass

@ostler.function
def spins_after_talking():
    ostler.request().log("about to spin")
    with ostler.shield():
        say("in")
    while True:
        pass

@ostler.function
def imports():
    with open(os.path.join(os.path.dirname(__file__), "slow_module.py"), "w") as file:
        file.write("import os, time\\nos.mkdir(__file__ + '.once')  # cannot be imported twice\\n"
                   "print('in', flush=True)\\n"
                   "end = time.monotonic() + 0.3\\nwhile time.monotonic() < end: pass\\nready = True\\n")
    import slow_module
    while True:
        pass

@ostler.function
def imported():
    import slow_module
    return slow_module.ready

@ostler.function
def pours(n: int, size: int):
    for i in range(n):
        yield bytes([i]) * size

@ostler.function
def polls():
    with ostler.shield():
        say("in")
        while not ostler.request().cancelled:
            time.sleep(0.001)
    say("not reached")

@ostler.function
def finishes_anyway():
    try:
        say("in")
        while True:
            pass
    except ostler.Cancelled:
        ostler.request().log("still here")
        with ostler.shield():
            pass
        return ["kept", ostler.request().cancelled]

@ostler.function
async def awaits():
    import asyncio
    say("in")
    await asyncio.sleep(600)

@ostler.function
async def adds(n: int):
    import asyncio
    await asyncio.sleep(0)
    return n + 1

@ostler.function
async def ticks(n: int):
    for i in range(n):
        yield i

class Sink:
    def __del__(self):
        say("in")
        while ostler.request().cancelled is False:
            pass
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass

@ostler.function
def loses_it_once():
    Sink()
    while True:
        pass

@ostler.function
def talks(n: int):
    for i in range(n):
        ostler.request().log("x" * 3000)
        ostler.request().progress(i)
    return "y" * 100_000

late = threading.Event()
said = threading.Event()

@ostler.function
def talks_too_late():
    request = ostler.request()
    def talk():
        late.wait(30)
        request.progress(1)
        request.log("after the end")
        said.set()
    threading.Thread(target=talk, daemon=True).start()

@ostler.function
def lets_it_talk():
    late.set()
    said.wait(30)

@ostler.function
def fails(kind):
    if kind == "exit":
        raise SystemExit(1)
    raise ValueError(kind)

@ostler.function
def forks():
    child = os.fork()
    if child == 0:
        return "from the child"
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])

@ostler.function
def sleeps():
    with ostler.shield():
        say("in")
        time.sleep(600)

@ostler.function
def says_all():
    ostler.metric("rows", 1)
    ostler.retire("shaken", tainted=True)
    return [ostler.request().attempt, ostler.request().remaining() is not None]

@ostler.on_stop
def stopping():
    say("stopped")
"""


class ThreadTest(WorkerTest):
    def threads(self, source=SOURCE, capacity=4, checks="off", **options):
        return self.worker(source, environ=environment("thread", capacity, checks), **options)

    def begin(self, w, function, *args, **options):
        w.stdout.lines.clear()
        rid = w.query(function, *args, **options)
        w.stdout.wait_for("in")
        return rid


class SideBySide(ThreadTest):
    def test_two_requests_are_inside_at_the_same_time(self):
        w = self.threads()
        rids = [w.query("meets", 1), w.query("meets", 2)]
        found = w.answers(*rids)
        self.assertEqual([json.loads(found[rid].body) for rid in rids], [1, 2])

    def test_ready_says_what_it_can_do(self):
        w = self.threads(capacity=7)
        self.assertEqual((w.ready["profile"], w.ready["capacity"], w.ready["withdraw"]), ("thread", 7, True))
        self.assertNotIn("cancelSignal", w.ready)

    def test_no_more_begin_than_there_are_threads(self):
        w = self.threads(capacity=2)
        running = [self.begin(w, "waits_at_gate", i) for i in range(2)]
        waiting, last = w.query("echo", 3), w.query("opens_gate")
        for rid in (*running, waiting):
            w.control.send(wire.WITHDRAW, rid)
        frame = w.control.next()  # only what has not begun is given back
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, waiting, wire.NOT_STARTED))
        self.assertTrue(w.pinged())
        w.cancel(running[0])  # the flag; the gate itself is not interrupted
        w.control.send(wire.WITHDRAW, last)
        self.assertEqual(w.control.next().id, last)

    def test_each_request_knows_itself_also_in_a_copied_context(self):
        w = self.threads()
        rids = [w.query("whoami", requestId=name) for name in ("r_a", "r_b")]
        found = w.answers(*rids)
        self.assertEqual([json.loads(found[rid].body) for rid in rids], [["r_a"] * 3, ["r_b"] * 3])

    def test_a_thread_without_the_context_is_told_how_to_get_it(self):
        self.assertIn("copy_context", self.threads().value("without_context")[0])

    def test_what_a_handler_sets_in_its_context_ends_with_it(self):
        w = self.threads(capacity=1)
        self.assertEqual([w.value("leaves_a_mark"), w.value("leaves_a_mark")], [None, None])

    def test_frames_of_several_threads_do_not_mix(self):
        w = self.threads(capacity=8)
        rids = [w.query("talks", 20) for _ in range(16)]
        logs = dict.fromkeys(rids, 0)
        left = set(rids)
        while left:
            frame = w.data.next()
            if frame.kind == wire.COMPLETE:
                self.assertEqual(json.loads(frame.body), "y" * 100_000)
                left.remove(frame.id)
            else:
                self.assertIn(frame.id, left)  # nothing after the terminal frame
                logs[frame.id] += frame.kind == wire.LOG
        self.assertEqual(set(logs.values()), {20})

    def test_nor_do_chunks_and_pongs_while_the_reader_is_slow(self):
        w = self.threads(capacity=8)
        credit = {"chunks": 100, "bytes": 1 << 30}
        rids = [w.query("pours", 40, 60_000 + rid % 2 * 60_000, credit=credit) for rid in range(8)]
        for nonce in range(20):
            w.data.send(wire.PING, nonce)
        self.assertTrue(w.pinged())  # by now the stream is full
        left, pongs = set(rids), 0
        while left or pongs < 20:
            frame = w.data.next()
            if frame.kind == wire.MESSAGE:
                self.assertEqual(set(frame.body), {frame.count})
                self.assertIn(len(frame.body), (60_000, 120_000))
            elif frame.kind == wire.PONG:
                pongs += 1
            else:
                self.assertEqual((frame.kind, frame.count), (wire.COMPLETE, 40))
                left.remove(frame.id)

    def test_a_line_said_after_the_end_belongs_to_the_worker(self):
        w = self.threads()
        w.call("talks_too_late")
        rid = w.query("lets_it_talk")
        frames = [w.data.next(), w.data.next()]
        self.assertEqual([(f.kind, f.id) for f in frames], [(wire.LOG, 0), (wire.COMPLETE, rid)])

    def test_errors_are_told_and_end_nothing(self):
        w = self.threads()
        for kind, name in (("exit", "SystemExit"), ("x", "ValueError")):
            meta = w.call("fails", kind).meta
            self.assertEqual((meta["code"], meta["type"]), ("application_error", name))
            self.assertNotIn("side_by_side.py", meta["traceback"])
        self.assertEqual(w.call("echo", 1, 2).meta["code"], "invalid_arguments")
        self.assertEqual(w.call("echo", body=b"{").meta["code"], "malformed")
        self.assertEqual(w.call("nowhere").meta["code"], "function_not_found")

    def test_coroutines_run_in_their_thread(self):
        w = self.threads()
        self.assertEqual(w.value("adds", 1), 2)
        w.query("ticks", 2)
        self.assertEqual([w.data.next().kind for _ in range(3)], [wire.MESSAGE] * 2 + [wire.COMPLETE])

    def test_what_it_says_of_itself_comes_before_the_answer(self):
        w = self.threads()
        w.query("says_all", deadline_ms=60_000, attempt=2)
        metric, retire, end = (w.data.next() for _ in range(3))
        self.assertEqual((metric.kind, retire.kind), (wire.METRIC, wire.RETIRE))
        self.assertEqual(retire.meta, {"reason": "shaken", "tainted": True})
        self.assertEqual(json.loads(end.body), [2, True])

    def test_it_speaks_lines_on_one_stream(self):
        w = self.threads(wires="ndjson", control=False)
        rids = [w.query("meets", 1), w.query("meets", 2)]
        w.answers(*rids)
        rid = self.begin(w, "polls")
        w.data.send(wire.PING, 9)
        self.assertEqual(w.data.next().kind, wire.PONG)
        w.data.send(wire.CANCEL, rid)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)

    def test_large_bodies_pass(self):
        w = self.threads()
        value = "z" * 3_000_000
        self.assertEqual(w.value("echo", value), value)

    def test_a_forked_child_that_returns_says_nothing_to_the_server(self):
        w = self.threads()
        self.assertEqual(w.value("forks"), 1)
        self.assertEqual(w.value("echo", 1), 1)


class Cancel(ThreadTest):
    def assert_cancelled(self, w, rid):
        frame = w.data.until(wire.CANCELLED, wire.COMPLETE, wire.ERROR)
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, rid, 0), frame.meta)

    def test_it_reaches_the_flag_and_tasks(self):
        self.assert_reached("polls", "awaits")

    @strikes
    def test_it_reaches_python_code(self):
        self.assert_reached("spins", "spins_after_talking", "loses_it_once")

    def assert_reached(self, *functions):
        w = self.threads()
        for function in functions:
            with self.subTest(function):
                rid = self.begin(w, function)
                w.cancel(rid)
                self.assert_cancelled(w, rid)

    @strikes
    def test_an_import_is_not_torn(self):
        w = self.threads()
        rid = self.begin(w, "imports")
        w.cancel(rid)
        self.assert_cancelled(w, rid)
        self.assertIs(w.value("imported"), True)

    @strikes
    def test_the_others_go_on(self):
        w = self.threads(capacity=3)
        kept = self.begin(w, "waits_at_gate", "kept")
        rid = self.begin(w, "spins")
        w.cancel(rid)
        self.assert_cancelled(w, rid)
        opener = w.query("opens_gate")
        found = w.answers(kept, opener)
        self.assertEqual(json.loads(found[kept].body), "kept")

    @strikes
    def test_a_handler_may_finish_in_spite_of_it_and_is_struck_once(self):
        w = self.threads()
        rid = self.begin(w, "finishes_anyway")
        w.cancel(rid)
        frame = w.data.until(wire.COMPLETE, wire.CANCELLED)
        self.assertEqual((frame.kind, frame.id, bytes(frame.body)), (wire.COMPLETE, rid, b'["kept",true]'))

    def test_one_that_overtakes_its_query_is_kept_and_one_too_late_dropped(self):
        w = self.threads()
        w.cancel(1)
        frame = w.control.next()
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, 1, wire.NOT_STARTED))
        w.query("echo", 1)
        self.assertEqual(w.value("echo", 2), 2)
        w.cancel(2)
        w.cancel(1)
        self.assertTrue(w.pinged())
        self.assertEqual(w.value("echo", 3), 3)


class Stopping(ThreadTest):
    def test_graceful_finishes_what_runs_and_what_waits_and_takes_no_more(self):
        w = self.threads("@ostler.function\ndef count(n: int):\n    yield from range(n)\n", capacity=1)
        stalled = w.query("count", 4, credit={"chunks": 1, "bytes": 100})
        behind = w.query("count", 0)
        w.data.next()
        w.data.send(wire.SHUTDOWN, flags=wire.GRACEFUL)
        refused = w.query("count", 0)
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, refused, wire.NOT_STARTED))
        w.data.send(wire.CREDIT, stalled, chunks=10, count=100)
        ends = [(frame.kind, frame.id) for frame in (w.data.next() for _ in range(6))][3:]
        self.assertEqual(ends, [(wire.COMPLETE, stalled), (wire.COMPLETE, behind), (wire.SHUTDOWN_ACK, 0)])
        self.assertEqual(w.wait(), 0)

    @strikes
    def test_immediate_interrupts_all_and_begins_nothing_that_waits(self):
        w = self.threads(capacity=2)
        running = [self.begin(w, "spins"), self.begin(w, "spins")]
        waiting = w.query("echo", 1)
        w.data.send(wire.PING, 1)  # read by main after the query
        w.data.until(wire.PONG)
        w.control.send(wire.SHUTDOWN)
        found = w.answers(*running, waiting)
        self.assertEqual([found[rid].flags for rid in (*running, waiting)], [0, 0, wire.NOT_STARTED])
        self.assertEqual(w.data.next().kind, wire.SHUTDOWN_ACK)
        self.assertEqual(w.wait(), 0)
        self.assertIn("stopped", w.stdout.text())

    def test_a_handler_that_cannot_be_interrupted_does_not_keep_it(self):
        w = self.threads()
        self.begin(w, "sleeps")
        w.process.send_signal(signal.SIGTERM)
        self.assertEqual(w.data.next().kind, wire.SHUTDOWN_ACK)
        self.assertEqual(w.wait(), 0)
        self.assertIn("stopped", w.stdout.text())

    def test_the_end_of_either_stream_ends_it_idle_or_busy(self):
        for stream in ("data", "control"):
            for busy in (False, True):
                with self.subTest(stream=stream, busy=busy):
                    w = self.threads()
                    if busy:
                        self.begin(w, "spins")
                    getattr(w, stream).sock.close()
                    w.wait()
                    self.assertIn("stopped", w.stdout.text())
