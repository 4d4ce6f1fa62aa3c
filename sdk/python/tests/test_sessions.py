"""The session of a request: its metadata and programs, in every profile and on both wires."""

import json
import random
import unittest

from harness import WorkerProcess, WorkerTest, environment, wire
from ostler.mergepatch import difference
from session_server import Problem, SessionServer, merged

PLAIN = """
import threading

@ostler.function
def whose():
    return ostler.request().session

@ostler.function
def looks():
    s = ostler.session()
    return [s.id, s["colour"], s.get("size"), s.get("colour"), sorted(s), len(s), s.version,
            s.metadata, ostler.session() is s]

@ostler.function
def refreshes():
    s = ostler.session()
    before = s["colour"]
    s.refresh()
    return [before, s["colour"]]

@ostler.function
def alters_a_copy():
    s = ostler.session()
    s.metadata["colour"] = s["list"].append(1)
    return s.metadata

@ostler.function
def writes():
    s = ostler.session()
    s["a"] = [1, {"b": None}]
    s["nested"] = {"new": 1}
    del s["colour"]
    s.patch({"x": 1, "y": None})
    return [s.metadata, s.version]

@ostler.function
def conflicts():
    s = ostler.session()
    try:
        s.patch({"a": 1}, version=s.version + 7)
    except ostler.CallError as error:
        return [error.code, error.retryable, error.problem["version"]]

@ostler.function
def increments():
    def add(metadata):
        metadata["n"] = metadata.get("n", 0) + 1
        seen.append(metadata["n"])
    seen = []
    return [ostler.session().update(add)["n"], seen]

@ostler.function
def replaces():
    return ostler.session().update(lambda metadata: {"only": metadata["colour"]})

@ostler.function
def changes_nothing():
    return ostler.session().update(lambda metadata: None)

@ostler.function
def updates_with_nonsense():
    ostler.session().update(lambda metadata: 7)

@ostler.function
def stores_nonsense():
    ostler.session()["x"] = object()

@ostler.function
def programs():
    p = ostler.session().programs
    names = sorted(p)
    p["json"] = {"a": [1, None]}
    p["bytes"] = b"\\xff"
    p["typed"] = ostler.Raw(b"<p>", "text/html")
    p["odd:name"] = None
    after = [sorted(p), p["json"], p["bytes"] == b"\\xff", p["typed"] == b"<p>", p.get("odd:name", 5)]
    del p["json"]
    return [names, after, "json" in p, "bytes" in p, len(p), p.get("json", "gone")]

@ostler.function
def misses(how):
    p = ostler.session().programs
    if how == "get":
        return p["none"]
    if how == "delete":
        del p["none"]
    p[7] = 1

@ostler.function
def writes_programs_and_updates():
    s = ostler.session()
    before = s.version
    s.programs["p"] = 1
    return [s.version - before, s.update(lambda metadata: {**metadata, "done": True})]

@ostler.function
def in_a_thread_of_its_own():
    s, found = ostler.session(), []
    thread = threading.Thread(target=lambda: found.append(s["colour"]))
    thread.start()
    thread.join()
    return found
"""

COROUTINES = """
@ostler.function
async def whose():
    return ostler.request().session

@ostler.function
async def looks():
    s = await ostler.asession()
    return [s.id, s["colour"], s.get("size"), s.get("colour"), sorted(s), len(s), s.version,
            s.metadata, await ostler.asession() is s]

@ostler.function
async def refreshes():
    s = await ostler.asession()
    before = s["colour"]
    await s.arefresh()
    return [before, s["colour"]]

@ostler.function
async def alters_a_copy():
    s = await ostler.asession()
    s.metadata["colour"] = s["list"].append(1)
    return s.metadata

@ostler.function
async def writes():
    s = await ostler.asession()
    await s.apatch({"a": [1, {"b": None}]})
    await s.aupdate(lambda metadata: {**metadata, "nested": {"new": 1}})
    await s.apatch({"colour": None})
    await s.apatch({"x": 1, "y": None})
    return [s.metadata, s.version]

@ostler.function
async def conflicts():
    s = await ostler.asession()
    try:
        await s.apatch({"a": 1}, version=s.version + 7)
    except ostler.CallError as error:
        return [error.code, error.retryable, error.problem["version"]]

@ostler.function
async def increments():
    def add(metadata):
        metadata["n"] = metadata.get("n", 0) + 1
        seen.append(metadata["n"])
    seen = []
    return [(await ostler.session().aupdate(add))["n"], seen]

@ostler.function
async def replaces():
    return await ostler.session().aupdate(lambda metadata: {"only": metadata["colour"]})

@ostler.function
async def changes_nothing():
    return await ostler.session().aupdate(lambda metadata: None)

@ostler.function
async def updates_with_nonsense():
    await ostler.session().aupdate(lambda metadata: 7)

@ostler.function
async def stores_nonsense():
    await ostler.session().apatch({"x": object()})

@ostler.function
async def programs():
    p = (await ostler.asession()).programs
    names = sorted(p)
    await p.aset("json", {"a": [1, None]})
    await p.aset("bytes", b"\\xff")
    await p.aset("typed", ostler.Raw(b"<p>", "text/html"))
    await p.aset("odd:name", None)
    after = [sorted(p), await p.aget("json"), await p.aget("bytes") == b"\\xff",
             await p.aget("typed") == b"<p>", await p.aget("odd:name", 5)]
    await p.adelete("json")
    return [names, after, "json" in p, "bytes" in p, len(p), await p.aget("json", "gone")]

@ostler.function
async def misses(how):
    p = ostler.session().programs
    if how == "get":
        if await p.aget("none", 7) == 7:
            raise KeyError("none")
    if how == "delete":
        await p.adelete("none")
    await p.aset(7, 1)

@ostler.function
async def writes_programs_and_updates():
    s = await ostler.asession()
    before = s.version
    await s.programs.aset("p", 1)
    return [s.version - before, await s.aupdate(lambda metadata: {**metadata, "done": True})]
"""


