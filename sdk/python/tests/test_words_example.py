"""The example of jobs that make jobs: examples/workers/words.py."""

import os
import shutil
import tempfile
import unittest

from harness import PACKAGE, WorkerTest, wire
from job_server import JobServer, part

FILE = os.path.join(os.path.dirname(os.path.dirname(PACKAGE)), "examples", "workers", "words.py")


class Words(WorkerTest):
    def setUp(self):
        with open(FILE, encoding="utf-8") as file:
            self.server = JobServer(self.worker(file.read()))
        self.folder = tempfile.mkdtemp(prefix="ostler-words-")
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in (("a.txt", "one two"), ("b.md", "one\ntwo\nthree\n"), ("c.bin", "not a text")):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(text)

    def run_children(self):
        """As the server would: each on a worker, its result kept."""
        for id, job in self.server.jobs.items():
            asked = job["asked"]
            result = self.server.value(asked["function"], *asked["payload"].values(), job=part(id, depth=1))
            job.update(status="COMPLETED", result=result)

    def test_a_survey_has_a_child_for_each_text_and_their_sum_is_its_total(self):
        children = self.server.value("survey", self.folder, job=part("j_1"))
        self.assertEqual(children, {"a.txt": "j_100", "b.md": "j_101"})
        self.run_children()
        self.server.jobs["j_1"] = {"id": "j_1", "status": "COMPLETED", "result": children}
        self.assertEqual(self.server.value("total", "j_1"), 5)

    def test_a_survey_that_is_tried_again_has_the_same_children(self):
        first = self.server.value("survey", self.folder, job=part("j_1"))
        self.assertEqual(self.server.value("survey", self.folder, job=part("j_1", attempt=2)), first)
        self.assertEqual(len(self.server.jobs), 2)

    def test_a_survey_without_its_end_has_no_total(self):
        self.server.jobs["j_1"] = {"id": "j_1", "status": "RUNNING"}
        self.assertIn("RUNNING", self.server.error("total", "j_1")["message"])

    def test_a_file_that_is_not_there_is_worth_another_attempt(self):
        error = self.server.error("count", os.path.join(self.folder, "gone.txt"), job=part())
        self.assertTrue(error["retryable"])

    def test_a_long_file_tells_how_far_it_is(self):
        path = os.path.join(self.folder, "long.txt")
        with open(path, "w") as file:
            file.write("word\n" * 2500)
        worker = self.server.worker
        worker.query("count", path, job=part())
        said = [worker.data.next() for _ in range(4)]
        self.assertEqual([frame.kind for frame in said], [wire.PROGRESS, wire.PROGRESS, wire.LOG, wire.COMPLETE])
        self.assertEqual(bytes(said[1].body), b'{"lines":2000,"words":2000}')

    def test_each_worker_of_a_job_has_its_share(self):
        parts = [part(shard=n, shard_count=3) for n in range(3)]
        found = [self.server.value("longest", self.folder, job=job) for job in parts]
        self.assertEqual(found, [[7, "a.txt"], [14, "b.md"], [0, None]])


if __name__ == "__main__":
    unittest.main()
