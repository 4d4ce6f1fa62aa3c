"""Who answers a request among several, step by step; and when a thread may be struck."""

import threading
import unittest
from unittest import mock

import harness  # puts the package on the path
from ostler import place as place_module, wire
from ostler.cancel import Struck
from ostler.errors import Cancelled
from ostler.place import Place, spared
from ostler.turns import OVER, RUNNING, Turn, Turns


class Worker:
    state = Turns()


def turn(rid, **meta):
    return Turn(Worker, wire.Frame(wire.QUERY, rid, meta=meta), 0.0)


class Ledger(unittest.TestCase):
    def setUp(self):
        self.turns = Turns()
        self.interrupted = []
        self.turns.interrupt = self.interrupted.append

    def admitted(self, rid):
        new = turn(rid)
        self.assertTrue(self.turns.admit(new))
        return new

    def test_a_waiting_one_is_given_back_once_and_never_begins(self):
        waiting = self.admitted(1)
        self.assertEqual([self.turns.on_withdraw(1), self.turns.on_cancel(1)], [True, False])
        self.assertFalse(self.turns.begin(waiting))

    def test_a_running_one_is_interrupted_once_and_not_answered_here(self):
        running = self.admitted(1)
        self.turns.begin(running)
        self.assertFalse(self.turns.on_withdraw(1))
        self.assertEqual((running.stage, running.cancelled), (RUNNING, False))
        self.assertEqual([self.turns.on_cancel(1), self.turns.on_cancel(1)], [False, False])
        self.assertEqual((running.cancelled, self.interrupted), (True, [running]))

    def test_one_cancelled_before_its_query_came_is_answered_then_and_dropped(self):
        self.assertEqual([self.turns.on_cancel(2), self.turns.on_cancel(2)], [True, False])
        self.admitted(1)
        early = turn(2)
        self.assertFalse(self.turns.admit(early))
        self.assertTrue(early.answered)
        self.assertEqual(self.turns.early, set())

    def test_one_that_is_over_is_forgotten(self):
        done = self.admitted(1)
        self.turns.begin(done)
        self.turns.finish(done)
        self.assertFalse(self.turns.on_cancel(1))
        self.turns.grant(wire.Frame(wire.CREDIT, 1, chunks=5, count=5))
        self.assertEqual((done.stage, self.turns.by_id, self.interrupted), (OVER, {}, []))

    def test_credit_wakes_whoever_waits_for_it(self):
        stream = turn(1, credit={"chunks": 0, "bytes": 0})
        self.turns.admit(stream)
        woken = []
        stream.waiters.add(lambda: woken.append(stream.may_send()))
        self.turns.grant(wire.Frame(wire.CREDIT, 1, chunks=1, count=1))
        self.turns.spend(stream, 1)
        self.assertEqual((woken, stream.may_send()), ([True], False))

    def test_a_stop_interrupts_what_runs_and_gives_back_the_rest(self):
        running, waiting = self.admitted(1), self.admitted(2)
        self.turns.begin(running)
        self.turns.begin_stop("over")
        self.assertFalse(self.turns.begin(waiting))
        self.turns.poke()
        self.turns.poke()
        self.assertEqual((self.interrupted, self.turns.take_unbegun()), ([running], [waiting]))
        self.assertFalse(self.turns.admit(turn(3)))

    def test_a_drained_worker_is_empty_when_the_last_is_over(self):
        last, other = self.admitted(1), self.admitted(2)
        self.turns.begin(last)
        self.turns.drain()
        self.turns.on_withdraw(other.rid)
        self.assertFalse(self.turns.emptied.is_set())
        self.turns.finish(last)
        self.assertTrue(self.turns.emptied.is_set())


