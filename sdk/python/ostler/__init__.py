"""Ostler: functions as warm, supervised workers.

    import ostler

    @ostler.function
    def greet(name: str = "world") -> str:
        return f"hello, {name}"
"""

from .errors import CallError, Cancelled, NoSession, Retryable
from .functions import forget_session, function, health, on_start, on_stop
from .functions import restore_session, save_session
from .context import JobPart, Request, acall, call, metric, request, retire, shield
from .jobs import Job, asubmit, asubmit_job, submit, submit_job
from .results import Raw
from .sessions import Session, asession, session

__version__ = "0.1.0"

__all__ = [
    "CallError",
    "Cancelled",
    "Job",
    "JobPart",
    "NoSession",
    "Raw",
    "Request",
    "Retryable",
    "Session",
    "acall",
    "asession",
    "asubmit",
    "asubmit_job",
    "call",
    "forget_session",
    "function",
    "health",
    "metric",
    "on_start",
    "on_stop",
    "request",
    "restore_session",
    "retire",
    "save_session",
    "session",
    "shield",
    "submit",
    "submit_job",
]
