"""Who answers a request that was cancelled before it began, step by step."""

import unittest

import harness  # noqa: F401  puts the package on the path
from ostler.cancel import CONTROL, MAIN, Interrupts


class Interleaved(dict):
    """Lets the other side run just before a look into the claims."""

    def __init__(self, meanwhile):
        super().__init__()
        self.meanwhile = meanwhile

    def __contains__(self, rid):
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return super().__contains__(rid)


def begin(state, rid):
    """Main's steps for one request. True: main answers that it was withdrawn."""
    state.publish(rid)
    return bool(state.cancelled) and state.blocked(rid) and state.claim(rid, MAIN)


def would_begin(state, rid):
    state.publish(rid)
    return not (state.cancelled and state.blocked(rid))


class Claims(unittest.TestCase):
    def test_the_control_side_answers_what_main_has_not_reached(self):
        state = Interrupts()
        self.assertTrue(state.on_cancel(3))
        self.assertFalse(state.on_cancel(3))
        self.assertFalse(begin(state, 3))
        self.assertEqual(state.claims[3], CONTROL)

    def test_main_answers_what_it_finds_cancelled_first(self):
        state = Interrupts()
        answered_by_main = []
        state.claims = Interleaved(lambda: answered_by_main.append(begin(state, 3)))
        self.assertFalse(state.on_cancel(3))
        self.assertEqual(answered_by_main, [True])

    def test_the_claim_outlives_requests_that_main_begins_meanwhile(self):
        state = Interrupts()
        answered_by_main = []
        state.claims = Interleaved(lambda: answered_by_main.extend(begin(state, rid) for rid in (3, 4, 5)))
        self.assertFalse(state.on_cancel(3))
        self.assertEqual(answered_by_main, [True, False, False])

    def test_a_withdrawal_is_answered_by_whoever_comes_first(self):
        state = Interrupts()
        self.assertTrue(state.on_withdraw(3))
        self.assertFalse(state.on_withdraw(3))
        self.assertFalse(state.on_cancel(3))
        self.assertFalse(begin(state, 3))
        answered_by_main = []
        state.claims = Interleaved(lambda: answered_by_main.append(begin(state, 4)))
        self.assertFalse(state.on_withdraw(4))
        self.assertEqual(answered_by_main, [True])

    def test_a_withdrawal_of_what_has_begun_changes_nothing(self):
        state = Interrupts()
        self.assertTrue(would_begin(state, 3))
        state.armed = 3
        self.assertFalse(state.on_withdraw(3))
        self.assertFalse(state.is_cancelled(3))
        state.on_signal(None, None)  # nothing to raise
        self.assertFalse(state.on_cancel(3))  # a cancel may still follow
        self.assertTrue(state.is_cancelled(3))

    def test_what_is_finished_is_forgotten(self):
        state = Interrupts()
        for rid in range(1, 1000):
            state.on_cancel(rid + 1)
            begin(state, rid + 1)
        begin(state, 2000)
        state.on_cancel(1999)
        self.assertLessEqual((len(state.cancelled), len(state.claims)), (1, 1))
