"""Who may interrupt the handler, and when.

The main thread alone writes ``armed`` (the id whose user code runs, 0
otherwise) and ``masked`` (depth of regions that must not be torn). Whoever
reads the control stream puts ids into ``cancelled`` and then signals main; it
never judges whether main is busy, because that judgement is what races. The
signal handler runs in the main thread between two bytecodes, so its look at
``armed`` and its raise are one step as far as main can tell:

    raise only if armed is set, is in ``cancelled`` (or the worker stops), and
    nothing is masked; clear armed first, so that it strikes once.

Who answers a request that was cancelled before it began is settled by
``claims.setdefault``: main publishes ``current`` before it looks into
``cancelled``, the control side adds the id before it looks at ``current``, so
at least one of them sees the other. A withdrawal (give it back unless it has
begun) stands in the same set as the negative of its id: main's one look finds
it, the rule of the signal handler does not.

This module knows no sockets; the worker gives it the callables it needs.
"""

import signal
import sys
import threading
from time import monotonic

from .errors import Cancelled

SIGNAL = getattr(signal, "SIGURG", None)
MAIN, CONTROL = "main", "control"

# Beyond every wire id: its presence makes main look before each request.
STOP_MARK = 1 << 64

IMPORT_RETRY = 0.005
IMPORT_PATIENCE = 4.0  # less than the usual grace of a cancel
LOST_RETRY = 0.002
NUDGE = 0.01
NUDGE_MAX = 1.0

_IMPORTING = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


def free_threaded():
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is not None and not enabled()


class Struck(Cancelled):
    """A Cancelled that came out of the signal handler, not out of the user's code."""


