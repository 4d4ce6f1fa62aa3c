"""Functions that run side by side, in threads or as tasks."""

import asyncio
import os
import threading
import time

import ostler

from yard import YARD, await_lines, await_sign, given, lines, note


@ostler.function(thread_safe=True)
def meet(n: int):
    """Ends when n are inside: for ever, if they take turns."""
    begun = time.monotonic()
    note("met", "here")
    await_lines("met", n)
    return [begun, time.monotonic()]


@ostler.function(thread_safe=True)
def side_hold(name: str):
    note("begun", name)
    await_sign("go")
    return name


@ostler.function(thread_safe=True)
def stubborn():
    """Swallows every cancel."""
    note("begun", "stubborn")
    while not given("mercy"):
        try:
            await_sign("mercy")
        except ostler.Cancelled:
            note("swallowed", "one")


@ostler.function(thread_safe=True)
def quick(value=None):
    return value


@ostler.function(thread_safe=True)
def side_produce(n: int):
    ledger = os.open(os.path.join(YARD, "produced"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for i in range(n):
        os.write(ledger, b".")
        yield i


@ostler.function(thread_safe=True)
def taint_and_hold(name: str):
    ostler.retire("its device is in doubt", tainted=True)
    return side_hold(name)


@ostler.function(thread_safe=False)
def by_turns():
    note("begun", "by turns")
    await_sign("go")


@ostler.function(thread_safe=True)
def environment():
    return dict(os.environ)


@ostler.function(thread_safe=True)
def thread():
    return threading.current_thread().name


@ostler.function(thread_safe=True)
async def async_meet(n: int):
    note("met", "here")
    while len(lines("met")) < n:
        await asyncio.sleep(0.002)
    return threading.current_thread().name


@ostler.function(thread_safe=True)
async def async_hold(name: str):
    note("begun", name)
    while not given("go"):
        await asyncio.sleep(0.002)
    return name


@ostler.function(thread_safe=True)
async def async_produce(n: int):
    ledger = os.open(os.path.join(YARD, "produced"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for i in range(n):
        os.write(ledger, b".")
        yield i


@ostler.function(thread_safe=True)
def side_relay(pool: str, function: str, *arguments):
    return ostler.call(pool, function, *arguments)


@ostler.function(thread_safe=True)
async def async_relay(pool: str, function: str, *arguments):
    return await ostler.acall(pool, function, *arguments)


@ostler.function(thread_safe=True)
def side_hold_or_tell(name: str):
    """As side_hold, and says so when it was cancelled."""
    try:
        return side_hold(name)
    except ostler.Cancelled:
        note("cancelled", name)
        raise


@ostler.function(thread_safe=True)
def side_meet_and_call(pool: str, together: int):
    note("met", "here")
    await_lines("met", together)
    try:
        return ostler.call(pool, "quick", "nested")
    except ostler.CallError as error:
        return error.code
