"""Functions that are not declared thread-safe, in threads."""

import unittest

from harness import WorkerTest, environment, wire
from ostler.functions import Function
from ostler.thread_safety import ThreadSafety

SOURCE = """
import threading
gate, inside = threading.Event(), threading.Semaphore(0)

@ostler.function(thread_safe=False)
def touchy():
    print("in", flush=True)
    gate.wait(30)

@ostler.function(thread_safe=True)
def opens():
    gate.set()
"""

UNDECLARED = SOURCE + """
@ostler.function
def unsaid():
    pass
"""


class Checks(WorkerTest):
    def started(self, checks, source=SOURCE, capacity=3, **options):
        return self.worker(source, environ=environment("thread", capacity, checks), **options)

    def twice_inside(self, w):
        """(two requests of one function, the second sent while the first is inside)"""
        first = w.query("touchy")
        w.stdout.wait_for("in")
        w.stdout.lines.clear()
        return first, w.query("touchy")

    def test_ready_tells_what_is_known(self):
        w = self.started("off", UNDECLARED)
        self.assertEqual([entry.get("threadSafe") for entry in w.ready["functions"]], [False, True, None])

    def test_warn_reports_two_inside_one_and_serves_them(self):
        w = self.started("warn")
        first, second = self.twice_inside(w)
        w.stderr.wait_for("two requests at once are inside touchy")
        w.stdout.wait_for("in")
        w.answers(first, second, w.query("opens"))

    def test_refuse_refuses_the_second_as_not_started(self):
        w = self.started("refuse")
        first, second = self.twice_inside(w)
        frame = w.data.next()
        self.assertEqual((frame.kind, frame.id, frame.meta["code"]), (wire.ERROR, second, "thread_unsafe"))
        self.assertEqual((frame.meta["retryable"], frame.meta["started"]), (True, False))
        w.answers(first, w.query("opens"))
        self.assertEqual(w.call("touchy").kind, wire.COMPLETE)  # alone it is welcome again

    def test_warn_names_the_undeclared_once(self):
        w = self.started("warn", UNDECLARED)
        w.stderr.wait_for("not declared thread-safe: unsaid")

    def test_refuse_does_not_start_with_undeclared_functions(self):
        w = self.started("refuse", UNDECLARED, expect_ready=False)
        self.assertEqual(w.wait(), 1)
        self.assertIn("not declared thread-safe: unsaid", w.stderr.text())

    def test_one_thread_is_safe_enough(self):
        w = self.started("refuse", UNDECLARED, capacity=1)
        self.assertEqual(w.call("unsaid").kind, wire.COMPLETE)

    def test_a_setting_that_does_not_exist_is_named(self):
        for name, value in (("OSTLER_PROFILE", "fibre"), ("OSTLER_CAPACITY", "0"), ("OSTLER_THREAD_SAFETY", "yes")):
            w = self.worker(SOURCE, environ={**environment("thread", 2), name: value}, expect_ready=False)
            self.assertEqual(w.wait(), 1)
            self.assertIn(f"{name} is '{value}'", w.stderr.text())


class Counting(unittest.TestCase):
    def test_off_looks_at_nothing(self):
        safety = ThreadSafety("off")
        touchy = Function(lambda: None, "touchy", thread_safe=False)
        self.assertEqual([safety.enter(touchy), safety.enter(touchy)], [None, None])
        self.assertIsNone(safety.objection([Function(lambda: None, "unsaid")]))

    def test_a_function_is_free_again_when_all_have_left(self):
        safety = ThreadSafety("refuse")
        touchy = Function(lambda: None, "touchy", thread_safe=False)
        self.assertIsNone(safety.enter(touchy))
        self.assertEqual(safety.enter(touchy)["code"], "thread_unsafe")
        safety.leave(touchy)
        self.assertIsNone(safety.enter(touchy))