class _NoLock:
    """With a GIL, program order is order enough."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Interrupts:
    """The state of one worker's main thread towards cancel and stop."""

    __slots__ = (
        "armed",
        "cancelled",
        "claims",
        "closing",
        "current",
        "deferred",
        "drain",
        "floor",
        "later",
        "main",
        "masked",
        "order",
        "overdue",
        "seen",
        "stopping",
        "task_cancel",
        "warned",
    )

    def __init__(self):
        self.armed = 0
        self.masked = 0
        self.current = 0
        self.cancelled = set()
        self.claims = {}
        self.stopping = None
        self.closing = 0
        self.overdue = 0
        self.deferred = (0, 0.0)
        self.seen = 0
        self.task_cancel = None
        self.warned = False
        self.main = threading.get_ident()
        self.drain = lambda: None
        self.later = lambda delay, action: None
        self.floor = None
        self.order = threading.RLock() if free_threaded() else _NoLock()

    def on_main_thread(self):
        return threading.get_ident() == self.main

    # The main thread's side.

    def publish(self, rid):
        """From here on ``rid`` is main's; later cancels of it interrupt main."""
        with self.order:
            self.current = rid

    def blocked(self, rid):
        """May ``rid`` not begin? Called while armed and ``cancelled`` is not empty."""
        # From a copy: the control thread adds to the live set meanwhile.
        for old in tuple(self.cancelled):
            if abs(old) < rid:
                self.cancelled.discard(old)
        return self.sought(rid) or self.stopping is not None

    def sought(self, rid):
        """Has the server asked for ``rid`` back, in either way?"""
        return rid in self.cancelled or -rid in self.cancelled

    def is_cancelled(self, rid):
        return rid in self.cancelled or self.stopping is not None

    def claim(self, rid, who):
        """True for exactly one caller per request: the one who answers it."""
        return self.claims.setdefault(rid, who) is who

    def check(self):
        """Raise now if a cancel came while masked."""
        rid = self.armed
        if rid and not self.masked and self.is_cancelled(abs(rid)):
            self.strike()

    def strike(self):
        self.armed = 0
        if self.task_cancel is not None:
            self.task_cancel()
            return
        raise Struck(self.stopping or "cancelled")

    def begin_stop(self, reason):
        """From now on main looks before each request."""
        self.stopping = reason
        self.cancelled.add(STOP_MARK)

    def disown(self):
        """In a forked child: nothing here concerns it any more."""
        self.armed = self.masked = self.current = self.closing = 0
        self.cancelled.clear()
        self.claims.clear()
        self.stopping = self.task_cancel = None
        self.drain = lambda: None
        self.later = lambda delay, action: None

    # The control side, in whichever thread reads control.

    def on_cancel(self, rid):
        """Obey a cancel. True: it had not begun and the caller must answer it."""
        current = self.note(rid)
        if rid > current:
            return self.claim_unbegun(rid)
        if rid < current:
            self.cancelled.discard(rid)
        else:
            self.poke()
        return False

    def on_withdraw(self, rid):
        """As ``on_cancel``, but one that has begun goes on."""
        current = self.note(-rid)
        if rid > current:
            return self.claim_unbegun(rid)
        self.cancelled.discard(-rid)
        return False

    def note(self, mark):
        """Make ``mark`` visible to main, and only then look how far main is.

        Old claims are dropped here and not by main: main could drop one that
        this side has yet to look at, and both would answer.
        """
        for old in tuple(self.claims):
            if old < self.current:
                self.claims.pop(old, None)
        with self.order:
            self.cancelled.add(mark)
            return self.current

    def claim_unbegun(self, rid):
        return rid not in self.claims and self.claim(rid, CONTROL)

    def poke(self):
        """Make the main thread run the signal handler."""
        if SIGNAL is not None and not self.on_main_thread():
            self.warn_if_replaced()
            self.nudge(self.seen, NUDGE)

    def warn_if_replaced(self):
        if not self.warned and signal.getsignal(SIGNAL) != self.on_signal:
            self.warned = True
            print(
                f"ostler: the program has taken {SIGNAL.name} for itself; "
                "a running request now hears a cancel only by asking ostler.request().cancelled",
                file=sys.stderr,
            )

    def nudge(self, seen, delay):
        """Signal main, and again until its handler has run.

        A signal that comes between main's last look and the system call that
        it is about to block in is not noticed before that call returns.
        """
        signal.pthread_kill(self.main, SIGNAL)

        def again():
            if self.seen == seen and (self.armed or self.closing):
                self.nudge(seen, min(2 * delay, NUDGE_MAX))

        self.later(delay, again)

    # The signal's side, always in the main thread.

    def on_signal(self, _signum, frame):
        self.seen += 1
        self.masked += 1
        try:
            self.drain()
        finally:
            self.masked -= 1
        self.judge(frame)

    def judge(self, frame):
        if self.masked:
            return
        if self.closing and self.overdue == self.closing:
            self.closing = 0
            raise Cancelled("the generator took too long to close")
        rid = self.armed
        if not rid or not self.is_cancelled(abs(rid)):
            return
        if rid < 0 and inside(frame, _LOST_CODE, self.floor):
            self.later(LOST_RETRY, self.poke)
        elif importing(frame, self.floor) and self.may_defer(abs(rid)):
            # A module torn in its import can stay unusable for good.
            self.later(IMPORT_RETRY, self.poke)
        else:
            self.strike()

    def may_defer(self, rid):
        """True until an import has kept the cancel of ``rid`` waiting too long."""
        if self.deferred[0] != rid:
            self.deferred = (rid, monotonic())
        return monotonic() - self.deferred[1] < IMPORT_PATIENCE

    def install(self):
        if SIGNAL is not None:
            signal.signal(SIGNAL, self.on_signal)
        sys.unraisablehook = _unraisable_hook(self, sys.unraisablehook)


def importing(frame, floor):
    """Is an import under way between ``frame`` and the worker's loop?"""
    while frame is not None and frame.f_code is not floor:
        if frame.f_code.co_filename in _IMPORTING:
            return True
        frame = frame.f_back
    return False


def inside(frame, code, floor):
    while frame is not None and frame.f_code is not floor:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


class _LostCancel:
    """Python swallows what is raised in ``__del__`` and weakref callbacks."""

    def __init__(self, state, previous):
        self.state = state
        self.previous = previous

    def __call__(self, unraisable):
        state = self.state
        if not isinstance(unraisable.exc_value, Struck):
            return self.previous(unraisable)
        if state.on_main_thread():
            state.later(LOST_RETRY, state.poke)
            # Negative: armed again, but the cancel was lost once. Last, so
            # that it does not strike in here and get lost again.
            state.armed = -state.current


_LOST_CODE = _LostCancel.__call__.__code__


def _unraisable_hook(state, previous):
    return _LostCancel(state, previous)
