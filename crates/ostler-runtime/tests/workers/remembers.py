"""Values of sessions, in the memory of the process, which move with their session."""

import ostler

import forgets  # its functions are served too


@ostler.save_session
def save(session_id):
    return forgets.values.pop(session_id, None)


@ostler.restore_session
def restore(session_id, state):
    forgets.values[session_id] = state
