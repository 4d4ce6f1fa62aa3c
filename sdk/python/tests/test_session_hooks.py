"""Sessions that move from one process to another by the hooks of the file."""

import threading
import unittest

from harness import WorkerProcess, WorkerTest, environment, wire
from ostler.doors import FETCH, HERE, WAIT, Doors
from ostler.residents import KEPT_MAX, SEEN_MAX, Residents
from session_server import Problem, SessionServer, error_of, value_of

FILE = """
import asyncio, threading

held, asked = {{}}, []
mood = []

def where():
    name = threading.current_thread().name
    try:
        asyncio.get_running_loop()
        return name + " on a loop"
    except RuntimeError:
        return name

@ostler.save_session
{hook} save(session_id):
    asked.append(["save", session_id, where(), ostler.request().session])
    {pause}
    if "save fails" in mood:
        raise RuntimeError("disk full")
    return held.pop(session_id)

@ostler.restore_session
{hook} restore(session_id, state):
    asked.append(["restore", session_id, where(), ostler.request().session])
    {pause}
    if "restore fails" in mood:
        raise LookupError("unreadable")
    if "restore exits" in mood:
        raise SystemExit(3)
    held[session_id] = state

@ostler.function
{function} add(x):
    held.setdefault(ostler.request().session, []).append(x)
    return held[ostler.request().session]

@ostler.function
{function} put(x):
    held[ostler.request().session] = x

@ostler.function
{function} put_bytes():
    held[ostler.request().session] = b"\\xff\\x00"

@ostler.function
{function} put_nonsense():
    held[ostler.request().session] = object()

@ostler.function
{function} peek():
    state = held.get(ostler.request().session)
    return "bytes" if isinstance(state, bytes) else state

@ostler.function
{function} streams(n: int):
    for i in range(n):
        yield i

@ostler.function
def history():
    return asked

@ostler.function
def become(how):
    mood[:] = how
"""

PLAIN = {"hook": "def", "function": "def", "pause": "pass"}
COROUTINES = {"hook": "async def", "function": "async def", "pause": "await asyncio.sleep(0)"}


