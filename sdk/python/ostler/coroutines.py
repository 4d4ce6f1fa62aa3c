"""Coroutines on one event loop that lives as long as the worker.

A cancel becomes the cancellation of the task: an exception out of a signal
handler could strike inside the loop's own code.
"""

from .errors import Cancelled


class Coroutines:
    def __init__(self, state):
        self.state = state
        self.loop = None

    def run(self, coroutine):
        """Run to the end; called while armed."""
        import asyncio

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        loop, state = self.loop, self.state
        task = loop.create_task(_whole(coroutine))
        state.task_cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError as error:
            if state.is_cancelled(state.current):
                raise Cancelled(state.stopping or "cancelled") from error
            raise
        finally:
            state.task_cancel = None

    def close(self):
        if self.loop is not None:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()
            self.loop = None


async def _whole(awaitable):
    return await awaitable


def run_alone(awaitable):
    """Run to the end on a loop of its own, in a thread that has none."""
    import asyncio

    return asyncio.run(_whole(awaitable))


def run_here(place, turn, awaitable):
    """Run to the end on the loop of this thread, in the name of ``turn``."""
    import asyncio

    if place.loop is None:
        place.loop = asyncio.new_event_loop()
    loop = place.loop
    asyncio.set_event_loop(loop)
    task = loop.create_task(_whole(awaitable))
    turn.cancel_task = lambda: loop.call_soon_threadsafe(task.cancel)
    if turn.cancelled:
        task.cancel()
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError as error:
        if turn.cancelled:
            raise Cancelled(turn.worker.state.stopping or "cancelled") from error
        raise
    finally:
        turn.cancel_task = None
