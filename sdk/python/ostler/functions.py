"""What a worker file declares: its functions and hooks.

A registry per process, filled by decorators while the file is imported. It
knows signatures, not streams.
"""

import inspect

from .arguments import Parameters
from .jsontext import text

RESERVED = "ostler."  # how the names of queries begin that are for the SDK itself


class Function:
    """One served function, with its callers made once."""

    def __init__(self, fn, name=None, thread_safe=None):
        self.fn = fn
        self.name = name or fn.__name__
        self.thread_safe = None if thread_safe is None else bool(thread_safe)
        self.doc = inspect.getdoc(fn)
        self.is_async = inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn)
        self.streaming = inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn)
        self.parameters = Parameters(fn)
        self.call_json = self.parameters.json_caller()
        self.call_raw = self.parameters.raw_caller()

    @property
    def plain(self):
        """Runs to its end inside one ordinary call."""
        return not (self.is_async or self.streaming)

    def describe(self):
        """Its entry in ``ready``."""
        entry = {
            "name": self.name,
            "streaming": self.streaming,
            "parameters": self.parameters.schema(),
        }
        if self.doc:
            entry["doc"] = text(self.doc, 4096)
        if self.thread_safe is not None:
            entry["threadSafe"] = self.thread_safe
        return entry


class Registry:
    def __init__(self):
        self.functions = []
        self.by_name = {}
        self.start_hooks = []
        self.stop_hooks = []
        self.health_hook = None
        self.save_hook = None
        self.restore_hook = None
        self.forget_hook = None

    @property
    def saves_sessions(self):
        return self.save_hook is not None and self.restore_hook is not None

    @property
    def heeds_sessions(self):
        """Does it matter to the file which sessions are at home?"""
        return self.saves_sessions or self.forget_hook is not None

    def objection(self):
        """Why a worker must not start with these hooks, or None."""
        hooks = {"save_session": self.save_hook, "restore_session": self.restore_hook}
        missing = [name for name, hook in hooks.items() if hook is None]
        if len(missing) != 1:
            return None
        (present,) = hooks.keys() - set(missing)
        return (
            f"there is a hook @ostler.{present} and no @ostler.{missing[0]}; "
            "a session moves from one process to another by both: add the other, or remove this one"
        )

    def add(self, function):
        if function.name.startswith(RESERVED):
            raise ValueError(
                f"the name {function.name!r} begins with {RESERVED!r}, which is kept for the "
                "server; give it another with @ostler.function(name=...)"
            )
        if function.name in self.by_name:
            raise ValueError(
                f"two functions are named {function.name!r}; give one of them another "
                "name with @ostler.function(name=...)"
            )
        self.by_name[function.name] = len(self.functions)
        self.functions.append(function)


registry = Registry()


def function(fn=None, *, name=None, thread_safe=None):
    """Serve a function. Use it bare or with options.

    ``thread_safe`` says whether it may run beside itself in the thread profile.
    """
    if fn is None:
        return lambda real: function(real, name=name, thread_safe=thread_safe)
    registry.add(Function(fn, name, thread_safe))
    return fn


def on_start(fn):
    """Run ``fn()`` once before the worker says that it is ready."""
    registry.start_hooks.append(fn)
    return fn


def on_stop(fn):
    """Run ``fn()`` before the worker leaves."""
    registry.stop_hooks.append(fn)
    return fn


def health(fn):
    """Ask ``fn()`` whether the worker is well: False or an exception says no."""
    registry.health_hook = fn
    return fn


def save_session(fn):
    """Ask ``fn(session_id)`` for what this process holds of a session that moves elsewhere.

    It returns a JSON value or bytes; None says that there is nothing to keep.
    No request of the session runs meanwhile. ``restore_session`` is needed too.
    """
    registry.save_hook = fn
    return fn


def restore_session(fn):
    """Give ``fn(session_id, state)`` what ``save_session`` returned in another process.

    It runs before the first request of the session here. Where nothing was
    saved it is not asked.
    """
    registry.restore_hook = fn
    return fn


def forget_session(fn):
    """Tell ``fn(session_id)`` to drop what this process still holds of a session.

    It runs before a request that finds the session beginning anew here, where
    it had been before, and before ``restore_session``. It may be told twice.
    """
    registry.forget_hook = fn
    return fn
