"""Cancels thrown at requests that run side by side, around the moment they end.

As test_race.py for the thread and the async profile: whatever the moment, the
cancelled request has exactly one terminal frame, the one beside it completes
with its own value, and the worker lives.
"""

import json
import random
import time
from collections import Counter

from harness import TERMINAL, WorkerTest, environment, strikes, wire

ROUNDS = 300

SOURCE = """
import asyncio, logging, sys, time

logging.basicConfig(stream=open("/dev/null", "w"), level="INFO")
if {switch}:
    sys.setswitchinterval({switch})

def spin(us):
    end = time.perf_counter() + us / 1e6
    while time.perf_counter() < end:
        pass

@ostler.function
def spins(us):
    spin(us)
    return us

@ostler.function
def nested(us):
    try:
        try:
            spin(us / 2)
        finally:
            spin(us / 4)
    except ValueError:
        pass
    with ostler.shield():
        spin(us / 4)
    return us

@ostler.function
def logs(us):
    ostler.request().log("x" * 5000)
    spin(us / 2)
    ostler.request().progress(us)
    return us

@ostler.function
def shares_a_lock(us):
    end = time.perf_counter() + us / 1e6
    while time.perf_counter() < end:
        logging.info("a handler of the logging module has a lock of all threads")
    return us

@ostler.function
def streams(us):
    for _ in range(4):
        spin(us / 5)
        yield us

class Dropped:
    def __del__(self):
        spin(2)

@ostler.function
def drops(us):
    end = time.perf_counter() + us / 1e6
    while time.perf_counter() < end:
        Dropped()
        spin(2)
    return us

@ostler.function
def fails(us):
    spin(us)
    raise ValueError(us)

@ostler.function
def echo(x):
    logging.info("and still works")
    return x

@ostler.function
async def awaits(us):
    end = time.perf_counter() + us / 1e6
    while time.perf_counter() < end:
        await asyncio.sleep(0)
    return us

@ostler.function
async def awaits_shielded(us):
    await awaits(us / 2)
    with ostler.shield():
        await awaits(us / 4)
    ostler.request().log("past the shield")
    await awaits(us / 4)
    return us

@ostler.function
async def astreams(us):
    for _ in range(4):
        await awaits(us / 5)
        yield us

@ostler.function
async def aecho(x):
    return x
"""

# Microseconds that a request runs. Most end about when their cancel comes; a
# few are long enough to be struck on the busiest machine.
SHORT = 150
LONG = 40_000


class Race(WorkerTest):
    def rounds(self, profile, function, beside="echo", switch=1e-4, ask=wire.CANCEL):
        w = self.worker(SOURCE.format(switch=switch), environ=environment(profile, 2))
        outcomes, chance = Counter(), random.Random(function)
        for number in range(ROUNDS):
            long = number % 10 == 0
            delay = chance.uniform(0, LONG / 4 if long else 2 * SHORT)
            outcomes[self.one_round(w, function, beside, LONG if long else SHORT, delay, ask)] += 1
        self.assertTrue(w.pinged())  # nothing else is left on control
        self.assertIsNone(w.process.poll())
        return outcomes

    def one_round(self, w, function, beside, length, delay, ask):
        """The outcome of the first request; anything wrong fails the test."""
        first, second = w.query(function, length), w.query(beside, w.last_id + 1)
        end = time.perf_counter() + delay / 1e6
        while time.perf_counter() < end:
            pass
        w.control.send(ask, first)
        w.control.send(wire.PING, first)
        answer = w.control.next()
        withdrawn = answer.kind == wire.CANCELLED
        if withdrawn:
            self.assertEqual((answer.id, answer.flags), (first, wire.NOT_STARTED))
            answer = w.control.next()
        self.assertEqual((answer.kind, answer.id), (wire.PONG, first))
        found = w.answers(*([second] if withdrawn else [first, second]))
        self.assertEqual((found[second].kind, json.loads(found[second].body)), (wire.COMPLETE, second))
        return "withdrawn" if withdrawn else self.name(found[first])

    def name(self, frame):
        if frame.kind == wire.CANCELLED and frame.flags & wire.NOT_STARTED:
            return "given back"
        return dict(zip(TERMINAL, ("complete", "error", "cancelled")))[frame.kind]

    def assert_both_ways(self, outcomes, other="complete"):
        self.assertGreater(outcomes["cancelled"], 0, outcomes)
        self.assertGreater(outcomes[other], 0, outcomes)

    @strikes
    def test_in_a_thread_it_never_strikes_the_wrong_request(self):
        self.assert_both_ways(self.rounds("thread", "spins"))

    @strikes
    def test_nor_with_ordinary_time_slices(self):
        self.assert_both_ways(self.rounds("thread", "spins", switch=0))

    def test_nor_through_finally_and_shield(self):
        self.assert_both_ways(self.rounds("thread", "nested"))

    def test_nor_does_it_tear_what_a_handler_sends(self):
        self.assert_both_ways(self.rounds("thread", "logs"))

    def test_nor_does_it_leave_a_lock_of_all_threads_taken(self):
        outcomes = self.rounds("thread", "shares_a_lock", switch=0)
        self.assertGreater(outcomes["complete"] + outcomes["cancelled"], 0, outcomes)

    @strikes
    def test_nor_in_a_stream(self):
        self.assert_both_ways(self.rounds("thread", "streams"))

    @strikes
    def test_nor_among_destructors(self):
        self.assert_both_ways(self.rounds("thread", "drops"))

    @strikes
    def test_nor_while_an_exception_is_reported(self):
        self.assert_both_ways(self.rounds("thread", "fails"), other="error")

    def test_a_withdrawal_never_stops_what_has_begun(self):
        outcomes = self.rounds("thread", "spins", ask=wire.WITHDRAW)
        self.assertEqual(outcomes["cancelled"], 0, outcomes)
        self.assertGreater(outcomes["complete"], 0, outcomes)

    def test_a_task_has_one_answer_too(self):
        self.assert_both_ways(self.rounds("async", "awaits", "aecho"))

    def test_and_with_a_shield(self):
        self.assert_both_ways(self.rounds("async", "awaits_shielded", "aecho"))

    def test_and_in_an_async_generator(self):
        self.assert_both_ways(self.rounds("async", "astreams", "aecho"))

    @strikes
    def test_and_beside_the_executor(self):
        self.assert_both_ways(self.rounds("async", "spins"))
