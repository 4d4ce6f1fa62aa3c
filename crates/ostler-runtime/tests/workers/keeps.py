"""Functions that remember, in the memory of their process, beside those of functions.py."""

import os

import ostler

import functions  # its functions are served too

_kept = []


@ostler.function
def keep(value):
    """Everything that this process was given to keep, and which process that is."""
    _kept.append(value)
    return {"pid": os.getpid(), "kept": _kept}


@ostler.function
def where():
    return os.getpid()
