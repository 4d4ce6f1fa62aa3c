"""What a cancel reaches, and what it leaves alone."""

from harness import WorkerTest, wire

SOURCE = """
import os, queue, re, socket, subprocess, sys, threading, time

def say(word):
    print(word, flush=True)

@ostler.function
def spins():
    say("in")
    while True:
        pass

@ostler.function
def sleeps():
    say("in")
    time.sleep(600)

@ostler.function
def receives():
    a, b = socket.socketpair()
    say("in")
    a.recv(1)

@ostler.function
def locks():
    lock = threading.Lock()
    lock.acquire()
    say("in")
    lock.acquire()

@ostler.function
def runs_a_program():
    child = subprocess.Popen(["sleep", "600"])
    try:
        say("child %d" % child.pid)
        child.wait()
    finally:
        child.kill()
        child.wait()

@ostler.function
def matches():
    say("in")
    re.match(r"(a|aa)+$", "a" * 60 + "b")

@ostler.function
async def awaits():
    import asyncio
    say("in")
    try:
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(0)

@ostler.function
def ignores_exceptions():
    say("in")
    while True:
        try:
            time.sleep(600)
        except Exception:
            pass

@ostler.function
def finishes_anyway():
    try:
        say("in")
        time.sleep(600)
    except ostler.Cancelled:
        return ["kept", ostler.request().cancelled]

@ostler.function
def shielded():
    steps = []
    try:
        with ostler.shield():
            say("in")
            while not ostler.request().cancelled:
                time.sleep(0.001)
            steps.append("whole")
        steps.append("not reached")
    except ostler.Cancelled:
        steps.append("raised at the end")
    return steps

@ostler.function
def imports():
    with open(os.path.join(os.path.dirname(__file__), "slow_module.py"), "w") as file:
        file.write("import os, time\\nos.mkdir(__file__ + '.once')  # cannot be imported twice\\n"
                   "print('in', flush=True)\\n"
                   "end = time.monotonic() + 0.3\\n"
                   "while time.monotonic() < end: time.sleep(0.001)\\nready = True\\n")
    import slow_module
    time.sleep(600)

@ostler.function
def imported():
    import slow_module
    return slow_module.ready

class Sink:
    def __del__(self):
        say("in")
        time.sleep(600)

@ostler.function
def loses_it_once():
    Sink()
    while True:
        time.sleep(0.01)

@ostler.function
def echo(x=None):
    return x
"""

REACHED = ["spins", "sleeps", "receives", "locks", "matches", "awaits", "ignores_exceptions"]


class Cancel(WorkerTest):
    def begin(self, w, function):
        w.stdout.lines.clear()
        rid = w.query(function)
        w.stdout.wait_for("in")
        return rid

    def assert_cancelled(self, w, rid):
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, rid, 0))
        self.assertEqual(w.value("echo", "alive"), "alive")

    def test_message_and_signal_reach_python_code_and_waits(self):
        w = self.worker(SOURCE)
        for function in REACHED:
            with self.subTest(function):
                rid = self.begin(w, function)
                w.cancel(rid)
                self.assert_cancelled(w, rid)

    def test_the_message_alone_reaches_them_too(self):
        w = self.worker(SOURCE)
        for function in REACHED:
            if function == "matches":  # holds the interpreter: only the direct signal can
                continue
            with self.subTest(function):
                rid = self.begin(w, function)
                w.cancel(rid, signalled=False)
                self.assert_cancelled(w, rid)

    def test_a_program_that_the_handler_waits_for_is_gone_after_its_cleanup(self):
        import os

        w = self.worker(SOURCE)
        rid = w.query("runs_a_program")
        w.stdout.wait_for("child")
        pid = int(w.stdout.lines[-1].split()[1])
        w.cancel(rid)
        self.assert_cancelled(w, rid)
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)

    def test_a_handler_may_finish_in_spite_of_it(self):
        w = self.worker(SOURCE)
        rid = self.begin(w, "finishes_anyway")
        w.cancel(rid)
        frame = w.data.next()
        self.assertEqual((frame.kind, bytes(frame.body)), (wire.COMPLETE, b'["kept",true]'))

    def test_a_shield_defers_it_to_its_end(self):
        w = self.worker(SOURCE)
        rid = self.begin(w, "shielded")
        w.cancel(rid)
        self.assertEqual(bytes(w.data.next().body), b'["whole","raised at the end"]')

    def test_an_import_is_not_torn(self):
        w = self.worker(SOURCE)
        rid = self.begin(w, "imports")
        w.cancel(rid)
        self.assert_cancelled(w, rid)
        self.assertIs(w.value("imported"), True)

    def test_one_swallowed_by_a_destructor_strikes_again(self):
        w = self.worker(SOURCE)
        rid = self.begin(w, "loses_it_once")
        w.cancel(rid, signalled=False)
        self.assert_cancelled(w, rid)

    def test_one_for_a_request_behind_a_running_one_is_answered_at_once(self):
        w = self.worker(SOURCE)
        running = self.begin(w, "sleeps")
        waiting, last = w.query("echo", 1), w.query("echo", 2)
        w.cancel(waiting)
        frame = w.control.next()
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, waiting, wire.NOT_STARTED))
        w.cancel(waiting)  # a repeat is not answered twice
        w.control.send(wire.PING, 1)
        self.assertEqual(w.control.next().kind, wire.PONG)
        w.cancel(running)
        self.assertEqual([w.data.next().id for _ in range(2)], [running, last])

    def test_a_withdrawal_takes_only_what_has_not_begun(self):
        w = self.worker(SOURCE)
        running = self.begin(w, "sleeps")
        waiting, last = w.query("echo", 1), w.query("echo", 2)
        self.assertIs(w.ready["withdraw"], True)
        for rid in (running, waiting, waiting):
            w.control.send(wire.WITHDRAW, rid)
        frame = w.control.next()
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, waiting, wire.NOT_STARTED))
        w.control.send(wire.PING, 1)
        self.assertEqual(w.control.next().kind, wire.PONG)
        w.cancel(running)
        self.assertEqual([w.data.next().id for _ in range(2)], [running, last])

    def test_one_that_overtakes_its_query_is_kept(self):
        w = self.worker(SOURCE)
        w.cancel(w.last_id + 1)
        frame = w.control.next()
        self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, 1, wire.NOT_STARTED))
        w.query("echo", 1)
        later = w.query("echo", 2)
        self.assertEqual(w.data.next().id, later)

    def test_one_for_a_finished_request_is_dropped(self):
        w = self.worker(SOURCE)
        for value in range(3):
            rid = w.query("echo", value)
            self.assertEqual(w.data.next().id, rid)
            w.cancel(rid)
        self.assertEqual(w.value("echo", "fine"), "fine")
        w.control.send(wire.PING, 1)
        self.assertEqual(w.control.next().kind, wire.PONG)

    def test_an_invalid_request_cancelled_before_it_began_has_one_answer(self):
        w = self.worker(SOURCE)
        running = self.begin(w, "sleeps")
        bad, missing = w.query("echo", 1, 2, 3), w.query("nowhere")
        for rid in (bad, missing):
            w.cancel(rid)
            self.assertEqual(w.control.next().id, rid)
        w.cancel(running)
        last = w.query("echo", 1)
        self.assertEqual([w.data.next().id for _ in range(2)], [running, last])
