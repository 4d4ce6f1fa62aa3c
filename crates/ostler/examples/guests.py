"""What each guest wished for, in the memory of a process of their own."""

import ostler

wishes_of = {}


@ostler.function
def wish(thing: str) -> list:
    wishes_of.setdefault(ostler.session().id, []).append(thing)
    return wishes()


@ostler.function
def wishes() -> list:
    return wishes_of.get(ostler.session().id, [])


@ostler.save_session
def save(session_id):
    return wishes_of.pop(session_id, [])


@ostler.restore_session
def restore(session_id, state):
    wishes_of[session_id] = state
