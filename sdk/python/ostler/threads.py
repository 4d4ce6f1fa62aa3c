"""The thread profile: as many requests at a time as there are threads.

    main           reads the data stream, hands queries over, hears signals
    ostler-control reads the control stream: pings, cancels, the way out
    ostler-1 … n   each takes a query, runs its handler, writes its answer

Queries wait in one queue in the order in which they came.
"""

import os
import queue
import threading
import traceback

from .service import STOP_GRACE
from .side_by_side import SideBySide

STUCK = STOP_GRACE / 2  # how long the way out waits for handlers that do not end


class ThreadWorker(SideBySide):
    profile = "thread"

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.queue = queue.SimpleQueue()
        self.start = self.queue.put

    def withdraws(self):
        return True  # main reads the one stream whatever the handlers do

    def run(self):
        """Serve until told to leave or until the data stream ends."""
        for number in range(1, self.capacity + 1):
            threading.Thread(target=self.work, name=f"ostler-{number}", daemon=True).start()
        while self.read():
            pass
        self.ended()
        self.state.emptied.wait(STUCK if self.state.stopping else None)

    def work(self):
        """One thread. An error of the SDK's own in it is the end of the worker."""
        try:
            while True:
                self.serve(self.queue.get())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
