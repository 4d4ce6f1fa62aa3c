"""Starting, stopping, and what is left behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

from harness import PACKAGE, PATIENCE, Stream, WorkerTest, wire

SOURCE = """
import os, sys, threading, time

@ostler.on_start
def begin():
    print("started", flush=True)

@ostler.on_stop
def end():
    print("stopped", flush=True)

@ostler.function
def echo(x=None):
    return x

@ostler.function
def sleeps():
    print("in", flush=True)
    time.sleep(600)

@ostler.function
def forks():
    child = os.fork()
    if child == 0:
        try:
            ostler.request()
            code = 1
        except RuntimeError:
            code = 7
        os._exit(code)
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])

@ostler.function
def forks_and_returns():
    child = os.fork()
    if child == 0:
        return "from the child"
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])

@ostler.function
def leaves_a_child():
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    return child

@ostler.function
def leaves_a_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()

@ostler.function
def partial():
    sys.stdout.write("no newline")
"""

HEALTH = """
mood = []

@ostler.health
{}def well():
    if mood and mood[-1] == "raise":
        raise RuntimeError("disk full")
    return not mood

@ostler.function
def become(how):
    mood.append(how)
"""


class Starting(WorkerTest):
    def failing(self, source):
        w = self.worker(source, expect_ready=False)
        return w.wait(), w.stderr.text()

    def test_start_hooks_run_before_ready(self):
        w = self.worker(SOURCE)
        w.stdout.wait_for("started")

    def test_an_error_in_the_file_is_a_traceback_and_exit_1(self):
        code, text = self.failing("def broken(:\n    pass\n")
        self.assertEqual(code, 1)
        self.assertIn("SyntaxError", text)
        code, text = self.failing("import no_such_module\n")
        self.assertEqual(code, 1)
        self.assertIn("No module named 'no_such_module'", text)
        self.assertNotIn("worker.py", text)

    def test_a_file_that_exits_or_serves_nothing_is_refused(self):
        code, text = self.failing("raise SystemExit(0)\n")
        self.assertEqual((code, "SystemExit" in text), (1, True))
        code, text = self.failing("x = 1\n")
        self.assertEqual((code, "@ostler.function" in text), (1, True))

    def test_two_functions_of_one_name_are_refused(self):
        twice = "@ostler.function\ndef f(): pass\n"
        code, text = self.failing(twice + twice)
        self.assertEqual((code, "two functions are named 'f'" in text), (1, True))

    def test_a_failing_start_hook_ends_it(self):
        code, text = self.failing(
            "@ostler.function\ndef f(): pass\n@ostler.on_start\ndef s(): raise OSError('no model')\n"
        )
        self.assertEqual((code, "no model" in text), (1, True))

    def test_modules_beside_the_file_can_be_imported(self):
        w = self.worker("import sys\n@ostler.function\ndef where():\n    return [sys.path[0], __name__]\n")
        self.assertEqual(w.value("where"), [w.folder, "served"])

    def test_without_streams_it_says_how_it_is_started(self):
        environ = {k: v for k, v in os.environ.items() if not k.startswith("OSTLER_")}
        done = subprocess.run(
            [sys.executable, "-m", "ostler.worker", "x.py"],
            env={**environ, "PYTHONPATH": PACKAGE},
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, "ostler serve" in done.stderr), (2, True))


class Stopping(WorkerTest):
    def busy(self):
        w = self.worker(SOURCE)
        rid = w.query("sleeps")
        w.stdout.wait_for("in")
        return w, rid

    def test_graceful_finishes_what_stands_before_it(self):
        w = self.worker(SOURCE)
        rids = [w.query("echo", i) for i in range(5)]
        w.data.send(wire.SHUTDOWN, flags=wire.GRACEFUL)
        self.assertEqual([w.data.next().id for _ in range(5)], rids)
        self.assertEqual(w.data.next().kind, wire.SHUTDOWN_ACK)
        self.assertEqual(w.wait(), 0)
        self.assertIn("stopped", w.stdout.text())

    def test_immediate_interrupts_the_handler_and_runs_the_stop_hooks(self):
        w, rid = self.busy()
        w.control.send(wire.SHUTDOWN)
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.id), (wire.CANCELLED, rid))
        self.assertEqual(w.data.next().kind, wire.SHUTDOWN_ACK)
        self.assertEqual(w.wait(), 0)
        self.assertIn("stopped", w.stdout.text())

    def test_immediate_begins_nothing_that_waits(self):
        w, rid = self.busy()
        waiting = w.query("echo", 1)
        w.control.send(wire.SHUTDOWN)
        frames = [w.data.next() for _ in range(3)]
        self.assertEqual([(f.kind, f.id, f.flags) for f in frames[:2]],
                         [(wire.CANCELLED, rid, 0), (wire.CANCELLED, waiting, wire.NOT_STARTED)])
        self.assertEqual(w.wait(), 0)

    def test_sigterm_ends_an_idle_and_a_busy_worker(self):
        idle = self.worker(SOURCE)
        idle.process.send_signal(signal.SIGTERM)
        self.assertEqual(idle.wait(), 0)
        self.assertIn("stopped", idle.stdout.text())
        busy, rid = self.busy()
        busy.process.send_signal(signal.SIGTERM)
        self.assertEqual(busy.data.next().id, rid)
        self.assertEqual(busy.wait(), 0)
        self.assertIn("stopped", busy.stdout.text())

    def test_sigint_is_left_to_the_server(self):
        w = self.worker(SOURCE)
        w.process.send_signal(signal.SIGINT)
        self.assertEqual(w.value("echo", 1), 1)

    def test_the_end_of_either_stream_ends_it_idle_or_busy(self):
        for stream in ("data", "control"):
            for start in (lambda: self.worker(SOURCE), lambda: self.busy()[0]):
                with self.subTest(stream=stream):
                    w = start()
                    getattr(w, stream).sock.close()
                    w.wait()
                    self.assertIn("stopped", w.stdout.text())

    def test_a_thread_that_does_not_end_cannot_keep_it(self):
        w = self.worker(SOURCE)
        w.value("leaves_a_thread")
        w.data.send(wire.SHUTDOWN, flags=wire.GRACEFUL)
        w.wait()

    def test_a_frame_no_server_may_send_ends_it(self):
        for frame in (b"\x05\0\0\0" + b"\1" + b"\0" * 19, b"\xff\xff\xff\xff" + b"\1" + b"\0" * 19):
            w = self.worker(SOURCE)
            w.data.sock.sendall(frame)
            w.wait()
            self.assertIn("bytes is outside", w.stderr.text())


class Forks(WorkerTest):
    def test_a_forked_child_is_no_worker(self):
        w = self.worker(SOURCE)
        self.assertEqual(w.value("forks"), 7)
        self.assertEqual(w.value("echo", 1), 1)

    def test_a_child_that_returns_into_the_loop_says_nothing_to_the_server(self):
        w = self.worker(SOURCE)
        self.assertEqual(w.value("forks_and_returns"), 1)
        self.assertEqual(w.value("echo", 1), 1)
        w.stderr.wait_for("forked child")

    def test_a_child_left_behind_does_not_hold_the_streams(self):
        w = self.worker(SOURCE)
        child = w.value("leaves_a_child")
        try:
            w.process.kill()
            w.process.wait()
            self.assertTrue(w.data.ended())
            self.assertTrue(w.control.ended())
        finally:
            os.kill(child, signal.SIGKILL)


class Health(WorkerTest):
    def test_a_check_without_a_hook_is_answered_with_facts(self):
        w = self.worker(SOURCE)
        w.value("echo", 1)
        w.data.send(wire.HEALTH_CHECK)
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.meta["queriesProcessed"]), (wire.HEALTH_OK, 1))

    def test_the_hook_may_say_that_it_is_not_well_on_either_stream(self):
        for kind in ("", "async "):
            w = self.worker(HEALTH.format(kind))
            for stream in (w.data, w.control):
                stream.send(wire.HEALTH_CHECK)
                self.assertEqual(stream.next().kind, wire.HEALTH_OK)
            for how, reason in (("ill", "said no"), ("raise", "disk full")):
                w.value("become", how)
                for stream in (w.data, w.control):
                    stream.send(wire.HEALTH_CHECK)
                    frame = stream.next()
                    self.assertEqual(frame.kind, wire.HEALTH_FAILED)
                    self.assertIn(reason, frame.meta["reason"])

    def test_a_hook_that_hangs_does_not_keep_the_worker_from_hearing(self):
        w = self.worker(SOURCE + "\n@ostler.health\ndef hangs():\n    time.sleep(600)\n")
        w.control.send(wire.HEALTH_CHECK)
        rid = w.query("sleeps")
        w.stdout.wait_for("in")
        self.assertTrue(w.pinged())
        w.cancel(rid, signalled=False)
        self.assertEqual(w.data.next().kind, wire.CANCELLED)


class NamedSocket(WorkerTest):
    def test_a_worker_connects_twice_and_shows_its_token(self):
        folder = tempfile.TemporaryDirectory(prefix="ostler-sdk-")
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "s")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()
        listener.settimeout(PATIENCE)
        environ = {"OSTLER_FD": "", "OSTLER_CTL_FD": "", "OSTLER_SOCKET": path, "OSTLER_TOKEN": "t0k"}
        w = self.worker(SOURCE, environ=environ, expect_ready=False)
        w.data.sock.close()
        w.control.sock.close()
        w.data = Stream(listener.accept()[0], wire.Decoder(), wire.encode)
        w.control = Stream(listener.accept()[0], wire.Decoder(), wire.encode)
        w.read_ready()
        self.assertEqual((w.ready["token"], w.ready["control"]), ("t0k", True))
        line = b""
        while not line.endswith(b"\n"):
            line += w.control.sock.recv(1)
        self.assertEqual(json.loads(line), {"type": "control", "token": "t0k"})
        w.control.send(wire.PING, 3)
        self.assertEqual(w.control.next().id, 3)
        self.assertEqual(w.value("echo", 1), 1)
