"""Ostler: functions as warm, supervised workers.

    import ostler

    @ostler.function
    def greet(name: str = "world") -> str:
        return f"hello, {name}"
"""

from .errors import CallError, Cancelled, Retryable
from .functions import function, health, on_start, on_stop
from .context import Request, acall, call, metric, request, retire, shield
from .results import Raw

__version__ = "0.1.0"

__all__ = [
    "CallError",
    "Cancelled",
    "Raw",
    "Request",
    "Retryable",
    "acall",
    "call",
    "function",
    "health",
    "metric",
    "on_start",
    "on_stop",
    "request",
    "retire",
    "shield",
]
