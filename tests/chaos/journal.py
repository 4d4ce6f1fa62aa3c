"""What happened, as those saw it who are not the server: files of JSON lines.

Clients append to one and workers to another, each line in one write, so that it survives the end of
whoever wrote it. Nothing here knows what the lines mean.
"""

import json
import os
import time


class Journal:
    def __init__(self, path):
        self.path = path
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def note(self, what, **facts):
        line = json.dumps({"what": what, "at": time.time(), **facts})
        # A writer that is killed in the middle of its line must not spoil the next one's.
        os.write(self.file, b"\n" + line.encode() + b"\n")

    def size(self):
        return os.fstat(self.file).st_size

    def close(self):
        os.close(self.file)


def read(*paths):
    """The lines that are whole; those of one file in the order in which they were written."""
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found += [line for line in map(parsed, file) if line is not None]
    return found


def parsed(line):
    try:
        return json.loads(line)
    except ValueError:
        return None