class Hooks:
    """What holds in every profile."""

    profile, forms, wires, place = "process", PLAIN, "binary,ndjson", "MainThread"

    @classmethod
    def setUpClass(cls):
        source, environ = FILE.format(**cls.forms), environment(cls.profile, 4)
        cls.w = WorkerProcess(source, environ=environ, wires=cls.wires)
        cls.addClassCleanup(cls.w.close)

    def setUp(self):
        self.server = SessionServer(self.w, prefix=self.id())
        self.server.value("become", [])

    def saved(self, session, body, flags=0):
        self.server.store(session).saved = (flags, body, None)

    def history(self):
        """What the hooks of the sessions of this test were asked."""
        prefix = self.id()
        for what, session, place, known in self.server.value("history"):
            if session.startswith(prefix):
                yield what, session[len(prefix):], place, known[len(prefix):]

    def asked(self, what="restore"):
        return [session for asked, session, *_ in self.history() if asked == what]

    def takes(self):
        return self.server.count("session.take")

    def test_ready_announces_both_hooks(self):
        self.assertIs(self.w.ready["savesSessions"], True)

    def test_a_saved_state_is_restored_before_the_first_request_only(self):
        self.saved("s1", b"[1,2]")
        self.assertEqual(self.server.value("add", 3, session="s1"), [1, 2, 3])
        self.assertEqual(self.server.operations, [("session.take", str(self.w.last_id))])
        self.assertEqual(self.server.value("add", 4, session="s1"), [1, 2, 3, 4])
        self.assertEqual((self.takes(), self.asked()), (1, ["s1"]))

    def test_a_stream_is_a_first_request_too(self):
        self.saved("s1", b"[1]")
        self.assertEqual(self.server.call("streams", 3, session="s1").count, 3)
        self.assertEqual(self.server.value("peek", session="s1"), [1])
        self.assertEqual(self.takes(), 1)

    def test_bytes_come_back_as_bytes(self):
        self.saved("s1", b"\xff", wire.RAW)
        self.assertEqual(self.server.value("peek", session="s1"), "bytes")

    def test_where_nothing_was_saved_the_hook_is_not_asked(self):
        self.assertEqual(self.server.value("add", 1, session="s1"), [1])
        self.assertEqual((self.takes(), self.asked()), (1, []))

    def test_a_request_without_a_session_has_nothing_to_restore(self):
        self.server.value("peek")
        self.assertEqual(self.server.operations, [])

    def test_the_save_query_is_answered_with_the_state_and_the_session_forgotten(self):
        self.server.value("add", 1, session="s1")
        self.server.value("add", 2, session="s2")
        self.assertEqual(self.server.moved("s1"), [1])
        self.assertIsNone(self.server.value("peek", session="s3"))
        self.assertEqual(self.server.value("add", 5, session="s1"), [1, 5])
        self.assertEqual(self.server.value("add", 6, session="s2"), [2, 6])
        self.assertEqual((self.takes(), self.asked("save"), self.asked()), (4, ["s1"], ["s1"]))

    def test_bytes_are_saved_as_bytes(self):
        self.server.value("put_bytes", session="s1")
        self.assertEqual(self.server.moved("s1"), b"\xff\x00")
        self.assertEqual(self.server.value("peek", session="s1"), "bytes")

    def test_a_state_that_json_cannot_say_is_an_error(self):
        self.server.value("put_nonsense", session="s1")
        self.assertIn("cannot be sent as JSON", error_of(self.server.save("s1"))["message"])
        self.assertIsNone(self.server.value("peek", session="s1"))

    def test_nothing_to_keep_is_saved_as_null(self):
        self.server.value("put", None, session="s1")
        self.assertIsNone(self.server.moved("s1"))

    def test_a_save_that_raises_is_an_error_and_the_session_forgotten(self):
        self.server.value("put", 1, session="s1")
        self.server.value("become", ["save fails"])
        meta = error_of(self.server.save("s1"))
        self.assertEqual((meta["code"], meta["type"], meta["message"]),
                         ("application_error", "RuntimeError", "disk full"))
        self.server.value("become", [])
        self.assertEqual(self.server.value("peek", session="s1"), 1)
        self.assertEqual(self.takes(), 2)

    def test_a_session_that_never_ran_here_has_nothing_to_save(self):
        self.assertEqual(error_of(self.server.save("s9"))["code"], "session_not_here")
        self.assertEqual(self.asked("save"), [])

    def test_a_save_without_a_session_is_refused(self):
        meta = self.server.error("ostler.save_session")
        self.assertEqual((meta["code"], meta["started"]), ("invalid_arguments", False))

    def test_a_restore_that_raises_fails_the_request_and_names_the_hook(self):
        self.saved("s1", b"[1]")
        for how, kind in (("restore fails", "LookupError"), ("restore exits", "SystemExit")):
            self.server.value("become", [how])
            meta = self.server.error("add", 2, session="s1")
            self.assertEqual((meta["code"], meta["type"]), ("application_error", kind))
            self.assertIn(f"the restore_session hook raised {kind}", meta["message"])
            self.assertIn("in restore", meta["traceback"])

    def test_and_the_next_request_finds_the_state_again(self):
        self.saved("s1", b"[1]")
        self.server.value("become", ["restore fails"])
        self.server.error("add", 2, session="s1")
        self.server.value("become", [])
        self.assertEqual(self.server.value("add", 3, session="s1"), [1, 3])
        self.assertEqual((self.takes(), self.asked()), (1, ["s1", "s1"]))

    def test_as_does_whoever_the_session_moves_to(self):
        self.saved("s1", b"[1]")
        self.server.value("become", ["restore fails"])
        self.server.error("add", 2, session="s1")
        self.assertEqual(self.server.moved("s1"), [1])
        self.assertEqual(self.asked("save"), [])

    def test_a_state_that_is_not_to_be_had_fails_the_request(self):
        def refuse(operation, store):
            raise Problem("store_unavailable", retryable=True)

        self.server.before = refuse
        meta = self.server.error("add", 1, session="s1")
        self.assertEqual((meta["type"], meta["retryable"]), ("Retryable", True))
        self.server.before = lambda operation, store: None
        self.assertEqual(self.server.value("add", 2, session="s1"), [2])

    def test_a_server_that_keeps_no_sessions_is_no_hindrance(self):
        def refuse(operation, store):
            raise Problem("not_available")

        self.server.before = refuse
        self.assertEqual(self.server.value("add", 1, session="s1"), [1])

    def test_a_cancel_while_the_state_is_on_its_way_does_not_lose_it(self):
        self.saved("s1", b"[1]")
        rid = self.server.query("add", 2, session="s1")
        call = self.server.next_call()
        self.w.cancel(rid)
        self.assertTrue(self.w.pinged())
        self.server.answer(call)
        self.assertEqual(self.server.answers(rid)[rid].kind, wire.CANCELLED)
        self.assertEqual(self.server.value("add", 3, session="s1"), [1, 3])
        self.assertEqual(self.takes(), 1)

    def test_the_hooks_run_where_handlers_run_in_the_name_of_the_session(self):
        self.saved("s1", b"1")
        self.server.value("peek", session="s1")
        self.server.moved("s1")
        history = list(self.history())
        self.assertEqual([entry[0] for entry in history], ["restore", "save"])
        for _, session, place, known in history:
            self.assertEqual((session, known), ("s1", "s1"))
            self.assertRegex(place, self.place)