class Held:
    """What a handler may do with its session, wherever it runs."""

    profile, source, wires = "process", PLAIN, "binary,ndjson"

    @classmethod
    def setUpClass(cls):
        cls.w = WorkerProcess(cls.source, environ=environment(cls.profile, 4), wires=cls.wires)
        cls.addClassCleanup(cls.w.close)

    def setUp(self):
        self.server = SessionServer(self.w)
        self.stored = self.server.store("s1", colour="red", nested={"old": 1}, list=[])

    def value(self, function, *args):
        return self.server.value(function, *args, session="s1")

    def test_the_request_knows_its_session(self):
        self.assertEqual(self.value("whose"), "s1")
        self.assertIsNone(self.server.value("whose"))
        self.assertEqual(self.server.operations, [])

    def test_it_is_read_once_for_a_request(self):
        metadata = self.stored.metadata
        expected = ["s1", "red", None, "red", sorted(metadata), 3, 1, metadata, True]
        self.assertEqual(self.value("looks"), expected)
        self.assertEqual(self.server.operations, [("session.get", str(self.w.last_id))])
        self.stored.metadata["colour"] = "blue"
        self.assertEqual(self.value("looks")[1], "blue")

    def test_and_anew_when_asked_to(self):
        self.server.before = lambda operation, store: store.metadata.update(colour=store.metadata["colour"] + "!")
        self.assertEqual(self.value("refreshes"), ["red!", "red!!"])

    def test_what_was_read_is_a_copy(self):
        metadata = self.stored.metadata
        self.assertEqual(self.value("alters_a_copy"), metadata)
        self.assertEqual(self.server.count("session.patch"), 0)

    def test_without_a_session_the_error_says_how_to_send_one(self):
        for function in ("looks", "increments", "programs"):
            meta = self.server.error(function)
            self.assertEqual((meta["code"], meta["type"]), ("application_error", "NoSession"))
            self.assertIn("Ostler-Session", meta["message"])
        self.assertEqual(self.server.operations, [])

    def test_each_writing_is_one_patch(self):
        after = {"a": [1, {"b": None}], "nested": {"new": 1}, "list": [], "x": 1}
        self.assertEqual(self.value("writes"), [after, 5])
        self.assertEqual(self.stored.metadata, after)
        self.assertEqual(self.server.count("session.patch"), 4)

    def test_a_version_that_is_not_the_sessions_is_a_conflict(self):
        self.assertEqual(self.value("conflicts"), ["version_conflict", True, 1])
        self.assertNotIn("a", self.stored.metadata)

    def test_an_update_begins_again_if_another_request_was_first(self):
        others = iter([True, True, False])

        def write_in_between(operation, store):
            if operation == "session.patch" and next(others):
                store.metadata["n"] = store.metadata.get("n", 0) + 10
                store.version += 1

        self.server.before = write_in_between
        self.assertEqual(self.value("increments"), [21, [1, 11, 21]])
        self.assertEqual(self.stored.metadata["n"], 21)

    def test_but_not_for_ever(self):
        def refuse(operation, store):
            if operation == "session.patch":
                raise Problem("version_conflict", retryable=True, version=9)

        self.server.before = refuse
        meta = self.server.error("increments", session="s1")
        self.assertIn("version_conflict", meta["message"])
        self.assertEqual(self.server.count("session.patch"), 100)

    def test_another_problem_ends_an_update_at_once(self):
        def refuse(operation, store):
            if operation == "session.patch":
                raise Problem("metadata_too_large")

        self.server.before = refuse
        self.assertEqual(self.server.error("increments", session="s1")["type"], "CallError")
        self.assertEqual(self.server.count("session.patch"), 1)

    def test_an_update_may_return_other_metadata(self):
        self.assertEqual(self.value("replaces"), {"only": "red"})
        self.assertEqual(self.stored.metadata, {"only": "red"})

    def test_an_update_that_changes_nothing_writes_nothing(self):
        self.assertEqual(self.value("changes_nothing"), self.stored.metadata)
        self.assertEqual(self.server.operations, [("session.get", str(self.w.last_id))])

    def test_what_json_cannot_say_is_the_handlers_error(self):
        for function in ("updates_with_nonsense", "stores_nonsense"):
            self.assertEqual(self.server.error(function, session="s1")["type"], "TypeError")
        self.assertEqual(self.server.count("session.patch"), 0)

    def test_programs_are_json_or_bytes_under_a_name(self):
        self.stored.programs["first"] = (0, b"1", None)
        names, after, json_in, bytes_in, length, gone = self.value("programs")
        all_names = ["bytes", "first", "json", "odd:name", "typed"]
        self.assertEqual((names, after), (["first"], [all_names, {"a": [1, None]}, True, True, None]))
        self.assertEqual((json_in, bytes_in, length, gone), (False, True, 4, "gone"))
        self.assertEqual(self.stored.programs["typed"], (wire.RAW, b"<p>", "text/html"))
        self.assertEqual(self.server.count("session.get"), 1)

    def test_a_program_that_is_not_there_is_a_key_error(self):
        self.assertEqual(self.server.error("misses", "get", session="s1")["type"], "KeyError")
        self.assertEqual(self.server.error("misses", "delete", session="s1")["type"], "KeyError")
        self.assertEqual(self.server.error("misses", "name", session="s1")["type"], "TypeError")

    def test_programs_written_by_the_request_do_not_hide_what_others_wrote(self):
        def write_in_between(operation, store):
            if operation.startswith("session.program.put"):
                store.metadata["other"] = 1
                store.version += 1

        self.server.before = write_in_between
        risen, metadata = self.value("writes_programs_and_updates")
        self.assertEqual((risen, metadata["other"], metadata["done"]), (0, 1, True))
        self.server.before = lambda operation, store: None
        self.assertEqual(self.value("writes_programs_and_updates")[0], 1)


