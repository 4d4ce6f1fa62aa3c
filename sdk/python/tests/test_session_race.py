"""Cancels that come while a session moves in: its state is never lost and never restored twice."""

import random
import unittest

from harness import WorkerTest, environment, wire
from session_server import SessionServer, value_of

ROUNDS = 150

SOURCE = """
import time
held = {{}}

@ostler.save_session
{form} save(session_id):
    return held.pop(session_id)

@ostler.restore_session
{form} restore(session_id, state):
    until = time.monotonic() + state[0] / 1e6
    while time.monotonic() < until:
        {pause}
    held[session_id] = list(state)

@ostler.forget_session
{form} forget(session_id):
    {pause}
    held.pop(session_id, None)

@ostler.function
{form} add(x):
    state = held.setdefault(ostler.request().session, [])
    state.append(x)
    return state
"""


class Races(WorkerTest):
    def run_rounds(self, profile, form, pause):
        w = self.worker(SOURCE.format(form=form, pause=pause), environ=environment(profile, 3))
        server, rng = SessionServer(w), random.Random(profile)
        cancelled = 0
        for number in range(ROUNDS):
            session = f"s{number}"
            if number % 2:  # was here, went away and comes back
                server.value("add", "stale", session=session, continuity="bound")
            cancelled += self.round(server, rng, session, rng.randint(1, 300))
        self.assertEqual(server.count("session.take"), ROUNDS + ROUNDS // 2)
        self.assertGreater(cancelled, 0)

    def round(self, server, rng, session, mark):
        """True: the cancel was in time."""
        server.store(session).saved = (0, b"[%d]" % mark, None)
        rid = server.query("add", "first", session=session, continuity="restored")
        call = server.next_call()
        steps = [lambda: server.answer(call), lambda: server.worker.cancel(rid)]
        rng.shuffle(steps)
        for step in steps:
            step()
        second = server.query("add", "second", session=session, continuity="same")
        answers = server.answers(rid, second)
        self.assertIn(answers[rid].kind, (wire.COMPLETE, wire.CANCELLED))
        state = value_of(server.save(session))
        self.assertEqual((state[0], state.count("second"), "stale" in state), (mark, 1, False))
        if answers[rid].kind == wire.COMPLETE:
            self.assertEqual(state.count("first"), 1)
        return answers[rid].kind == wire.CANCELLED

    def test_in_the_main_thread(self):
        self.run_rounds("process", "def", "pass")

    def test_as_a_coroutine_of_the_main_thread(self):
        self.run_rounds("process", "async def", "await __import__('asyncio').sleep(0)")

    def test_in_threads(self):
        self.run_rounds("thread", "def", "pass")

    def test_as_coroutines_of_threads(self):
        self.run_rounds("thread", "async def", "await __import__('asyncio').sleep(0)")

    def test_on_the_loop(self):
        self.run_rounds("async", "async def", "await __import__('asyncio').sleep(0)")

    def test_on_the_loop_for_plain_functions(self):
        self.run_rounds("async", "def", "pass")


if __name__ == "__main__":
    unittest.main()
