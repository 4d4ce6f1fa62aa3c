"""The answer to a health check, and where the user's hook is asked.

A check on the control stream is asked about on a thread of its own: a hook
that hangs must not keep cancels and pings from being heard. The server then
waits for an answer that does not come, which is the answer.
"""

import threading
from time import monotonic

from . import wire
from .jsontext import text


class Checkup:
    def __init__(self, worker):
        self.worker = worker
        self.asking = threading.Lock()

    def check(self, send):
        """Answer by ``send``, without keeping the calling thread."""
        if self.worker.registry.health_hook is None:
            send(self.report(None))
        elif self.asking.acquire(False):
            threading.Thread(target=self.ask, args=(send,), name="ostler-health", daemon=True).start()

    def ask(self, send):
        try:
            frame = self.report(self.worker.asked_aside)
        finally:
            self.asking.release()
        try:
            send(frame)
        except OSError:
            pass  # the server is gone; the control thread sees to that

    def report(self, ask):
        """The frame that says how the worker is; ``ask`` runs the hook."""
        worker = self.worker
        hook = worker.registry.health_hook
        try:
            if hook is not None and ask(hook) is False:
                return worker.encode(wire.HEALTH_FAILED, meta={"reason": "the health hook said no"})
        except (Exception, SystemExit) as error:
            reason = text(f"{type(error).__name__}: {error}", 1024)
            return worker.encode(wire.HEALTH_FAILED, meta={"reason": reason})
        uptime = round(monotonic() - worker.started, 3)
        meta = {"uptime": uptime, "queriesProcessed": worker.served}
        return worker.encode(wire.HEALTH_OK, meta=meta)
