"""Functions that read and write the session of their request."""

import ostler


@ostler.function
def look():
    s = ostler.session()
    return {"id": s.id, "metadata": s.metadata, "programs": sorted(s.programs), "version": s.version}


@ostler.function
def put(key: str, value=None):
    ostler.session()[key] = value
    return ostler.session().metadata


@ostler.function
def take_away(key: str):
    del ostler.session()[key]
    return ostler.session().metadata


@ostler.function
def put_late(key: str, value, version: int):
    """With a version that the caller believes in; what is said against it."""
    try:
        ostler.session().patch({key: value}, version)
    except ostler.CallError as error:
        return error.code


def _one_more(metadata):
    metadata["sum"] = metadata.get("sum", 0) + 1


@ostler.function
def add():
    return ostler.session().update(_one_more)["sum"]


@ostler.function
async def add_async():
    session = await ostler.asession()
    return (await session.aupdate(_one_more))["sum"]


@ostler.function
def write(name: str, value=None):
    ostler.session().programs[name] = value


@ostler.function
def write_bytes(name: str, text: str):
    ostler.session().programs[name] = text.encode()


@ostler.function
def read(name: str):
    return ostler.session().programs[name]


@ostler.function
def remove(name: str):
    del ostler.session().programs[name]
