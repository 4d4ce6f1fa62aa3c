"""Functions for sessions that stay for a while, beside those of forgets.py."""

import os

import ostler

import forgets  # its functions are served too

from yard import await_sign, note


@ostler.function(thread_safe=True)
def where():
    return os.getpid()


@ostler.function(thread_safe=True)
def stay(sign: str = "go"):
    """Leaves its session and its process, then waits for a sign."""
    note("begun", f"{ostler.request().session} {os.getpid()}")
    await_sign(sign)
    return os.getpid()
