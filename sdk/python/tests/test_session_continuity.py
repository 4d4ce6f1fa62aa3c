"""What the server says a session finds here decides what this process has of it."""

import unittest

from harness import WorkerProcess, WorkerTest, environment, wire
from ostler.doors import FETCH, HERE, WAIT, Doors
from ostler.residents import SEEN_MAX, Residents
from session_server import SessionServer, error_of, value_of

FILE = """
import asyncio

held, asked, mood = {{}}, [], []

@ostler.save_session
{form} save(session_id):
    asked.append(["save", session_id])
    {pause}
    if "save fails" in mood:
        raise RuntimeError("disk full")
    return held.pop(session_id)

@ostler.restore_session
{form} restore(session_id, state):
    asked.append(["restore", session_id])
    {pause}
    held[session_id] = state
    if "restore fails" in mood:
        raise LookupError("unreadable")

@ostler.forget_session
{form} forget(session_id):
    asked.append(["forget", session_id])
    {pause}
    if "forget fails" in mood:
        raise OSError("locked")
    held.pop(session_id, None)

@ostler.function
{form} add(x):
    held.setdefault(ostler.request().session, []).append(x)
    return held[ostler.request().session]

@ostler.function
{form} peek():
    return held.get(ostler.request().session)

@ostler.function
{form} told():
    return [ostler.request().continuity, ostler.session().continuity]

@ostler.function
{form} streams(n: int):
    for i in range(n):
        yield i

@ostler.function
def history():
    return asked

@ostler.function
def become(how):
    mood[:] = how
"""

PLAIN = {"form": "def", "pause": "pass"}
COROUTINES = {"form": "async def", "pause": "await asyncio.sleep(0)"}
CAPACITY = 4
ANEW = ("bound", "restarted", "restored")
ONE_CHUNK = {"chunks": 1, "bytes": 1 << 20}


