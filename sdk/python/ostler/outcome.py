"""How a request that did not complete is told to the server."""

import os
import traceback

from .errors import HookFailed, Malformed, NotHere, Retryable, Unfit
from .jsontext import text

MESSAGE_LIMIT = 8 * 1024
TRACEBACK_LIMIT = 64 * 1024
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def describe(error):
    """The meta of an ``error`` frame; what is None goes without saying."""
    if isinstance(error, Unfit):
        code = "malformed" if isinstance(error, Malformed) else "invalid_arguments"
        return {"code": code, "message": text(error, MESSAGE_LIMIT), "started": False}
    if isinstance(error, NotHere):
        return {"code": "session_not_here", "message": text(error, MESSAGE_LIMIT)}
    if isinstance(error, HookFailed):
        meta, cause = describe(error.__cause__), type(error.__cause__).__name__
        message = text(f"the {error.hook} hook raised {cause}: {meta['message']}", MESSAGE_LIMIT)
        return {**meta, "message": message}
    return {
        "code": "application_error",
        "type": text(type(error).__name__, 256),
        "message": message_of(error),
        "retryable": True if isinstance(error, Retryable) else None,
        "traceback": traceback_of(error),
    }


def function_not_found(name):
    message = f"this worker has no function {text(name, 256)!r}"
    return {"code": "function_not_found", "message": message, "started": False}


def message_of(error):
    try:
        return text(error, MESSAGE_LIMIT)
    except Exception:  # an exception whose own __str__ raises
        return f"{type(error).__name__} without a readable message"


def traceback_of(error):
    """The user's frames, from the first that is not the SDK's; bounded, end kept."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        step = step.tb_next
    try:
        lines = traceback.format_exception(type(error), error, step, limit=-100)
    except Exception:
        return None
    joined = "".join(lines)
    return text(joined[-TRACEBACK_LIMIT:], TRACEBACK_LIMIT)
