"""Jobs from inside a handler: which one it is part of, and those that it submits."""

import datetime
import functools
import unittest

from harness import WorkerProcess, environment, wire
from job_server import JobServer, part

PLAIN = """
import asyncio, datetime, threading

@ostler.function
def whose():
    r = ostler.request()
    return [r.job and r.job._asdict(), r.shard, r.shard_count, r.attempt]

@ostler.function
def hands_in():
    jobs = [
        ostler.submit("thumbs", "clear"),
        ostler.submit("thumbs", "resize", "a.png", 3),
        ostler.submit("thumbs", "resize", path="a.png"),
        ostler.submit("thumbs", "scan", b"\\x00\\xff"),
        ostler.submit("thumbs", "scan", ostler.Raw(b"<p>", "text/html")),
        ostler.submit("thumbs", "mark", None),
        ostler.submit("thumbs", "mark", pool="a", function="b"),
    ]
    return [[job.id, job.known] for job in jobs]

@ostler.function
def with_options():
    utc = datetime.timezone.utc
    parent = ostler.Job("j_7")
    ostler.submit_job(
        "thumbs", "resize", ["a.png"], task_description="small ones", worker_count=2, priority=9,
        run_at=datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=utc), timeout=datetime.timedelta(minutes=2),
        max_attempts=5, backoff={"initial": datetime.timedelta(seconds=0.5), "max": "1m", "factor": 2},
        retry_on="error", children="ignore", session="s1", tags={"a": "b"}, workspace_id="w",
        queue="slow", unique_key="u", concurrency_key="c", concurrency_limit=4, parent_job_id=parent)
    ostler.submit_job("thumbs", "resize", kwargs={"path": "a.png"}, parent_job_id=None, priority=None)

@ostler.function
def wrongly(how):
    if how == "naive":
        ostler.submit_job("thumbs", "f", run_at=datetime.datetime(2030, 1, 1))
    if how == "option":
        ostler.submit_job("thumbs", "f", prority=3)
    if how == "both":
        ostler.submit("thumbs", "f", 1, a=2)
    if how == "not json":
        ostler.submit("thumbs", "f", object())

@ostler.function
def refused(pool):
    try:
        ostler.submit(pool, "f")
    except ostler.CallError as error:
        return [error.code, error.retryable, str(error)]

@ostler.function
def asks_about(id):
    job = ostler.Job(id)
    before = job.status()
    cancelled = job.cancel("enough")
    return [before, cancelled["status"], job.refresh()["why"]]

@ostler.function
def asks_about_nothing():
    try:
        ostler.Job("j_0").status()
    except ostler.CallError as error:
        return error.code

@ostler.function
def splits(pages, backwards=False):
    pages = list(pages)
    jobs = [ostler.submit("ocr", "page", page) for page in (pages[::-1] if backwards else pages)]
    return [[job.id, job.known] for job in jobs]

@ostler.function
def same_but_for_the_order():
    a = ostler.submit("ocr", "page", a=1, b=2)
    b = ostler.submit("ocr", "page", b=2, a=1)
    return a.id != b.id

@ostler.function
def later(*seconds):
    noon = datetime.datetime(2030, 1, 1, 12, tzinfo=datetime.timezone.utc)
    times = [noon + datetime.timedelta(seconds=n) for n in seconds]
    return [ostler.submit_job("ocr", "page", [1], run_at=at).id for at in times]

@ostler.function
def from_threads(count):
    import contextvars
    jobs = []
    def hand_in():
        jobs.append(ostler.submit("ocr", "page", 1).id)
    threads = [threading.Thread(target=contextvars.copy_context().run, args=(hand_in,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(set(jobs))

@ostler.function
def talks():
    r = ostler.request()
    r.log("begun")
    r.progress({"done": 1, "of": 2})
    raise ostler.Retryable("the disk is full")
"""

