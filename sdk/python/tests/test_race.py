"""Cancels thrown at requests around the moment they end.

Each round sends a short request with an innocent one behind it, and cancels
the first at a random moment: before it starts, while it runs, as it ends or
after. Whatever the moment, the first has exactly one terminal frame, the second
completes with its own value, and the worker lives.

    OSTLER_RACE_ROUNDS=100000 python3 -m unittest discover -s sdk/python/tests -p test_race.py
"""

import json
import os
import random
import select
import time
from collections import Counter

from harness import TERMINAL, WorkerTest, wire

ROUNDS = int(os.environ.get("OSTLER_RACE_ROUNDS", "10000"))

SOURCE = """
import sys, time

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
    return x
"""

# Microseconds that a request runs. Most end about when their cancel comes; a
# few are long enough to be struck on the busiest machine.
SHORT = 150
LONG = 20_000


class Race(WorkerTest):
    def rounds(self, function, count, signalled=True, switch=0, ask=wire.CANCEL):
        w = self.worker(SOURCE.format(switch=switch))
        outcomes = Counter()
        chance = random.Random(function)
        for number in range(count):
            length = SHORT if number % 50 else LONG
            delay = chance.uniform(0, 2 * SHORT if number % 50 else LONG / 2)
            outcomes[self.one_round(w, function, length, delay, signalled, ask)] += 1
        w.control.send(wire.PING, 1)
        self.assertEqual(w.control.next().kind, wire.PONG)  # nothing else is left on it
        self.assertIsNone(w.process.poll())
        return outcomes

    def one_round(self, w, function, length, delay, signalled, ask):
        """The outcome of the first request; anything wrong fails the test."""
        first = w.query(function, length)
        second = w.query("echo", first + 1)
        end = time.perf_counter() + delay / 1e6
        while time.perf_counter() < end:
            pass
        w.control.send(ask, first)
        if signalled:
            os.kill(w.process.pid, w.ready["cancelSignal"])
        seen = []
        while not seen or seen[-1].id != second:
            frame = w.data.next()
            self.assertIn(frame.id, (first, second))
            if frame.kind in TERMINAL:
                seen.append(frame)
        self.assertEqual((seen[-1].kind, json.loads(seen[-1].body)), (wire.COMPLETE, second))
        if len(seen) == 1:  # cancelled before it began: the control side answered
            frame = w.control.next()
            self.assertEqual((frame.kind, frame.id, frame.flags), (wire.CANCELLED, first, wire.NOT_STARTED))
            return "withdrawn"
        self.assertEqual([frame.id for frame in seen], [first, second])
        # A second answer on control would be one too many.
        self.assertFalse(w.control.frames or select.select([w.control.sock], [], [], 0)[0])
        if seen[0].kind == wire.CANCELLED and seen[0].flags & wire.NOT_STARTED:
            return "given back"
        return {wire.COMPLETE: "complete", wire.ERROR: "error", wire.CANCELLED: "cancelled"}[seen[0].kind]

    def assert_both_ways(self, outcomes, other="complete"):
        self.assertGreater(outcomes["cancelled"], 0, outcomes)
        self.assertGreater(outcomes[other], 0, outcomes)

    def test_a_cancel_never_strikes_the_wrong_request(self):
        outcomes = self.rounds("spins", ROUNDS)
        if "OSTLER_RACE_ROUNDS" in os.environ:
            print(f"\n{ROUNDS} rounds: {dict(outcomes)}")
        self.assert_both_ways(outcomes)

    def test_nor_without_the_direct_signal(self):
        # Short time slices, so that the control thread gets its turn in time.
        outcomes = self.rounds("spins", ROUNDS // 5, signalled=False, switch=1e-5)
        self.assertEqual(sum(outcomes.values()), ROUNDS // 5)

    def test_a_withdrawal_never_stops_what_has_begun(self):
        outcomes = self.rounds("spins", ROUNDS // 5, switch=1e-5, ask=wire.WITHDRAW)
        self.assertEqual(outcomes["cancelled"], 0, outcomes)
        self.assertGreater(outcomes["withdrawn"] + outcomes["given back"], 0, outcomes)
        self.assertGreater(outcomes["complete"], 0, outcomes)

    def test_nor_through_finally_and_shield(self):
        self.assert_both_ways(self.rounds("nested", ROUNDS // 5))

    def test_nor_does_it_tear_what_a_handler_sends(self):
        self.assert_both_ways(self.rounds("logs", ROUNDS // 5))

    def test_nor_in_a_stream(self):
        self.assert_both_ways(self.rounds("streams", ROUNDS // 5))

    def test_nor_among_destructors(self):
        self.assert_both_ways(self.rounds("drops", ROUNDS // 5))

    def test_nor_while_an_exception_is_reported(self):
        self.assert_both_ways(self.rounds("fails", ROUNDS // 5), other="error")
