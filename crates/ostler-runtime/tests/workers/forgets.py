"""Values of sessions, in the memory of the process and nowhere else."""

import os

import ostler

values = {}


@ostler.function
def remember(value):
    values[ostler.request().session] = value
    return recall()


@ostler.function
def recall():
    """The session's value, or null, and which process says so."""
    return {"pid": os.getpid(), "value": values.get(ostler.request().session)}
