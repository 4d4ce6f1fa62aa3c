"""The data stream as the async profile writes it.

What the loop's thread sends while the loop goes round once is written in one
piece at its end, or as soon as there is much of it; an answer at once if no
other request runs that could add to it. Other threads write at once, after what
is gathered, so that order is kept.
"""

import asyncio

from .outbox import SharedOutbox
from .wire import SMALL


class LoopOutbox(SharedOutbox):
    def __init__(self, loop, alone, *args):
        super().__init__(*args)
        self.loop = loop
        self.alone = alone
        self.gathered = []
        self.size = 0
        self.due = False

    def write(self, frame):
        """Under the lock."""
        if asyncio._get_running_loop() is not self.loop or type(frame) is tuple:
            self.write_now(frame)
            return
        self.gathered.append(frame)
        self.size += len(frame)
        if self.size >= SMALL:
            self.write_gathered()
        elif not self.due:
            self.due = True
            self.loop.call_soon(self.flush)

    def send_last(self, turn, frame):
        with self.lock:
            turn.answered = True
            (self.write_now if self.alone() else self.write)(frame)

    def write_now(self, frame):
        self.write_gathered()
        super().write(frame)

    def write_gathered(self):
        if self.gathered:
            frames, self.gathered, self.size = self.gathered, [], 0
            self.data.sendall(frames[0] if len(frames) == 1 else b"".join(frames))

    def flush(self):
        """At the end of the loop's round."""
        self.due = False
        with self.lock:
            try:
                self.write_gathered()
            except OSError:
                pass  # the stream has ended, which the reader hears too