class Blows(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.turn = turn(7)
        self.place.take(self.turn)
        self.dealt = []
        self.place.strike_thread = lambda _ident, blow: self.dealt.append(blow)
        self.strike_from_elsewhere = lambda: self.elsewhere(self.place.strike, 7)

    def elsewhere(self, action, *args):
        result = []
        other = threading.Thread(target=lambda: result.append(action(*args)))
        other.start()
        other.join()
        return result[0]

    def test_a_thread_that_waits_inside_the_standard_library_is_left_for_later(self):
        self.place.arm(7)
        self.assertFalse(self.strike_from_elsewhere())  # in Thread.join
        self.assertEqual(self.dealt, [])

    def test_nobody_is_struck_for_another_request_or_while_disarmed_or_masked(self):
        self.assertTrue(self.strike_from_elsewhere())
        self.place.arm(8)
        self.assertTrue(self.strike_from_elsewhere())
        self.place.arm(7)
        self.place.mask()
        self.assertTrue(self.strike_from_elsewhere())
        self.assertEqual(self.dealt, [])

    def test_a_cancel_while_masked_is_raised_at_the_end_of_the_outer_mask(self):
        self.place.arm(7)
        self.place.mask()
        self.place.mask()
        self.turn.cancelled = True
        self.place.unmask()
        with self.assertRaises(Cancelled):
            self.place.unmask()
        self.place.mask()
        self.place.unmask()  # once only

    def test_where_no_thread_can_be_struck_the_ends_of_masks_still_raise(self):
        self.place.strike_thread = None
        self.place.arm(7)
        self.assertTrue(self.strike_from_elsewhere())  # nothing to try again
        self.place.mask()
        self.turn.cancelled = True
        with self.assertRaises(Cancelled):
            self.place.unmask()
        self.place.disarm()

    def test_the_standard_library_and_the_sdk_are_spared_and_the_rest_is_not(self):
        self.assertTrue(spared(threading.__file__))
        self.assertTrue(spared(harness.wire.__file__))
        self.assertTrue(spared("<frozen importlib._bootstrap>"))
        self.assertFalse(spared(__file__))

    @harness.strikes
    def test_a_blow_that_is_being_dealt_is_waited_for_when_disarming(self):
        looked, disarmed, result = threading.Event(), threading.Event(), []
        deal = Place().strike_thread
        shared = {}

        def slowly(ident, blow):
            """Between the look and the blow the thread has time to disarm, if nothing stops it."""
            if blow is not None:
                looked.set()
                disarmed.wait(0.1)
            return deal(ident, blow)

        def work():
            place = shared["place"] = Place()
            place.strike_thread = slowly
            place.take(self.turn)
            try:
                place.arm(7)
                while not looked.is_set():
                    pass
                place.disarm()
                result.append("owed" if place.owed else "whole")
            except Struck:
                place.disarm()
                result.append("struck")
            try:
                disarmed.set()
                for _ in range(100_000):
                    pass
            except Struck:
                result.append("struck after disarming")

        thread = threading.Thread(target=work)
        with mock.patch.object(place_module, "exposed", lambda ident: True):
            thread.start()
            while not looked.is_set():
                if "place" in shared:
                    shared["place"].strike(7)
            thread.join()
        self.assertIn(result, (["owed"], ["struck"]))

    @harness.strikes
    def test_a_real_blow_lands_in_the_loop_of_the_thread_and_not_after_disarming(self):
        landed, ready, done = [], threading.Event(), threading.Event()
        shared = {}

        def work():
            place = shared["place"] = Place()
            place.take(self.turn)
            try:
                place.arm(7)
                ready.set()
                while True:
                    pass
            except Struck:
                place.disarm()
                landed.append("struck")
            done.wait(30)
            landed.append("unharmed")

        thread = threading.Thread(target=work)
        thread.start()
        ready.wait(30)
        while not shared["place"].strike(7) or not landed:
            pass
        self.assertTrue(shared["place"].strike(7))
        done.set()
        thread.join()
        self.assertEqual(landed, ["struck", "unharmed"])
