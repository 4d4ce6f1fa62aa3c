"""Functions that end their process, each in its own way, after a last word."""

import ctypes
import os
import resource
import signal
import sys

import ostler

from yard import await_sign, note

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def last_word():
    print("line one", file=sys.stderr)
    print("the last word", file=sys.stderr, flush=True)


@ostler.function
def segfault(payload=None):
    last_word()
    ctypes.string_at(0)


@ostler.function
def abort():
    last_word()
    os.abort()


@ostler.function
def kill():
    last_word()
    os.kill(os.getpid(), signal.SIGKILL)


@ostler.function
def leave(code: int):
    last_word()
    os._exit(code)


@ostler.function
def echo(value=None):
    return value


@ostler.function
def hold(name: str):
    note("begun", name)
    await_sign("go")
    return name


@ostler.function
def taint():
    """Doubts itself and answers all the same."""
    ostler.retire("the device fell off the bus", tainted=True)
    return os.getpid()


@ostler.function
def retire():
    ostler.retire("enough for one life")
    return os.getpid()
