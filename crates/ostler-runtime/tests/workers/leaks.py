"""Functions that hold memory and do not let go of it, here or in processes of their own."""

import os
import subprocess
import sys

import ostler

_kept = []

# Says when it holds what it was told to, and keeps it until it is killed.
_HOLDER = """
import signal, sys
kept = b"x" * (int(sys.argv[1]) << 20)
print(flush=True)
signal.pause()
"""


@ostler.function
def grow(mib: int):
    """Keeps that much. Written to, because memory that nobody touched is not resident."""
    _kept.append(b"x" * (mib << 20))
    return size()


@ostler.function
def fork_and_grow(mib: int):
    """A child that keeps that much; its pid."""
    child = subprocess.Popen([sys.executable, "-c", _HOLDER, str(mib)], stdout=subprocess.PIPE)
    child.stdout.readline()
    _kept.append(child)
    return child.pid


@ostler.function
def orphan_and_grow(mib: int):
    """The same, in a session of its own, its parent gone."""
    launch = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], start_new_session=True).pid)"
    command = [sys.executable, "-c", launch, sys.executable, "-c", _HOLDER, str(mib)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)
    # The launcher's line has the pid; the holder's is empty.
    told = parent.stdout.readline() + parent.stdout.readline()
    parent.wait()
    return int(told)


@ostler.function
def size():
    """Resident bytes of this process alone."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@ostler.function
def pid():
    return os.getpid()
