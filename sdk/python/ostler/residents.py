"""Which sessions are at home in this process: those whose state the user's code holds.

By an id alone that cannot be known: a session may have been elsewhere since, or
be another one of the same name. So the server says with each query what the
session finds here, its continuity, and that counts for more than what is
remembered.

Bookkeeping only: no streams, no hooks, no locks. ``doors.py`` adds what several
requests at a time need.
"""

from collections import OrderedDict

SEEN_MAX = 65_536
KEPT_MAX = 1_024

ANEW = frozenset(("bound", "restored", "restarted"))  # whatever is here of it is void
GUEST = "elsewhere"  # its home is another process, and stays so


class Residents:
    def __init__(self):
        # In the order of use, the oldest first. True: at home; False: no more
        # than remains are here, which its state must not be mixed with.
        self.seen = OrderedDict()
        # States that were taken from the server, whose restoring has not succeeded.
        self.states = OrderedDict()
        # Since one was forgotten for want of room, absence proves nothing.
        self.forgetful = False

    def note(self, session, continuity):
        """Heed what the server says of it. In the order in which queries came."""
        if continuity in ANEW:
            self.void(session)
        elif continuity == GUEST and session not in self.seen and not self.forgetful:
            self.mark(session, False)

    def void(self, session):
        """It is not at home, whatever it has been."""
        if self.forgetful or session in self.seen or session in self.states:
            self.leave_remains(session)

    def leave_remains(self, session):
        self.states.pop(session, None)
        self.mark(session, False)

    def has_remains(self, session):
        return not self.seen.get(session, True)

    def is_home(self, session):
        """Has its state been settled here? Counts as a use of it."""
        if not self.seen.get(session, False):
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
        self.states.pop(session, None)
        self.mark(session, True)

    def may_hold(self, session):
        """Could the user's code hold a state of it?"""
        return self.seen.get(session, self.forgetful)

    def mark(self, session, home):
        self.seen[session] = home
        self.seen.move_to_end(session)
        if len(self.seen) > SEEN_MAX:
            self.seen.popitem(last=False)
            self.forgetful = True
