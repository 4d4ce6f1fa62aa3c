"""A generator sent chunk by chunk from a task.

As streaming.py, for the async profile: the task awaits its credit, and a cancel
comes as the cancellation of the task, in the generator's own ``await`` or here.
"""

import asyncio
from inspect import isasyncgen

from . import wire
from .results import encoded
from .streaming import CLOSE_LIMIT


class TaskStream:
    def __init__(self, worker, turn, source):
        self.worker = worker
        self.turn = turn
        self.source = source
        self.sent = 0

    async def run(self):
        """Send all chunks; the terminal frame comes back, for the caller to send."""
        worker, turn, source = self.worker, self.turn, self.source
        asynchronous = isasyncgen(source)
        try:
            while True:
                if not turn.may_send():
                    await self.credit()
                self.send(await source.__anext__() if asynchronous else next(source))
        except (StopIteration, StopAsyncIteration) as end:
            return worker.completed(turn.rid, getattr(end, "value", None), self.sent)
        except GeneratorExit:
            raise
        except BaseException as error:
            await self.close()
            return worker.failed(turn.rid, worker.meant(turn, error), self.sent)

    async def credit(self):
        turn, loop = self.turn, self.worker.loop
        came = asyncio.Event()

        def wake():
            loop.call_soon_threadsafe(came.set)

        turn.waiters.add(wake)
        try:
            while not turn.may_send():
                await came.wait()
                came.clear()
        finally:
            turn.waiters.discard(wake)

    def send(self, item):
        flags, body, meta = encoded(item)
        self.worker.outbox.send_body(wire.MESSAGE, self.turn.rid, flags, body, self.sent, meta)
        self.worker.state.spend(self.turn, len(body))
        self.sent += 1

    async def close(self):
        """Let the generator clean up, for a limited time."""
        if not isasyncgen(self.source):
            return self.close_plain()
        limit = self.worker.loop.call_later(CLOSE_LIMIT, self.turn.task.cancel)
        try:
            await self.source.aclose()
        except BaseException:
            pass  # it has ended, in whatever way
        finally:
            limit.cancel()

    def close_plain(self):
        try:
            self.source.close()
        except BaseException:
            pass
