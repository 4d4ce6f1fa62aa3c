"""Values of sessions that move as bytes; they are not taken in before a sign is given."""

import ostler

import guests  # its functions are served too

from forgets import values
from yard import given, note


@ostler.save_session
def save(session_id):
    return values.pop(session_id, "").encode()


@ostler.restore_session
def restore(session_id, state):
    note("restoring", session_id)
    if given("refuse"):
        raise ValueError("not yet")
    values[session_id] = bytes(state).decode()
