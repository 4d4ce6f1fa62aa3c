"""Requests side by side: who waits, who runs, who is over.

    (its cancel came first) ── given back
    waiting ──begin──▶ running ──finish──▶ over
       └── cancel, withdraw: over, and given back

One lock orders the reader (which admits), the handlers (which begin and
finish) and whoever hears cancels, so that exactly one of them answers. It
guards leaf data only: nothing is written or called while it is held. The
process profile has no use for this, see cancel.py.
"""

import threading
from contextvars import ContextVar

from . import wire
from .context import Request

WAITING, RUNNING, OVER = "waiting", "running", "over"

DEFAULT_CHUNKS = 256
DEFAULT_BYTES = 1024 * 1024

#: The turn that the code of this context works for.
current = ContextVar("ostler_turn")


class Turn:
    """One request from its query to its terminal frame."""

    __slots__ = (
        "afterwards",
        "answered",
        "cancel_task",
        "cancelled",
        "chunks",
        "frame",
        "place",
        "received",
        "rid",
        "room",
        "shields",
        "stage",
        "struck",
        "task",
        "told",
        "waiters",
        "worker",
    )

    def __init__(self, worker, frame, received):
        self.worker = worker
        self.frame = frame
        self.rid = frame.id
        self.received = received
        self.stage = WAITING
        self.cancelled = False
        self.answered = False
        # Called when its terminal frame has been written, or None.
        self.afterwards = None
        self.told = None
        # Where it runs: a thread's place, or a task.
        self.place = self.task = None
        self.cancel_task = None
        # Of its task: regions that a cancel waits for, and whether it was cancelled.
        self.shields = 0
        self.struck = False
        # Called when something changed that its SDK waits depend on.
        self.waiters = set()
        credit = frame.meta.get("credit") or {}
        self.chunks = credit.get("chunks", DEFAULT_CHUNKS)
        self.room = credit.get("bytes", DEFAULT_BYTES)

    def request(self):
        """What the handler sees of it."""
        if self.told is None:
            self.told = TurnRequest(self)
        return self.told

    def may_send(self):
        return self.chunks > 0 and self.room > 0

    def wake(self):
        for waiter in tuple(self.waiters):
            waiter()


class TurnRequest(Request):
    """A request of a worker that has several."""

    def __init__(self, turn):
        frame = turn.frame
        super().__init__(turn.worker, turn.rid, frame.count, frame.meta, turn.received)
        self.turn = turn

    @property
    def cancelled(self):
        """Has somebody asked for this request to end? Stays so when it is over."""
        return self.turn.cancelled

    def _say(self, kind, meta=None, body=b""):
        self._worker.emit(kind, self.wire_id, meta=meta, body=body, turn=self.turn)


class Turns:
    """All turns of one worker that are not over."""

    def __init__(self):
        self.lock = threading.Lock()
        self.by_id = {}
        self.newest = 0
        self.early = set()
        self.stopping = None
        self.draining = False
        self.served = 0
        self.emptied = threading.Event()
        # Set by the worker: stop the code of a running turn; nothing is left to do.
        self.interrupt = lambda turn: None
        self.on_empty = lambda: None

    # The reader's side.

    def admit(self, turn):
        """False: it is not to run. What its cancel overtook has been answered already."""
        with self.lock:
            rid = self.newest = turn.rid
            if self.early:
                known = rid in self.early
                self.early = {later for later in self.early if later > rid}
                if known:
                    turn.answered = True
                    return False
            if self.draining or self.stopping is not None:
                return False
            self.by_id[rid] = turn
            return True

    def grant(self, frame):
        """More credit for one of them; for one that is over it means nothing."""
        with self.lock:
            turn = self.by_id.get(frame.id)
            if turn is None:
                return
            turn.chunks += frame.chunks
            turn.room += frame.count
        turn.wake()

    # The handlers' side.

    def begin(self, turn):
        """False: it was given back meanwhile, or the worker stops."""
        with self.lock:
            if turn.stage is not WAITING or self.stopping is not None:
                return False
            turn.stage = RUNNING
            return True

    def spend(self, turn, size):
        with self.lock:
            turn.chunks -= 1
            turn.room -= size

    def finish(self, turn):
        """After its terminal frame was written."""
        with self.lock:
            self.served += 1
            empty = self.remove(turn)
        if empty:
            self.say_empty()

    def remove(self, turn):
        turn.stage = OVER
        self.by_id.pop(turn.rid, None)
        return self.draining and not self.by_id

    # The side that hears cancels, in whichever thread reads them.

    def on_cancel(self, rid):
        """Obey a cancel. True: it had not begun and the caller must answer it."""
        return self.on_withdraw(rid, cancel=True)

    def on_withdraw(self, rid, cancel=False):
        """As ``on_cancel``, but one that has begun goes on."""
        with self.lock:
            turn = self.by_id.get(rid)
            if turn is None:
                return self.keep(rid)
            if turn.stage is RUNNING:
                if not cancel or turn.cancelled:
                    return False
                turn.cancelled = True
                empty = False
            else:
                empty = self.remove(turn)
        if turn.cancelled:
            turn.wake()
            self.interrupt(turn)
            return False
        if empty:
            self.say_empty()
        return True

    def keep(self, rid):
        """It overtook its query, or comes after the end, or once more."""
        if rid <= self.newest or rid in self.early:
            return False
        self.early.add(rid)
        return True

    # Leaving.

    def drain(self):
        """Admit nothing more; say when all are over."""
        with self.lock:
            self.draining = True
            empty = not self.by_id
        if empty:
            self.say_empty()

    def say_empty(self):
        self.emptied.set()
        self.on_empty()

    def begin_stop(self, reason):
        with self.lock:
            self.stopping = reason

    def poke(self):
        """Interrupt everything that runs."""
        with self.lock:
            running = [t for t in self.by_id.values() if t.stage is RUNNING and not t.cancelled]
            for turn in running:
                turn.cancelled = True
        for turn in running:
            turn.wake()
            self.interrupt(turn)

    def take_unbegun(self):
        """Those that will not begin any more, for the caller to give back."""
        with self.lock:
            waiting = [t for t in self.by_id.values() if t.stage is WAITING]
            for turn in waiting:
                self.remove(turn)
        return waiting

    def disown(self):
        """In a forked child: nothing here concerns it any more."""
        self.__init__()
