"""How sessions move in and out where requests run in threads.

A thread waits at the door of its session (doors.py), woken like every wait of
the SDK by a cancel of its request too. It leaves when its answer is written, so
that whoever waits for that answers after it.
"""

import threading

from .doors import HERE, WAIT, Doors
from .errors import Withdrawn
from .moving import SAVE, Moving, is_guest


class ThreadMoving(Moving):
    def __init__(self, worker):
        super().__init__(worker, Doors())

    def outcome(self, place, turn, function):
        """The terminal frame of a request of a session."""
        session = turn.frame.meta["sessionId"]
        if function.name == SAVE:
            return self.depart(place, turn, session)
        error = self.arrive(place, turn, session)
        if error is not None:
            return self.worker.failed(turn.rid, error)
        turn.afterwards = lambda: self.home.leave(session)
        return self.worker.admitted(place, turn, function)

    def arrive(self, place, turn, session):
        """Be inside, with the session at home or a guest; or the error that prevents it."""
        said = self.at_the_door(turn, self.way_in(turn), session)
        if said is HERE:
            return None
        if said is None:
            return Withdrawn()
        error = self.moved_in(place, turn, session)
        self.home.opened(session, settled=error is None)
        return error

    def way_in(self, turn):
        return self.home.visit if is_guest(turn.frame) else self.home.enter

    def moved_in(self, place, turn, session):
        """The error that kept its state outside, or None."""
        for step in self.steps(session):
            _, error = self.worker.asked_in_place(place, turn, step, session)
            if error is not None:
                return error
        return None

    def depart(self, place, turn, session):
        if self.at_the_door(turn, self.home.depart, session) is None:
            return self.worker.failed(turn.rid, Withdrawn())
        turn.afterwards = lambda: self.home.departed(session)
        state, error = self.worker.asked_in_place(place, turn, self.save, session)
        if error is not None:
            return self.worker.failed(turn.rid, error)
        return self.worker.completed(turn.rid, state)

    def at_the_door(self, turn, ask, session):
        """What ``ask`` says at last; None: the request was cancelled first."""
        woken = threading.Event()
        turn.waiters.add(woken.set)
        try:
            while not turn.cancelled:
                said = ask(session, woken.set)
                if said is not WAIT:
                    return said
                woken.wait()
                woken.clear()
            self.home.give_up(session, woken.set)
            return None
        finally:
            turn.waiters.discard(woken.set)
