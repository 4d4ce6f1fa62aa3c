"""A function that prints when it is told to, and lives on for a while."""

import ostler

from yard import await_sign, note


@ostler.function
def quick():
    pass


@ostler.function
def speak(line: str):
    note("begun", line)
    await_sign("speak")
    print(line, flush=True)
    await_sign("go")
