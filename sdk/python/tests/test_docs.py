"""The examples of docs/python.md that need a server's answers run as they stand."""

import os
import re
import unittest

from harness import PACKAGE, WorkerTest, environment
from job_server import JobServer, part
from session_server import SessionServer

PAGE = os.path.join(os.path.dirname(os.path.dirname(PACKAGE)), "docs", "python.md")


def example(part):
    """The one block of Python on the page that has ``part`` in it."""
    with open(PAGE, encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    (found,) = [block for block in blocks if part in block]
    return found


class Documentation(WorkerTest):
    def served(self, part, profile):
        return SessionServer(self.worker(example(part), environ=environment(profile, 2)))

    def test_the_example_of_sessions(self):
        for profile in ("process", "thread", "async"):
            server = self.served("def visit", profile)
            self.assertEqual(server.value("visit", "ann", session="s1"), ["s1", 1, ["last"], {"name": "ann"}])
            self.assertEqual(server.value("visit", "ben", session="s1"), ["s1", 2, ["last"], {"name": "ben"}])

    def test_the_example_of_state_in_memory(self):
        for profile in ("process", "thread", "async"):
            server = self.served("def restore", profile)
            self.assertEqual(server.value("say", "a", session="s1"), ["a"])
            server.moved("s1")
            other = self.served("def restore", profile)
            other.stores = server.stores
            self.assertEqual(other.value("say", "b", session="s1"), ["a", "b"])
            self.assertEqual(other.value("say", "c", session="s1", continuity="restarted"), ["c"])

    def test_the_example_of_jobs(self):
        for profile in ("process", "thread", "async"):
            server = JobServer(self.worker(example("def scan"), environ=environment(profile, 2)))
            ids = server.value("scan", ["a", "b"], job=part())
            self.assertEqual(server.value("scan", ["a", "b"], job=part(attempt=2)), ids)
            self.assertEqual([asked["payload"] for asked in server.asked()], [{"name": "a"}, {"name": "b"}])
            self.assertEqual(server.value("page", "a"), 1)
            self.assertTrue(server.error("page", "a.locked")["retryable"])


if __name__ == "__main__":
    unittest.main()
