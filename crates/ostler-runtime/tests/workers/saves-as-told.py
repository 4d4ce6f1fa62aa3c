"""Values of sessions, which move with them unless a sign in the yard says otherwise."""

import ostler

import guests  # its functions are served too

from forgets import values
from yard import await_sign, given, note


@ostler.save_session
def save(session_id):
    note("saving", session_id)
    if given("fail"):
        raise ValueError("as asked")
    if given("hang"):
        await_sign("mercy")
    return values.pop(session_id, None)


@ostler.restore_session
def restore(session_id, state):
    note("restored", session_id)
    values[session_id] = state
