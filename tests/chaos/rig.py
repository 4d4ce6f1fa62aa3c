"""What the programs of this directory share: their options, a server in a directory of its own, a verdict."""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time

import journal
import store
from client import Refused
from server import Failed, Server, binary

SHOWN_MAX = 20


def options(description, *counts):
    """`counts`: (name, variable, default, help) of whole numbers."""
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("binary", nargs="?", help="the one that was built last if none is named")
    parser.add_argument("--store", choices=store.NAMES, default="sqlite")
    seed = os.environ.get("OSTLER_CHAOS_SEED") or time.time_ns() % 10**9
    parser.add_argument("--seed", type=int, default=int(seed))
    for name, variable, default, about in counts:
        value = int(os.environ.get(variable) or default)
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{about}; else {variable}")
    return parser.parse_args()


def judge(chosen, trial):
    """Runs the trial and exits by what it found wrong: `trial(server, journal)`."""
    program = binary(chosen.binary)
    site = os.path.realpath(tempfile.mkdtemp(prefix="ostler-chaos."))
    with contextlib.ExitStack() as stack:
        stack.callback(leave, site)
        lines = stack.enter_context(store.lines(chosen.store))
        book = journal.Journal(os.path.join(site, "clients"))
        stack.callback(book.close)
        server = Server(program, site, lines)
        stack.callback(server.end)
        try:
            wrong = trial(server, book)
        except (Failed, Refused) as failure:
            wrong = [f"{failure}; the last words of the server:\n{server.last_words()}"]
    for finding in wrong[:SHOWN_MAX]:
        print(f"  {finding}")
    if wrong:
        given = [f"--{name} {value}" for name, value in vars(chosen).items() if name != "binary"]
        print(f"{len(wrong)} findings; again: {sys.argv[0]} {' '.join(given)}")
    sys.exit(1 if wrong else 0)


def leave(site):
    if "OSTLER_CHAOS_KEEP" in os.environ:
        print(f"kept: {site}")
    else:
        shutil.rmtree(site)
