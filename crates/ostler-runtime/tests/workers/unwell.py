"""Says of itself how it is, as signs in the yard tell it to."""

import ctypes
import os

import ostler

from yard import YARD, await_sign, given, note

FIRST = os.environ["OSTLER_GENERATION"] == "1"


@ostler.health
def health():
    note("asked", "how are you")
    if given("lost"):
        raise RuntimeError("the device is lost")
    if given("stuck") and FIRST:
        await_sign("never")
    return not (given("unwell") and FIRST)


@ostler.function
def echo(value=None):
    return value


@ostler.function
def compute():
    """Inside C code that keeps the interpreter to itself, until somebody opens the pipe."""
    note("begun", "compute")
    library = ctypes.PyDLL(None)
    fd = library.open(os.path.join(YARD, "pipe").encode(), os.O_RDONLY)
    library.read(fd, ctypes.create_string_buffer(1), 1)
    return "computed"
