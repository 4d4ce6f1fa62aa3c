"""Which sessions are at home in this process: those whose state the user's code holds.

Bookkeeping only: no streams, no hooks, no locks. ``doors.py`` adds what several
requests at a time need.
"""

from collections import OrderedDict

SEEN_MAX = 65_536
KEPT_MAX = 1_024


class Residents:
    def __init__(self):
        # In the order of use, the oldest first.
        self.seen = OrderedDict()
        # States that were taken from the server, whose restoring has not succeeded.
        self.states = OrderedDict()
        # Since one was forgotten for want of room, absence proves nothing.
        self.forgetful = False

    def is_home(self, session):
        """Has its state been settled here? Counts as a use of it."""
        if session not in self.seen:
            return False
        self.seen.move_to_end(session)
        return True

    def keep(self, session, state):
        """Remember a taken state: the server has it no more."""
        self.states[session] = state
        if len(self.states) > KEPT_MAX:
            self.states.popitem(last=False)

    def kept(self, session):
        return self.states.get(session)

    def settle(self, session):
        """From here on its state is the user's code's."""
        self.seen[session] = True
        self.states.pop(session, None)
        if len(self.seen) > SEEN_MAX:
            self.seen.popitem(last=False)
            self.forgetful = True

    def may_hold(self, session):
        """Could the user's code hold a state of it?"""
        return session in self.seen or self.forgetful

    def forget(self, session):
        self.seen.pop(session, None)
        self.states.pop(session, None)
