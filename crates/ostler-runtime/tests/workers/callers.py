"""Functions that call others, beside those of functions.py."""

import threading

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import ostler

import functions  # its functions are served too

from yard import await_lines, await_sign, note


@ostler.function
def relay(pool: str, function: str, *arguments):
    return ostler.call(pool, function, *arguments)


@ostler.function
def relay_from_a_thread(pool: str, function: str, *arguments):
    """The thread sees the request, so its call ends with it."""
    within = copy_context().run
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(within, ostler.call, pool, function, *arguments).result()


@ostler.function
def relay_from_a_stranger(pool: str, function: str, *arguments):
    """The thread knows of no request."""
    result = []
    thread = threading.Thread(target=lambda: result.append(ostler.call(pool, function, *arguments)))
    thread.start()
    thread.join()
    return result[0]


@ostler.function
def problem_of(pool: str, function: str, *arguments):
    """What the server says against a call."""
    try:
        return {"result": ostler.call(pool, function, *arguments)}
    except ostler.CallError as error:
        return error.problem


@ostler.function
def meet_and_call(pool: str, together: int):
    """Calls its own pool once that many are where no further one has a place."""
    note("met", "here")
    await_lines("met", together)
    return problem_of(pool, "echo", "nested")


@ostler.function
def many(pool: str, n: int):
    return sum(ostler.call(pool, "echo", i) for i in range(n))


@ostler.function
def crowd(pool: str, threads: int, n: int):
    """That many calls from that many threads."""
    with ThreadPoolExecutor(threads) as pool_of_threads:
        results = pool_of_threads.map(lambda i: ostler.call(pool, "echo", i), range(n))
        return [i for i, result in enumerate(results) if result != i]


@ostler.function
def relay_bytes(data: bytes, pool: str = "called"):
    return ostler.Raw(ostler.call(pool, "reverse", data))


@ostler.function
def reverse(data: bytes):
    return ostler.Raw(data[::-1])


@ostler.function
def call_when_told(pool: str):
    note("begun", "call_when_told")
    await_sign("go")
    return problem_of(pool, "echo", "nested")


@ostler.function
def remaining():
    return ostler.request().remaining()


@ostler.function
def hold_and_leave_a_trace(name: str):
    """Says how it ended, which only a cancel can bring about."""
    note("begun", name)
    try:
        await_sign("never")
    except ostler.Cancelled:
        note("cancelled", name)
        raise


@ostler.function
def tell(progress, line: str):
    ostler.request().progress(progress)
    ostler.request().log(line, level="warning")
    note("told", ostler.request().id)
    await_sign("go")