class InAThread:
    def test_a_thread_of_its_own_may_use_it(self):
        self.assertEqual(self.value("in_a_thread_of_its_own"), ["red"])


class InTheMainThread(Held, InAThread, WorkerTest):
    pass


class InTheMainThreadOnLines(Held, InAThread, WorkerTest):
    wires = "ndjson"


class InThreads(Held, InAThread, WorkerTest):
    profile = "thread"


class InThreadsOnLines(Held, InAThread, WorkerTest):
    profile, wires = "thread", "ndjson"


class InTheExecutor(Held, InAThread, WorkerTest):
    profile = "async"


class InCoroutines(Held, WorkerTest):
    profile, source = "async", COROUTINES


class InCoroutinesOnLines(Held, WorkerTest):
    profile, source, wires = "async", COROUTINES, "ndjson"


class InCoroutinesOfTheMainThread(Held, WorkerTest):
    source = COROUTINES


class InCoroutinesOfThreads(Held, WorkerTest):
    profile, source = "thread", COROUTINES


BLOCKS = """
@ostler.function
async def reads():
    return ostler.session()["colour"]

@ostler.function
async def writes():
    (await ostler.asession())["colour"] = 1

@ostler.function
def waits():
    return ostler.session()["colour"]
"""


class Waiting(WorkerTest):
    def test_what_would_stop_the_loop_is_refused_and_says_what_to_use(self):
        server = SessionServer(self.worker(BLOCKS, environ=environment("async", 2)))
        server.store("s1", colour="red")
        for function in ("reads", "writes"):
            meta = server.error(function, session="s1")
            self.assertEqual(meta["type"], "RuntimeError")
            self.assertIn("ostler.asession()", meta["message"])

    def test_a_cancel_ends_the_wait_for_the_server(self):
        for profile in ("process", "thread", "async"):
            w = self.worker(BLOCKS, environ=environment(profile, 2))
            server = SessionServer(w)
            rid = server.query("waits", session="s1")
            call = server.next_call()
            w.cancel(rid)
            self.assertEqual(w.answers(rid)[rid].kind, wire.CANCELLED, profile)
            w.data.send(wire.CALL_RESULT, call.id, body=b"{}")
            server.store("s1", colour="red")
            self.assertEqual(server.value("waits", session="s1"), "red", profile)


class Differences(unittest.TestCase):
    def drawn(self, rng, depth=3):
        kinds = ["scalar", "list", "object"] if depth else ["scalar"]
        kind = rng.choice(kinds)
        if kind == "object":
            return {rng.choice("abc"): self.drawn(rng, depth - 1) for _ in range(rng.randint(0, 3))}
        if kind == "list":
            return [self.drawn(rng, depth - 1) for _ in range(rng.randint(0, 2))]
        return rng.choice([0, 1, True, False, 1.0, "", "x"])

    def test_merging_the_difference_gives_the_other(self):
        rng = random.Random(4)
        for _ in range(3000):
            old, new = {"r": self.drawn(rng)}, {"r": self.drawn(rng), rng.choice("rs"): self.drawn(rng)}
            patch = difference(old, new)
            self.assertEqual(json.dumps(merged(old, patch), sort_keys=True), json.dumps(new, sort_keys=True))
            self.assertEqual(difference(new, new), {})


if __name__ == "__main__":
    unittest.main()