class Continuity:
    """What holds in every profile."""

    profile, forms, wires = "process", PLAIN, "binary,ndjson"

    @classmethod
    def setUpClass(cls):
        source, environ = FILE.format(**cls.forms), environment(cls.profile, CAPACITY)
        cls.w = WorkerProcess(source, environ=environ, wires=cls.wires)
        cls.addClassCleanup(cls.w.close)

    def setUp(self):
        self.server = SessionServer(self.w, prefix=self.id())
        self.server.value("become", [])

    def add(self, x, continuity, session="s"):
        return self.server.value("add", x, session=session, continuity=continuity)

    def saved(self, body, session="s"):
        self.server.store(session).saved = (0, body, None)

    def asked(self, session="s"):
        """What the hooks were asked of it, in order."""
        return [what for what, whose in self.server.value("history") if whose == self.id() + session]

    def takes(self):
        return self.server.count("session.take")

    def save_code(self, session="s"):
        return error_of(self.server.save(session))["code"]

    def test_a_handler_is_told(self):
        for said in (*ANEW, "same", "elsewhere"):
            self.assertEqual(self.server.value("told", session="s", continuity=said), [said, said])
        self.assertEqual(self.server.value("told", session="s"), [None, None])

    def test_one_that_is_new_here_has_nothing_to_forget(self):
        for said in ANEW:
            self.assertEqual(self.add(1, said, session=said), [1])
            self.assertEqual(self.asked(said), [])
        self.assertEqual(self.takes(), 3)

    def test_at_home_there_is_nothing_to_take(self):
        self.add(1, "bound")
        self.saved(b"[9]")
        self.assertEqual(self.add(2, "same"), [1, 2])
        self.assertEqual((self.takes(), self.asked()), (1, []))

    def test_one_that_begins_anew_finds_nothing_of_the_one_before(self):
        for said in ANEW:
            self.add(1, "bound", session=said)
            self.assertEqual(self.add(2, said, session=said), [2])
            self.assertEqual(self.add(3, "same", session=said), [2, 3])
            self.assertEqual(self.asked(said), ["forget"])
        self.assertEqual(self.takes(), 6)

    def test_and_is_given_what_was_saved_for_it(self):
        for said in ANEW:
            self.add(1, "bound", session=said)
            self.saved(b"[7]", session=said)
            self.assertEqual(self.add(2, said, session=said), [7, 2])
            self.assertEqual(self.asked(said), ["forget", "restore"])

    def test_a_stream_begins_anew_too(self):
        self.add(1, "bound")
        self.assertEqual(self.server.call("streams", 2, session="s", continuity="restarted").count, 2)
        self.assertIsNone(self.server.value("peek", session="s", continuity="same"))

    def test_a_request_that_cannot_be_served_says_it_for_the_next(self):
        self.add(1, "bound")
        self.server.error("nowhere", session="s", continuity="restarted")
        self.assertEqual(self.add(2, "same"), [2])
        self.assertEqual((self.takes(), self.asked()), (2, ["forget"]))

    def test_what_is_void_is_not_saved(self):
        self.add(1, "bound")
        self.server.error("nowhere", session="s", continuity="restarted")
        self.assertEqual(self.save_code(), "session_not_here")
        self.assertEqual(self.add(2, "same"), [2])
        self.assertEqual(self.asked(), ["forget"])

    def test_a_state_that_was_taken_and_not_restored_is_void_too(self):
        for said in ANEW:
            self.saved(b"[1]", session=said)
            self.server.value("become", ["restore fails"])
            self.server.error("add", 2, session=said, continuity="restored")
            self.server.value("become", [])
            self.assertEqual(self.add(3, said, session=said), [3])
            self.assertEqual(self.asked(said), ["restore", "forget"])
        self.assertEqual(self.takes(), 6)

    def test_but_the_next_request_of_the_same_takes_it_up(self):
        self.saved(b"[1]")
        self.server.value("become", ["restore fails"])
        self.server.error("add", 2, session="s", continuity="restored")
        self.server.value("become", [])
        self.assertEqual(self.add(3, "same"), [1, 3])
        self.assertEqual((self.takes(), self.asked()), (1, ["restore", "restore"]))

    def test_a_guest_takes_nothing_and_leaves_nothing(self):
        self.saved(b"[1]")
        self.assertEqual(self.add(2, "elsewhere"), [2])
        self.assertEqual(self.save_code(), "session_not_here")
        self.assertEqual((self.takes(), self.asked()), (0, []))
        self.assertEqual(self.add(3, "restored"), [1, 3])
        self.assertEqual((self.takes(), self.asked()), (1, ["forget", "restore"]))

    def test_a_guest_that_settles_finds_nothing_of_its_visit(self):
        self.add(1, "elsewhere")
        self.assertEqual(self.add(2, "restarted"), [2])

    def test_a_guest_that_is_at_home_by_right_stays_so(self):
        self.add(1, "bound")
        self.assertEqual(self.add(2, "elsewhere"), [1, 2])
        self.assertEqual(self.server.moved("s"), [1, 2])
        self.assertEqual((self.takes(), self.asked()), (1, ["save"]))

    def test_what_a_save_leaves_is_forgotten_when_the_session_comes_again(self):
        self.add(1, "bound")
        self.server.value("become", ["save fails"])
        self.server.save("s")
        self.server.value("become", [])
        self.assertEqual(self.add(2, "restarted"), [2])
        self.assertEqual(self.asked(), ["save", "forget"])

    def test_a_forget_that_raises_fails_the_request_and_is_asked_again(self):
        self.add(1, "bound")
        self.saved(b"[7]")
        self.server.value("become", ["forget fails"])
        meta = self.server.error("add", 2, session="s", continuity="restored")
        self.assertEqual((meta["code"], meta["type"]), ("application_error", "OSError"))
        self.assertIn("the forget_session hook raised OSError: locked", meta["message"])
        self.assertEqual(self.takes(), 1)
        self.server.value("become", [])
        self.assertEqual(self.add(3, "same"), [7, 3])
        self.assertEqual(self.asked(), ["forget", "forget", "restore"])

    def test_without_it_the_id_decides_as_ever(self):
        self.assertEqual(self.server.value("add", 1, session="s"), [1])
        self.assertEqual(self.server.value("add", 2, session="s"), [1, 2])
        self.assertEqual((self.takes(), self.asked()), (1, []))

    def test_and_so_it_does_where_it_says_what_is_not_known_yet(self):
        self.assertEqual(self.add(1, "reborn"), [1])
        self.assertEqual(self.add(2, "reborn"), [1, 2])


class SideBySide(Continuity):
    """What only those profiles can show that have several requests at a time."""

    def test_those_that_come_behind_it_wait_for_the_first(self):
        self.add(1, "bound")
        self.saved(b"[7]")
        first = self.server.query("add", 2, session="s", continuity="restored")
        second = self.server.query("add", 3, session="s", continuity="same")
        call = self.server.next_call()
        self.assertIsNone(self.server.value("peek"))  # came behind both and is answered before
        self.server.answer(call)
        answers = self.server.answers(first, second)
        self.assertEqual({value_of(frame)[0] for frame in answers.values()}, {7})
        self.assertEqual(sorted(self.server.value("peek", session="s", continuity="same")), [2, 3, 7])
        self.assertEqual((self.takes(), self.asked()), (2, ["forget", "restore"]))

    def test_one_that_is_withdrawn_has_said_it_all_the_same(self):
        self.add(1, "bound")
        running = [self.server.query("streams", 2, credit=ONE_CHUNK) for _ in range(CAPACITY)]
        for _ in running:
            self.assertEqual(self.server.next().kind, wire.MESSAGE)
        waiting = self.server.query("add", 2, session="s", continuity="restarted")
        self.w.cancel(waiting)
        self.assertEqual(self.server.answers(waiting)[waiting].kind, wire.CANCELLED)
        for rid in running:
            self.w.data.send(wire.CREDIT, rid, chunks=9, count=0)
        self.server.answers(*running)
        self.assertEqual(self.add(3, "same"), [3])

    def test_it_does_not_wait_for_requests_that_began_before(self):
        self.add(1, "bound")
        running = self.server.query("streams", 2, session="s", continuity="same", credit=ONE_CHUNK)
        self.assertEqual(self.server.next().kind, wire.MESSAGE)
        self.assertEqual(self.add(2, "restarted"), [2])
        self.w.data.send(wire.CREDIT, running, chunks=9, count=0)
        self.server.answers(running)
        self.assertEqual(self.add(3, "same"), [2, 3])

    def test_a_state_on_its_way_is_void_when_the_session_begins_anew(self):
        self.saved(b"[1]")
        first = self.server.query("peek", session="s", continuity="restored")
        call = self.server.next_call()
        second = self.server.query("add", 3, session="s", continuity="restarted")
        self.assertIsNone(self.server.value("peek"))  # came behind both: the second has been read
        self.server.answer(call)
        self.assertEqual(value_of(self.server.answers(first, second)[second]), [3])
        self.assertEqual((self.takes(), self.asked()), (2, ["restore", "forget"]))

    def test_a_save_waits_for_a_guest(self):
        self.add(1, "bound")
        guest = self.server.query("streams", 2, session="s", continuity="elsewhere", credit=ONE_CHUNK)
        self.assertEqual(self.server.next().kind, wire.MESSAGE)
        save = self.server.query("ostler.save_session", session="s")
        self.assertIsNone(self.server.value("peek"))
        self.w.data.send(wire.CREDIT, guest, chunks=9, count=0)
        self.assertEqual(list(self.server.answers(guest, save)), [guest, save])


