"""How sessions move in and out on the event loop.

All hooks run on the loop, whatever kind of function the request is for, so
that they may touch what coroutines touch. A plain function, in its thread,
waits for the loop to bring its session in.
"""

import asyncio
from concurrent.futures import Future

from .doors import HERE, WAIT
from .errors import Cancelled
from .moving import SAVE, take, taken
from .thread_moving import ThreadMoving


class TaskMoving(ThreadMoving):
    saves_async = True

    # One turn as a task.

    async def task_outcome(self, turn, function):
        """The terminal frame of a request of a session."""
        worker, session = self.worker, turn.frame.meta["sessionId"]
        try:
            if function.name == SAVE:
                return worker.completed(turn.rid, await self.saved(turn, session))
            await self.come_in(turn, session)
        except GeneratorExit:
            raise
        except BaseException as error:
            return worker.failed(turn.rid, worker.meant(turn, error))
        turn.afterwards = lambda: self.home.leave(session)
        return await worker.ran(turn, function)

    async def come_in(self, turn, session):
        """Be inside, with the session at home or a guest."""
        if await self.let_through(self.way_in(turn), session) is HERE:
            return
        settled = False
        try:
            for step in self.steps(session):
                left = step(session)
                if left is not None:
                    await left
            settled = True
        finally:
            self.home.opened(session, settled)

    async def move_in(self, session):
        state = self.home.kept(session)
        if state is None:
            state = await unbroken(self.fetched(session))
        left = None if state is None else self.restore(session, state)
        if left is not None:
            await left

    async def fetched(self, session):
        state = taken(session, await self.worker.calls.make_async(take()))
        if state is not None:
            self.home.keep(session, state)
        return state

    async def saved(self, turn, session):
        await self.let_through(self.home.depart, session)
        turn.afterwards = lambda: self.home.departed(session)
        state = self.save(session)
        return await state if hasattr(state, "__await__") else state

    async def let_through(self, ask, session):
        """What ``ask`` says at last."""
        woken = asyncio.Event()

        def wake():
            self.worker.on_loop(woken.set)

        while True:
            said = ask(session, wake)
            if said is not WAIT:
                return said
            try:
                await woken.wait()
            except BaseException:
                self.home.give_up(session, wake)
                raise
            woken.clear()

    # One turn in a thread of the executor.

    def arrive(self, place, turn, session):
        """Wait for the end of the task whatever happens: only then is it known who is inside."""
        worker, ended = self.worker, Future()

        def begin():
            task = worker.loop.create_task(self.come_in(turn, session))
            turn.cancel_task = lambda: worker.on_loop(task.cancel)
            if turn.cancelled:
                task.cancel()
            task.add_done_callback(ended.set_result)

        try:
            worker.loop.call_soon_threadsafe(begin)
        except RuntimeError:
            return Cancelled("the worker is leaving")  # its loop is closed
        task = ended.result()
        turn.cancel_task = None
        if task.cancelled():
            return Cancelled(worker.state.stopping or "cancelled")
        return task.exception()


async def unbroken(coroutine):
    """What it returns; a cancel is raised after its end."""
    task, cancelled = asyncio.ensure_future(coroutine), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
