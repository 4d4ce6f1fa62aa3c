"""Takes memory while it works, and is not done before a sign is given."""

import os

import ostler

from yard import await_sign, note


@ostler.function
def swell(mib: int):
    note("begun", str(os.getpid()))
    kept = b"x" * (mib << 20)
    await_sign("go")
    return len(kept)


@ostler.function
def where():
    return os.getpid()
