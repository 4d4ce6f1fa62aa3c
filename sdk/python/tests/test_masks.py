"""A cancel that comes while something must not be torn is raised right after it."""

import unittest

import harness  # noqa: F401  puts the package on the path
from ostler import context, process, wire
from ostler.calls import MainCalls
from ostler.cancel import Interrupts
from ostler.errors import Cancelled
from ostler.outbox import Outbox
from ostler.outgoing import Outgoing


class Stream:
    """Stands for a socket; what it does while it sends is up to the test."""

    stream = True

    def __init__(self, sending=lambda: None):
        self.sending = sending

    def sendall(self, frame):
        self.sending()


class Worker:
    """As much of a worker as a call needs."""

    one_stream = False
    encode = staticmethod(wire.encode)
    shielded = process.Worker.shielded
    inbox = type("Inbox", (), {"enter": staticmethod(lambda: None)})

    def __init__(self, state, taking):
        self.state = state
        self.outbox = outbox(state)
        self.taking = taking

    def current_request(self):
        return None

    def taken(self, _kind, id):
        self.taking()
        return [wire.Frame(wire.CALL_RESULT, id, body=b"1")]


def outbox(state, sending=lambda: None):
    out = Outbox(Stream(sending), Stream(), state, wire.encode, True, wire.MAX_FRAME)
    out.opened = True
    return out


class Masks(unittest.TestCase):
    def setUp(self):
        self.state = Interrupts()
        self.state.armed = self.state.current = 7

    def cancel(self):
        """What happens in main when the server cancels request 7 just now."""
        self.state.drain = lambda: self.state.on_cancel(7)
        self.state.on_signal(None, None)

    def test_an_unmasked_handler_is_struck_once(self):
        with self.assertRaises(Cancelled):
            self.cancel()
        self.cancel()

    def test_sending_is_finished_first(self):
        steps = []

        def sending():
            self.cancel()
            steps.append("sent")

        with self.assertRaises(Cancelled):
            outbox(self.state, sending).emit(wire.LOG, 7, meta={"message": "x"})
        self.assertEqual((steps, self.state.masked), (["sent"], 0))

    def test_the_result_of_a_call_is_taken_first(self):
        steps = []

        def taking():
            self.cancel()
            steps.append("taken")

        with self.assertRaises(Cancelled):
            MainCalls(Worker(self.state, taking)).make(Outgoing("other", "f"))
        self.assertEqual((steps, self.state.masked), (["taken"], 0))

    def test_a_shield_is_left_first(self):
        context.attach(Worker(self.state, None))
        self.addCleanup(context.attach, None)
        steps = []
        with self.assertRaises(Cancelled):
            with context.shield():
                with context.shield():
                    self.cancel()
                    steps.append("inner")
                steps.append("outer")
        self.assertEqual((steps, self.state.masked), (["inner", "outer"], 0))

    def test_nothing_is_raised_for_another_request_or_when_none_runs(self):
        self.state.armed = self.state.current = 8
        self.cancel()
        self.state.armed = 0
        self.state.cancelled.add(8)
        self.state.on_signal(None, None)