class OfTheMainThread(Continuity, WorkerTest):
    pass


class OfTheMainThreadOnLines(Continuity, WorkerTest):
    wires = "ndjson"


class OfTheMainThreadAsCoroutines(Continuity, WorkerTest):
    forms = COROUTINES


class OfThreads(SideBySide, WorkerTest):
    profile = "thread"


class OfThreadsOnLines(SideBySide, WorkerTest):
    profile, wires = "thread", "ndjson"


class OfThreadsAsCoroutines(SideBySide, WorkerTest):
    profile, forms = "thread", COROUTINES


class OfTheLoop(SideBySide, WorkerTest):
    profile, forms = "async", COROUTINES


class OfTheLoopOnLines(SideBySide, WorkerTest):
    profile, forms, wires = "async", COROUTINES, "ndjson"


class OfTheLoopForPlainFunctions(SideBySide, WorkerTest):
    profile = "async"


class WithoutMoving(WorkerTest):
    """A file that forgets sessions and neither saves nor restores them."""

    SOURCE = """
    held = {}

    @ostler.forget_session
    def forget(session_id):
        del held[session_id]

    @ostler.function
    def add(x):
        held.setdefault(ostler.request().session, []).append(x)
        return held[ostler.request().session]
    """

    def test_forgetting_stands_alone(self):
        for profile in ("process", "thread", "async"):
            w = self.worker(self.SOURCE, environ=environment(profile, 2))
            server = SessionServer(w)
            self.assertNotIn("savesSessions", w.ready)
            self.assertEqual(server.value("add", 1, session="s", continuity="bound"), [1])
            self.assertEqual(server.value("add", 2, session="s", continuity="same"), [1, 2])
            self.assertEqual(server.value("add", 3, session="s", continuity="bound"), [3])
            self.assertEqual(error_of(server.save("s"))["code"], "function_not_found")
            self.assertEqual(server.operations, [])


class Bookkeeping(unittest.TestCase):
    def test_whoever_comes_first_moves_in_for_the_one_that_said_it(self):
        doors = Doors()
        doors.residents.settle("s")
        doors.note("s", "restored")
        doors.note("s", "same")
        self.assertEqual(doors.enter("s", None), FETCH)  # the second, in a faster thread
        self.assertTrue(doors.has_remains("s"))
        doors.opened("s", settled=True)
        self.assertEqual(doors.enter("s", None), HERE)

    def test_a_guest_waits_while_the_state_moves(self):
        doors, woken = Doors(), []
        self.assertEqual(doors.enter("s", None), FETCH)
        self.assertEqual(doors.visit("s", lambda: woken.append(1)), WAIT)
        doors.opened("s", settled=False)
        self.assertEqual((woken, doors.visit("s", None)), ([1], HERE))
        doors.leave("s")
        self.assertEqual((doors.by_session, doors.residents.is_home("s")), ({}, False))

    def test_a_move_that_failed_keeps_nothing_of_a_session_that_began_anew(self):
        doors = Doors()
        self.assertEqual(doors.enter("s", None), FETCH)
        doors.note("s", "bound")
        doors.keep("s", "of the one before")
        doors.opened("s", settled=False)
        self.assertEqual((doors.kept("s"), doors.has_remains("s")), (None, True))

    def test_remains_are_bounded_and_none_is_overlooked(self):
        residents = Residents()
        for number in range(SEEN_MAX + 1):
            residents.note(str(number), "elsewhere")
        self.assertEqual(len(residents.seen), SEEN_MAX)
        self.assertFalse(residents.has_remains("0"))
        residents.note("0", "bound")
        self.assertTrue(residents.has_remains("0"))


if __name__ == "__main__":
    unittest.main()
