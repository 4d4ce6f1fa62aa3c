"""A thread in which handlers run, and how a cancel reaches into it.

Only the main thread runs signal handlers, so a cancel of a handler in another
thread is an exception set from outside (PyThreadState_SetAsyncExc). It strikes
at the thread's next bytecode that looks, wherever that is; what makes it safe:

    The thread alone writes ``armed`` (the id whose user code runs, else 0).
    Whoever strikes holds ``lock``, and strikes once per arming, only if armed.
    Disarming stores 0, takes the lock (a blow on its way has then been dealt)
    and lets a dealt blow strike right there, where it is caught.

Threads share locks. A blow between the taking of a lock and the ``try`` that
gives it back would leave every other request waiting for it, so none is dealt
while the thread is inside the standard library, this package or an import: the
striker looks at the thread's frames first, which is one step with the blow as
long as it keeps the GIL. The user's own locks are safe in a ``with`` statement,
whose ends Python 3.10 and newer do not tear; 3.9 does, seen in one of twenty
blows at a loop around a lock. So there, without a GIL, and where ctypes is
missing, a cancel is the flag and the end of the SDK's own waits.
"""

import os
import sys
import sysconfig
import threading

from .cancel import Struck, free_threaded, importing
from .errors import Cancelled

_TWICE = (0, 0)
_STDLIB = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple(base + name + os.sep for base in _STDLIB for name in ("site-packages", "dist-packages"))
_SPARED = (*_STDLIB, os.path.dirname(os.path.abspath(__file__)) + os.sep, "<frozen ")


def _find_striker():
    """Sets an exception (or None: takes it back) in the thread of an ident."""
    if free_threaded() or sys.version_info < (3, 10):
        return None
    try:
        import ctypes
    except ImportError:
        return None
    strike = ctypes.pythonapi.PyThreadState_SetAsyncExc
    strike.argtypes = (ctypes.c_ulong, ctypes.c_void_p)
    strike.restype = ctypes.c_int
    return strike


class Place:
    """The state of one thread towards cancel. Made by the thread itself."""

    __slots__ = ("armed", "depth", "ident", "key", "lock", "loop", "owed", "strike_thread", "struck", "turn")

    def __init__(self):
        self.ident = threading.get_ident()
        self.lock = threading.RLock()
        self.armed = self.key = 0
        self.depth = 0
        self.struck = False
        self.owed = False
        self.turn = None
        self.loop = None
        self.strike_thread = _find_striker()

    # The thread's own side.

    def take(self, turn):
        """It is ``turn``'s from here on; None: nobody's."""
        self.turn = turn
        self.depth = 0

    def arm(self, key):
        """User code comes next. ``key`` is the request's id; negative while it cleans up."""
        self.struck = self.owed = False
        self.key = key
        self.armed = 0 if self.depth else key

    def disarm(self):
        """No user code any more. A blow strikes before this returns, or never."""
        self.armed = 0
        self.settle()

    def settle(self):
        try:
            self.lock.acquire()
            struck = self.struck
            self.lock.release()
            if struck and self.strike_thread is not None:
                for _ in _TWICE:  # a loop's turn is where a blow strikes
                    pass
                self.strike_thread(self.ident, None)
        except Cancelled:
            if self.lock._is_owned():
                self.lock.release()
            self.owed = True

    def mask(self):
        """Enter code that must not be torn."""
        if not self.depth:
            self.disarm()
        self.depth += 1

    def unmask(self):
        """Leave it; raises if a cancel came meanwhile."""
        turn = self.turn
        self.depth -= 1
        if self.depth:
            return
        self.armed = self.key
        # Armed first, looked second: whoever cancels does it the other way round.
        if self.key > 0 and turn.cancelled and (self.owed or not self.struck):
            self.disarm()
            self.owed, self.struck = False, True
            raise Struck(turn.worker.state.stopping or "cancelled")

    # The side of whoever heard the cancel.

    def strike(self, key):
        """False: not now; try again. True: done, or the thread will look by itself."""
        if self.strike_thread is None:
            return True
        with self.lock:
            if self.armed != key or self.struck:
                return True
            if not exposed(self.ident):
                return False
            self.struck = True
            self.strike_thread(self.ident, id(Struck))
            return True


def exposed(ident):
    """Is the thread in code that a blow may tear?"""
    frame = sys._current_frames().get(ident)
    if frame is None or spared(frame.f_code.co_filename):
        return False
    return not importing(frame, None)


def spared(filename):
    return filename.startswith(_SPARED) and not filename.startswith(_INSTALLED)
