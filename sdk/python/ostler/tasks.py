"""The async profile: coroutines side by side on one event loop.

    main           runs the loop, which reads the data stream and steps the tasks
    ostler-control reads the control stream: pings are answered while the loop is busy
    executor       plain functions, as threads.py would run them

A cancel is the cancellation of the task. Answers are gathered while the loop
goes round once and written together, by a write that blocks: the server always
reads, and a buffer that grows instead would need a bound of its own.
"""

import asyncio
import sys
import traceback
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from .errors import Cancelled
from .loop_outbox import LoopOutbox
from .outcome import function_not_found
from .service import STOP_GRACE
from .side_by_side import SideBySide
from .streaming import is_stream
from .task_moving import TaskMoving
from .task_stream import TaskStream
from .turns import RUNNING, current

EXECUTOR_MAX = 64  # threads for plain functions, however large the capacity
STUCK = STOP_GRACE / 2  # how long the way out waits for handlers that do not end
CLOSE_LIMIT = 0.3  # and for tasks that were left behind


class AsyncWorker(SideBySide):
    profile = "async"

    def __init__(self, registry, data, control, capacity, binary=True, limit=None):
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.executor = ThreadPoolExecutor(min(capacity, EXECUTOR_MAX), "ostler")
        self.loop.set_default_executor(self.executor)
        # Of the loop's thread alone: those that wait for a place, the places in use, the tasks.
        self.waiting = deque()
        self.busy = 0
        self.tasks = set()
        super().__init__(registry, data, control, capacity, binary, limit)

    def make_outbox(self):
        plain = (self.data, self.control, self.state, self.encode, self.binary, self.limit)
        return LoopOutbox(self.loop, lambda: self.busy < 2, *plain)

    def make_moving(self):
        return TaskMoving(self)

    def wire_up(self):
        super().wire_up()
        self.state.on_empty = lambda: self.on_loop(self.loop.stop)

    def on_loop(self, action, *args):
        try:
            self.loop.call_soon_threadsafe(action, *args)
        except RuntimeError:
            pass  # the loop is closed: the worker is leaving

    def run(self):
        """Serve until told to leave or until the data stream ends."""
        self.loop.add_reader(self.data.fileno(), self.on_readable)
        while not self.state.emptied.is_set():
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                traceback.print_exc()  # of a task that a handler left behind

    def on_readable(self):
        try:
            if self.read():
                return
        except OSError as error:
            self.leave_if_forked()
            print(f"ostler: {error}", file=sys.stderr)
        self.loop.remove_reader(self.data.fileno())
        self.ended()
        if self.state.stopping is not None:
            self.loop.call_later(STUCK, self.state.say_empty)

    # Beginning and ending, in the loop's thread.

    def start(self, turn):
        self.waiting.append(turn)
        self.fill()

    def fill(self):
        """Begin what there are places for, in the order in which it came."""
        while self.waiting and self.busy < self.capacity:
            turn = self.waiting.popleft()
            self.busy += 1
            function = self.find(turn.frame)
            if function is None or function.is_async:
                self.start_task(turn, function)
            else:
                self.executor.submit(self.serve_aside, turn)

    def release(self):
        self.busy -= 1
        if self.waiting:
            self.fill()

    def start_task(self, turn, function):
        task = self.loop.create_task(self.serve_task(turn, function))
        self.tasks.add(task)  # the loop itself only holds it weakly
        task.add_done_callback(self.tasks.discard)

    def serve_aside(self, turn):
        """In a thread of the executor: a plain function."""
        try:
            self.serve(turn)
        finally:
            self.on_loop(self.release)

    # One turn as a task.

    async def serve_task(self, turn, function):
        try:
            # Begun in here: a task cancelled before its first step would not know it.
            if self.state.begin(turn):
                current.set(turn)
                turn.task = asyncio.current_task()
                self.end(turn, await self.task_outcome(turn, function))
        finally:
            self.release()

    async def task_outcome(self, turn, function):
        if function is None:
            return self.unstarted(turn.rid, function_not_found(self.name_of(turn.frame)))
        if self.moving is not None and "sessionId" in turn.frame.meta:
            return await self.moving.task_outcome(turn, function)
        return await self.ran(turn, function)

    async def ran(self, turn, function):
        """The terminal frame of a coroutine function."""
        invoke, body = self.caller(function, turn.frame)
        try:
            result = invoke(body)
            if hasattr(result, "__await__"):
                result = await result
        except GeneratorExit:
            raise
        except BaseException as error:
            return self.failed(turn.rid, self.meant(turn, error))
        if is_stream(result):
            return await TaskStream(self, turn, result).run()
        return self.completed(turn.rid, result)

    def meant(self, turn, error):
        """A task that was cancelled because its request was is a cancelled request."""
        if isinstance(error, asyncio.CancelledError) and turn.cancelled:
            return Cancelled(self.state.stopping or "cancelled")
        return error

    def interrupt(self, turn):
        if turn.place is None:
            self.on_loop(self.cancel_task, turn)
        else:
            super().interrupt(turn)

    def cancel_task(self, turn):
        """Once per turn: one that swallows it goes on."""
        if turn.stage is RUNNING and not turn.shields and not turn.struck:
            turn.struck = True
            turn.task.cancel()

    def awaited(self, turn, awaitable):
        """From a thread of the executor: a coroutine that a plain function handed back."""
        future = asyncio.run_coroutine_threadsafe(whole(awaitable), self.loop)
        turn.cancel_task = future.cancel
        if turn.cancelled:
            future.cancel()
        try:
            return future.result()
        except BaseException as error:
            if turn.cancelled and future.cancelled():
                raise Cancelled(self.state.stopping or "cancelled") from error
            raise
        finally:
            turn.cancel_task = None

    # What handlers call.

    def in_loop(self):
        return asyncio._get_running_loop() is self.loop

    def may_block(self, what, instead):
        if self.in_loop():
            raise RuntimeError(f"{what} would block every coroutine of this worker; use {instead}")

    def shielded(self):
        turn = current.get(None)
        if not self.in_loop() or turn is None:
            return super().shielded()
        turn.shields += 1

        def leave():
            turn.shields -= 1
            if turn.cancelled and not turn.shields:
                self.cancel_task(turn)

        return leave

    def emit(self, kind, rid, flags=0, meta=None, body=b"", turn=None):
        if self.in_loop():
            self.outbox.emit(kind, rid, flags, meta, body, turn)
        else:
            super().emit(kind, rid, flags, meta, body, turn)

    # Hooks and leaving.

    def asked(self, hook):
        """Before or after the loop runs."""
        answer = hook()
        return self.loop.run_until_complete(whole(answer)) if hasattr(answer, "__await__") else answer

    def asked_aside(self, hook):
        answer = hook()
        if not hasattr(answer, "__await__"):
            return answer
        return asyncio.run_coroutine_threadsafe(whole(answer), self.loop).result()

    def close(self):
        """End what handlers and hooks left on the loop, then the loop."""
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.wait(left, timeout=CLOSE_LIMIT))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.outbox.flush()
        self.loop.close()


async def whole(awaitable):
    return await awaitable