class SideBySide(Hooks):
    """What only those profiles can show that have several requests at a time."""

    def test_two_first_requests_restore_once_and_both_wait(self):
        self.saved("s1", b"[0]")
        first = self.server.query("add", 1, session="s1")
        call = self.server.next_call()
        second = self.server.query("peek", session="s1")
        self.assertIsNone(self.server.value("peek"))  # came behind both and is answered before
        self.server.answer(call)
        answers = self.server.answers(first, second)
        self.assertEqual(value_of(answers[second])[0], 0)
        self.assertEqual((self.takes(), self.asked()), (1, ["s1"]))

    def test_a_session_that_waits_does_not_keep_others(self):
        rid = self.server.query("add", 1, session="s1")
        call = self.server.next_call()
        self.assertEqual(self.server.value("add", 2, session="s2"), [2])
        self.server.answer(call)
        self.assertEqual(value_of(self.server.answers(rid)[rid]), [1])

    def test_if_the_first_fails_the_second_restores(self):
        self.saved("s1", b"[0]")
        first = self.server.query("add", 1, session="s1")
        call = self.server.next_call()
        second = self.server.query("add", 2, session="s1")
        self.w.cancel(first)
        self.assertTrue(self.w.pinged())
        self.server.answer(call)
        answers = self.server.answers(first, second)
        self.assertEqual(answers[first].kind, wire.CANCELLED)
        self.assertEqual(value_of(answers[second]), [0, 2])
        self.assertEqual(self.takes(), 1)

    def test_a_cancel_reaches_one_that_waits_for_anothers_restore(self):
        first = self.server.query("add", 1, session="s1")
        call = self.server.next_call()
        second = self.server.query("add", 2, session="s1")
        self.assertIsNone(self.server.value("peek"))  # so it has begun to wait
        self.w.cancel(second)
        self.assertEqual(self.server.answers(second)[second].kind, wire.CANCELLED)
        self.server.answer(call)
        self.assertEqual(value_of(self.server.answers(first)[first]), [1])

    def test_a_save_waits_until_no_request_of_its_session_runs(self):
        self.server.value("add", 1, session="s1")
        running = self.server.query("streams", 2, session="s1", credit={"chunks": 1, "bytes": 1 << 20})
        self.assertEqual(self.server.next().kind, wire.MESSAGE)
        save = self.server.query("ostler.save_session", session="s1")
        self.assertIsNone(self.server.value("peek", session="s2"))
        self.assertEqual(self.server.value("add", 2, session="s1"), [1, 2])  # passes a save that waits
        self.assertEqual(self.asked("save"), [])
        self.w.data.send(wire.CREDIT, running, chunks=9, count=0)
        answers = self.server.answers(running, save)
        self.assertEqual(list(answers), [running, save])
        self.assertEqual(value_of(answers[save]), [1, 2])

    def test_a_save_that_waits_can_be_cancelled(self):
        running = self.server.query("streams", 2, session="s1", credit={"chunks": 1, "bytes": 1 << 20})
        self.server.answer(self.server.next_call())
        self.assertEqual(self.server.next().kind, wire.MESSAGE)
        save = self.server.query("ostler.save_session", session="s1")
        self.assertIsNone(self.server.value("peek"))
        self.w.cancel(save)
        self.assertEqual(self.server.answers(save)[save].kind, wire.CANCELLED)
        self.w.data.send(wire.CREDIT, running, chunks=9, count=0)
        self.server.answers(running)
        self.assertEqual(self.server.value("add", 1, session="s1"), [1])
        self.assertEqual((self.takes(), self.asked("save")), (1, []))


class OfTheMainThread(Hooks, WorkerTest):
    pass


class OfTheMainThreadOnLines(Hooks, WorkerTest):
    wires = "ndjson"


class OfTheMainThreadAsCoroutines(Hooks, WorkerTest):
    forms, place = COROUTINES, "MainThread on a loop"


class OfThreads(SideBySide, WorkerTest):
    profile, place = "thread", r"ostler-\d$"


class OfThreadsOnLines(SideBySide, WorkerTest):
    profile, wires, place = "thread", "ndjson", r"ostler-\d$"


class OfThreadsAsCoroutines(SideBySide, WorkerTest):
    profile, forms, place = "thread", COROUTINES, r"ostler-\d on a loop"


