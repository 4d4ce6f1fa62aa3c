"""How the state that a process holds of a session comes in and goes out.

The hooks are the user's. Before the first request of a session that is not at
home here, what another process saved is taken from the server and given to
``restore_session``; when the server asks by the query ``ostler.save_session``,
what ``save_session`` returns is its answer, and the session is forgotten. Where
remains of a session are found that is not at home, ``forget_session`` is told
before its state comes in.

A taken state is gone from the server, so it is kept here until the hook has
succeeded with it: after a cancel or an error the next request finds it again,
and a save hands it back as it was.
"""

from .errors import CallError, Cancelled, HookFailed, NotHere, Retryable, StreamClosed, Unfit
from .outgoing import SERVER, Outgoing, result_of
from .residents import GUEST, Residents

SAVE = "ostler.save_session"


class Saving:
    """The query for a save, as a function like any other."""

    name = SAVE
    thread_safe = True

    def __init__(self, moving, session):
        self.is_async = moving.saves_async
        self.call_json = self.call_raw = lambda _body: moving.save(session)


class Moving:
    saves_async = False

    def __init__(self, worker, home):
        self.worker = worker
        self.home = home
        self.save_hook = worker.registry.save_hook
        self.restore_hook = worker.registry.restore_hook
        self.forget_hook = worker.registry.forget_hook

    def note(self, frame):
        """Heed what a query says of its session, before it or a later one begins."""
        session = frame.meta.get("sessionId")
        if session is not None and frame.meta.get("function") != SAVE:
            self.home.note(session, frame.meta.get("continuity"))

    def saving(self, frame):
        return Saving(self, frame.meta.get("sessionId"))

    def save(self, session):
        """What is to be kept of it, or an awaitable for that."""
        if session is None:
            raise Unfit(f"{SAVE} needs the session whose state it is to save")
        state = self.home.kept(session)
        if state is not None:
            return state
        if not self.home.may_hold(session):
            raise NotHere(f"this process holds no state of session {session!r}")
        return self.save_hook(session)

    def steps(self, session):
        """What is to be asked, one after the other, before it is at home."""
        if self.forget_hook is not None and self.home.has_remains(session):
            yield self.clear
        if self.restore_hook is not None:
            yield self.move_in

    def clear(self, session):
        return ask("forget_session", self.forget_hook, session)

    def move_in(self, session):
        """Where handlers run, armed as they are. What is left to await, or None."""
        state = self.fetch(session)
        return None if state is None else self.restore(session, state)

    def fetch(self, session):
        state = self.home.kept(session)
        if state is not None:
            return state
        leave = self.worker.shielded()  # the answer must not be lost on its way
        try:
            state = taken(session, self.worker.calls.make(take()))
            if state is not None:
                self.home.keep(session, state)
        finally:
            if leave is not None:
                leave()
        return state

    def restore(self, session, state):
        return ask("restore_session", self.restore_hook, session, state)


class MainMoving(Moving):
    """One request at a time, in the main thread: nobody has to wait for another."""

    def __init__(self, worker):
        super().__init__(worker, Residents())

    def arriving(self, function, frame, invoke):
        """``invoke``, or what first moves the session in."""
        session = frame.meta.get("sessionId")
        if session is None or function.name == SAVE or is_guest(frame) or self.home.is_home(session):
            return invoke

        def moves_in_first(body):
            for step in self.steps(session):
                left = step(session)
                if left is not None:
                    self.worker.coroutines.run(left)
            self.settle(session)
            return invoke(body)

        return moves_in_first

    def settle(self, session):
        leave = self.worker.shielded()  # half done, a restored state would be forgotten as remains
        try:
            self.home.settle(session)
        finally:
            if leave is not None:
                leave()

    def save(self, session):
        try:
            return super().save(session)
        finally:
            self.home.void(session)


def is_guest(frame):
    return frame.meta.get("continuity") == GUEST


def take():
    return Outgoing(SERVER, "session.take", patient=True)


def taken(session, frame):
    """The saved state, or None."""
    try:
        return result_of(frame)
    except CallError as error:
        if error.code == "not_available":
            return None  # a server that keeps none
        kind = Retryable if error.retryable else RuntimeError
        raise kind(f"the saved state of session {session!r} was not to be had: {error}") from error


def ask(name, hook, *args):
    """Call a hook that a request depends on. What is left to await, or None."""
    try:
        left = hook(*args)
    except (Cancelled, StreamClosed):
        raise
    except BaseException as error:
        raise HookFailed(name) from error
    return rest_of(name, left) if hasattr(left, "__await__") else None


async def rest_of(name, left):
    """The rest of a hook that is a coroutine."""
    from asyncio import CancelledError

    try:
        await left
    except (Cancelled, CancelledError, GeneratorExit, StreamClosed):
        raise
    except BaseException as error:
        raise HookFailed(name) from error