COROUTINES = """
@ostler.function
async def awaits():
    job = await ostler.asubmit("thumbs", "resize", path="a.png")
    other = await ostler.asubmit_job("thumbs", "resize", priority=3)
    told = await job.arefresh()
    cancelled = await job.acancel()
    return [told["id"] == job.id, cancelled["status"], await other.astatus()]

@ostler.function
async def blocks(what):
    try:
        if what == "submit":
            ostler.submit("thumbs", "resize")
        else:
            ostler.Job("j_1").status()
    except RuntimeError as error:
        return str(error)

@ostler.function
async def many(count):
    jobs = await asyncio.gather(*(ostler.asubmit("ocr", "page", 1) for _ in range(count)))
    return len({job.id for job in jobs})
"""

PLACES = {
    "process": {},
    "lines": {"wires": "ndjson"},
    "thread": {"environ": environment("thread", 2)},
    "async": {"environ": environment("async", 2)},
}


def everywhere(test):
    """In every profile, and on both wires."""

    @functools.wraps(test)
    def tested(self):
        for place in PLACES:
            with self.subTest(place):
                test(self, self.started(place))

    return tested


class Jobs(unittest.TestCase):
    """Workers are shared by all tests, since none leaves anything in them; what the server keeps is not."""

    workers = {}

    def started(self, place="process"):
        if place not in self.workers:
            self.workers[place] = WorkerProcess(PLAIN + COROUTINES, **PLACES[place])
            self.addClassCleanup(self.workers[place].close)
        return JobServer(self.workers[place])

    # Which job this is.

    @everywhere
    def test_a_request_knows_the_job_and_the_part_of_it_that_it_is(self, server):
        self.assertEqual(server.value("whose"), [None, 0, 1, 1])
        told = {"id": "j_1", "attempt": 3, "shard": 2, "shard_count": 4, "depth": 5}
        self.assertEqual(server.value("whose", job=part("j_1", 3, 2, 4, 5)), [told, 2, 4, 1])
        self.assertEqual(server.value("whose"), [None, 0, 1, 1])

    def test_what_a_job_says_and_that_it_may_be_tried_again_reaches_the_server(self):
        worker = self.started().worker
        rid = worker.query("talks", job=part())
        log, progress, end = (worker.data.next() for _ in range(3))
        self.assertEqual((log.kind, log.id, log.meta["message"]), (wire.LOG, rid, "begun"))
        self.assertEqual((progress.kind, progress.id), (wire.PROGRESS, rid))
        self.assertEqual((end.kind, end.meta["retryable"]), (wire.ERROR, True))

    # Submitting.

    @everywhere
    def test_a_job_has_the_arguments_that_a_call_would_have(self, server):
        ids = [f"j_{100 + n}" for n in range(7)]
        self.assertEqual(server.value("hands_in"), [[id, False] for id in ids])
        resize = {"pool": "thumbs", "function": "resize"}
        scan = {"pool": "thumbs", "function": "scan"}
        self.assertEqual(server.asked(), [
            {"pool": "thumbs", "function": "clear"},
            {**resize, "payload": ["a.png", 3]},
            {**resize, "payload": {"path": "a.png"}},
            {**scan, "payload": {"$bytes": "AP8="}},
            {**scan, "payload": {"$bytes": "PHA+", "contentType": "text/html"}},
            {"pool": "thumbs", "function": "mark", "payload": [None]},
            {"pool": "thumbs", "function": "mark", "payload": {"pool": "a", "function": "b"}},
        ])

    def test_options_are_spelled_as_the_http_api_spells_them(self):
        server = self.started()
        server.value("with_options")
        full, alone = server.asked()
        self.assertEqual(datetime.datetime.fromisoformat(full.pop("run_at")),
                         datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc))
        self.assertEqual(full, {
            "pool": "thumbs", "function": "resize", "payload": ["a.png"],
            "task_description": "small ones", "worker_count": 2, "priority": 9, "timeout": 120.0,
            "max_attempts": 5, "backoff": {"initial": 0.5, "max": "1m", "factor": 2},
            "retry_on": ["error"], "children": "ignore", "session": "s1", "tags": {"a": "b"},
            "workspace_id": "w", "queue": "slow", "unique_key": "u", "concurrency_key": "c",
            "concurrency_limit": 4, "parent_job_id": "j_7",
        })
        self.assertEqual(alone, {
            "pool": "thumbs", "function": "resize", "payload": {"path": "a.png"},
            "parent_job_id": None,
        })

    def test_what_cannot_be_a_job_is_said_before_the_server_hears_of_it(self):
        server = self.started()
        for how, part_of in (("naive", "time zone"), ("option", "'prority'"), ("both", "not both"),
                             ("not json", "object")):
            self.assertIn(part_of, server.error("wrongly", how)["message"])
        self.assertEqual(server.jobs, {})

    @everywhere
    def test_what_the_server_says_against_it_is_raised(self, server):
        told = ["pool_not_found", False, "it says pool_not_found"]
        self.assertEqual(server.value("refused", "nowhere"), told)

    @everywhere
    def test_a_job_is_asked_about_and_cancelled_by_its_id(self, server):
        server.value("splits", [1])
        self.assertEqual(server.value("asks_about", "j_100"), ["PENDING", "CANCELED", "enough"])
        self.assertEqual(server.value("asks_about_nothing"), "job_not_found")

    # Children are found again.

    def test_outside_of_a_job_nothing_is_counted(self):
        server = self.started()
        server.value("splits", [1, 1])
        self.assertEqual([asked.get("occurrence") for asked in server.asked()], [None, None])

    @everywhere
    def test_the_same_job_submitted_twice_by_one_attempt_is_two_jobs(self, server):
        self.assertEqual(server.value("splits", [1, 2, 1], job=part()),
                         [["j_100", False], ["j_101", False], ["j_102", False]])
        self.assertEqual([asked["occurrence"] for asked in server.asked()], [1, 1, 2])

    @everywhere
    def test_a_parent_that_is_tried_again_finds_its_children_in_any_order(self, server):
        first = server.value("splits", [1, 2, 1], job=part())
        again = server.value("splits", [1, 2, 1], True, job=part(attempt=2))
        self.assertEqual(sorted(again), [[id, True] for id, _ in first])

    def test_shards_of_a_job_have_children_of_their_own(self):
        server = self.started()
        ids = [server.value("splits", [1], job=part(shard=n, shard_count=2))[0][0] for n in range(2)]
        self.assertEqual(ids, ["j_100", "j_101"])

    def test_arguments_in_another_order_are_the_same_job(self):
        server = self.started()
        self.assertTrue(server.value("same_but_for_the_order", job=part()))
        self.assertEqual([asked["occurrence"] for asked in server.asked()], [1, 2])

    def test_children_that_are_to_run_later_are_found_by_an_attempt_that_reckons_another_time(self):
        server = self.started()
        self.assertEqual(server.value("later", 1, 2, job=part()), ["j_100", "j_101"])
        self.assertEqual(server.value("later", 3, 4, job=part(attempt=2)), ["j_100", "j_101"])

    def test_threads_of_a_handler_do_not_share_a_number(self):
        for place in ("process", "thread"):
            server = self.started(place)
            self.assertEqual(server.value("from_threads", 16, job=part()), 16)

    # Coroutines.

    @everywhere
    def test_coroutines_submit_and_ask_without_blocking(self, server):
        self.assertEqual(server.value("awaits"), [True, "CANCELED", "PENDING"])
        self.assertEqual(server.value("many", 8, job=part()), 8)

    def test_what_would_block_the_loop_is_refused_with_advice(self):
        server = self.started("async")
        self.assertIn("await ostler.asubmit", server.value("blocks", "submit"))
        self.assertIn("begins with a", server.value("blocks", "status"))


if __name__ == "__main__":
    unittest.main()