class OfTheLoop(SideBySide, WorkerTest):
    profile, forms, place = "async", COROUTINES, "MainThread on a loop"


class OfTheLoopOnLines(SideBySide, WorkerTest):
    profile, forms, wires, place = "async", COROUTINES, "ndjson", "MainThread on a loop"


class OfTheLoopForPlainFunctions(SideBySide, WorkerTest):
    profile, place = "async", "MainThread on a loop"


class Refusals(WorkerTest):
    def refused(self, source, environ):
        w = self.worker(source, environ=environ, expect_ready=False)
        self.assertEqual(w.wait(), 1)
        return w.stderr.text()

    def test_one_hook_without_the_other_is_refused_at_the_start(self):
        for profile in ("process", "thread", "async"):
            for hook, other in (("save_session", "restore_session"), ("restore_session", "save_session")):
                source = f"""
                @ostler.{hook}
                def moves(*args):
                    pass

                @ostler.function
                def f():
                    pass
                """
                said = self.refused(source, environment(profile, 2))
                self.assertIn(f"@ostler.{hook} and no @ostler.{other}", said)

    def test_a_function_cannot_take_a_name_of_the_servers(self):
        source = """
        @ostler.function(name="ostler.save_session")
        def f():
            pass
        """
        self.assertIn("is kept for the server", self.refused(source, {}))

    def test_without_hooks_nothing_is_announced_taken_or_saved(self):
        source = """
        @ostler.function
        def f():
            return ostler.request().session
        """
        for profile in ("process", "thread", "async"):
            w = self.worker(source, environ=environment(profile, 2))
            server = SessionServer(w)
            self.assertNotIn("savesSessions", w.ready)
            self.assertEqual(server.value("f", session="s1"), "s1")
            self.assertEqual(error_of(server.save("s1"))["code"], "function_not_found")
            self.assertEqual(server.operations, [])


class Bookkeeping(unittest.TestCase):
    def test_the_sessions_seen_are_bounded_and_the_longest_unused_forgotten(self):
        residents = Residents()
        residents.settle("old")
        residents.settle("used")
        for number in range(SEEN_MAX - 2):
            residents.settle(str(number))
        self.assertTrue(residents.is_home("used"))
        self.assertFalse(residents.may_hold("unknown"))
        residents.settle("one more")
        self.assertEqual(len(residents.seen), SEEN_MAX)
        self.assertFalse(residents.is_home("old"))
        self.assertTrue(residents.is_home("used"))

    def test_then_one_that_is_not_known_may_still_have_its_state_here(self):
        residents = Residents()
        for number in range(SEEN_MAX + 1):
            residents.settle(str(number))
        self.assertTrue(residents.may_hold("0"))

    def test_states_on_their_way_are_bounded(self):
        residents = Residents()
        for number in range(KEPT_MAX + 1):
            residents.keep(str(number), number)
        self.assertEqual((residents.kept("0"), residents.kept("1")), (None, 1))

    def test_doors_leave_nothing_behind(self):
        doors = Doors()
        wake = threading.Event()
        self.assertEqual(doors.enter("s", wake.set), FETCH)
        self.assertEqual(doors.enter("s", wake.set), WAIT)
        doors.opened("s", settled=True)
        self.assertTrue(wake.is_set())
        self.assertEqual(doors.depart("s", wake.set), WAIT)
        doors.give_up("s", wake.set)
        doors.leave("s")
        self.assertEqual(doors.depart("s", wake.set), HERE)
        doors.departed("s")
        self.assertEqual((doors.by_session, doors.may_hold("s")), ({}, False))

    def test_nobody_is_inside_while_a_session_moves(self):
        doors, inside, wrong, left = Doors(), [], [], []

        def pass_through(ask):
            woken = threading.Event()
            while True:
                said = ask("s", woken.set)
                if said != WAIT:
                    return said
                self.assertTrue(woken.wait(30))
                woken.clear()

        def moves():
            wrong.extend(inside)

        def requests(number):
            for _ in range(300):
                if pass_through(doors.enter) == FETCH:
                    moves()
                    doors.opened("s", settled=True)
                inside.append(number)
                inside.remove(number)
                doors.leave("s")
            left.append(number)

        def saves():
            while len(left) < 4:
                pass_through(doors.depart)
                moves()
                doors.departed("s")

        threads = [threading.Thread(target=requests, args=(n,)) for n in range(4)]
        threads.append(threading.Thread(target=saves))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual((wrong, sorted(left), doors.by_session), ([], [0, 1, 2, 3], {}))


if __name__ == "__main__":
    unittest.main()
