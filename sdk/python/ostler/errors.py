"""Exceptions with a meaning on the wire.

Separate so that every other module may import it without a cycle; it knows
nothing of streams or requests.
"""


class Retryable(Exception):
    """Raise it to say: this failed, but trying again may work."""


class Cancelled(BaseException):
    """The request was cancelled, or the worker is being stopped.

    It derives from BaseException so that ``except Exception`` lets it pass.
    """

    def __init__(self, reason="cancelled"):
        super().__init__(reason)
        self.reason = reason


class CallError(Exception):
    """A nested call failed; ``problem`` is what the server said about it."""

    def __init__(self, problem):
        self.problem = problem
        self.code = problem.get("code", "application_error")
        self.retryable = bool(problem.get("retryable", False))
        super().__init__(problem.get("message") or problem.get("detail") or self.code)


class NoSession(RuntimeError):
    """The request has no session whose state could be read or written."""


class HookFailed(Exception):
    """A hook raised where a request depends on it; the cause is what it raised."""

    def __init__(self, hook):
        super().__init__(hook)
        self.hook = hook


class NotHere(Exception):
    """This process holds no state of the session that it was asked for."""


class Unfit(Exception):
    """The arguments do not fit the function; it was not started."""


class Malformed(Unfit):
    """The body is not JSON; there are no arguments to judge."""


class Withdrawn(BaseException):
    """The request was cancelled before its function began."""


class StreamClosed(Exception):
    """The server closed a stream."""


class StreamEnded(StreamClosed):
    """It did so between two frames, as a server that leaves does."""


class Unencodable(Exception):
    """A value that JSON cannot carry; ``value`` is the whole of it."""

    def __init__(self, value, cause):
        super().__init__(f"{type(value).__name__} cannot be sent as JSON: {cause}")
        self.value = value
