"""Who may go in and out where several requests of a session can come at once.

    enter ── at home: HERE, and leave() when the request is over
         └── not yet: FETCH for one, then opened(); the others WAIT
    visit ── a guest: HERE, and leave(); no state moves for it
    depart ─ nobody is inside: HERE, then departed(); else WAIT

Requests that come while a departure waits go in before it: one that runs may
depend on one that it called, and waiting for both would be for ever. While the
state itself moves, in or out, all wait. Nor does a session that begins anew wait
for those inside that began before, for the same reason.

What the server says of a session is noted by whoever reads the queries, in their
order; threads come to the door in any.

Nobody waits in here. Whoever is told to is woken by a callable of its own, a
thread by an event and a coroutine by its loop, and asks again.
"""

import threading

from .residents import ANEW, Residents

HERE, FETCH, WAIT = "here", "fetch", "wait"


class Door:
    """That of one session, while something goes on there."""

    __slots__ = ("inside", "moving", "void", "waiters")

    def __init__(self):
        self.inside = 0
        self.moving = False
        # Since the move began, the session has begun anew.
        self.void = False
        self.waiters = set()


class Doors:
    def __init__(self):
        self.residents = Residents()
        self.lock = threading.Lock()
        self.by_session = {}

    def note(self, session, continuity):
        with self.lock:
            self.residents.note(session, continuity)
            door = self.by_session.get(session)
            if door is not None and continuity in ANEW:
                door.void = True

    def enter(self, session, wake):
        return self.come(session, wake, guest=False)

    def visit(self, session, wake):
        return self.come(session, wake, guest=True)

    def come(self, session, wake, guest):
        with self.lock:
            door = self.door(session)
            if door.moving:
                door.waiters.add(wake)
                return WAIT
            if guest or self.residents.is_home(session):
                door.inside += 1
                return HERE
            door.moving, door.void = True, False
            return FETCH

    def opened(self, session, settled):
        """The end of a FETCH. If it ``settled``, its request is inside."""
        with self.lock:
            door = self.by_session[session]
            door.moving = False
            if settled:
                door.inside += 1
            if door.void:
                self.residents.leave_remains(session)
            elif settled:
                self.residents.settle(session)
            woken = self.tidy(session, door)
        wake_all(woken)

    def leave(self, session):
        with self.lock:
            door = self.by_session[session]
            door.inside -= 1
            woken = self.tidy(session, door)
        wake_all(woken)

    def depart(self, session, wake):
        with self.lock:
            door = self.door(session)
            if door.moving or door.inside:
                door.waiters.add(wake)
                return WAIT
            door.moving = True
            return HERE

    def departed(self, session):
        with self.lock:
            door = self.by_session[session]
            door.moving = False
            self.residents.void(session)
            woken = self.tidy(session, door)
        wake_all(woken)

    def give_up(self, session, wake):
        """Whoever waited does so no more."""
        with self.lock:
            door = self.by_session.get(session)
            if door is not None:
                door.waiters.discard(wake)

    def door(self, session):
        return self.by_session.setdefault(session, Door())

    def tidy(self, session, door):
        """Those to wake after a change; each of them asks again."""
        woken, door.waiters = door.waiters, set()
        if not door.inside and not door.moving:
            del self.by_session[session]
        return woken

    # What is known of a state on its way, under the same lock.

    def keep(self, session, state):
        with self.lock:
            self.residents.keep(session, state)

    def kept(self, session):
        with self.lock:
            return self.residents.kept(session)

    def may_hold(self, session):
        with self.lock:
            return self.residents.may_hold(session)

    def has_remains(self, session):
        with self.lock:
            return self.residents.has_remains(session)


def wake_all(waiters):
    for wake in waiters:
        wake()
