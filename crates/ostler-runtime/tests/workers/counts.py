"""Counts its calls, each process for itself."""

import itertools
import os

import ostler

_numbers = itertools.count(1)


@ostler.function
def count():
    """How many calls this process has had with this one, and which process that is."""
    return {"pid": os.getpid(), "count": next(_numbers)}
