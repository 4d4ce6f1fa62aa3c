"""The session of a request, as its handler reads and writes it.

The server keeps it. Reading takes a snapshot once and stays with it; each
writing is an operation of its own at the server, whose answer is the snapshot
from then on. Methods that begin with ``a`` are those for coroutines.
"""

from collections.abc import Mapping, MutableMapping
from copy import deepcopy

from .context import request, serving
from .errors import CallError, NoSession
from .jsontext import loads
from .mergepatch import difference
from .outgoing import SERVER, Outgoing, json_body, result_of
from .results import Raw, encoded

# How often an update is tried while others get in first.
ATTEMPTS = 100

_BINARY = (bytes, bytearray, memoryview, Raw)

_SPELLING = ("ostler.session()", "await ostler.asession(), and its methods that begin with a")


def session():
    """The session of the request being served; raises NoSession if it has none."""
    current = request()
    if current.session is None:
        raise NoSession(
            "this request has no session; send one with the header Ostler-Session: ID, "
            "or with ostler call --session ID"
        )
    if current._session is None:
        current._session = Session(serving(), current)
    return current._session


async def asession():
    """As ``session``, for coroutines: it has been read when it is there."""
    current = session()
    if current._snapshot is None:
        await current.arefresh()
    return current


class Session(Mapping):
    """Metadata and programs of one session. As a mapping it is its metadata.

    What is read is a copy; to change the session, say so: ``s["k"] = v``,
    ``del s["k"]``, ``patch`` or ``update``.
    """

    def __init__(self, worker, request):
        self._worker = worker
        self._request = request
        self._snapshot = None
        self.id = request.session
        self.continuity = request.continuity

    def __repr__(self):
        return f"<ostler session {self.id!r}>"

    # Reading.

    @property
    def metadata(self):
        return deepcopy(self._read()["metadata"])

    @property
    def version(self):
        """Of what was read; it rises with each change."""
        return self._read()["version"]

    @property
    def programs(self):
        return Programs(self)

    def __getitem__(self, key):
        return deepcopy(self._read()["metadata"][key])

    def __iter__(self):
        return iter(self.metadata)

    def __len__(self):
        return len(self._read()["metadata"])

    def refresh(self):
        """Read it anew."""
        self._snapshot = self._make("session.get")

    async def arefresh(self):
        self._snapshot = await self._amake("session.get")

    # Writing.

    def patch(self, changes, version=None):
        """Merge ``changes`` into the metadata; None removes a key.

        With a ``version`` that is no longer the session's, nothing is changed
        and CallError says ``version_conflict``.
        """
        self._snapshot = self._make("session.patch", *_patch(changes, version))

    async def apatch(self, changes, version=None):
        self._snapshot = await self._amake("session.patch", *_patch(changes, version))

    def update(self, change):
        """Read the metadata, let ``change(metadata)`` alter it or return other, and write it.

        If another request writes meanwhile, this begins again, so ``change``
        may be asked more than once. The metadata as it is then comes back.
        """
        for left in reversed(range(ATTEMPTS)):
            self.refresh()
            changes = self._changes(change)
            try:
                if changes:
                    self.patch(changes, self.version)
                return self.metadata
            except CallError as error:
                _retry_or_raise(error, left)

    async def aupdate(self, change):
        for left in reversed(range(ATTEMPTS)):
            await self.arefresh()
            changes = self._changes(change)
            try:
                if changes:
                    await self.apatch(changes, self.version)
                return self.metadata
            except CallError as error:
                _retry_or_raise(error, left)

    def __setitem__(self, key, value):
        if isinstance(value, Mapping):
            # Merged into what is there, it would not be the value afterwards.
            self.update(lambda metadata: {**metadata, key: value})
        else:
            self.patch({key: value})

    def __delitem__(self, key):
        self.patch({key: None})

    def _changes(self, change):
        """The merge patch that does what ``change`` does."""
        before, after = self._snapshot["metadata"], self.metadata
        answer = change(after)
        after = after if answer is None else answer
        if not isinstance(after, Mapping):
            kind = type(after).__name__
            raise TypeError(f"the function of an update alters its argument or returns a dict, not {kind}")
        return difference(before, loads(json_body(dict(after))))

    # At the server.

    def _read(self):
        if self._snapshot is None:
            self.refresh()
        return self._snapshot

    def _make(self, operation, flags=0, body=b"", content_type=None):
        return result_of(self._worker.calls.make(self._call(operation, flags, body, content_type)))

    async def _amake(self, operation, flags=0, body=b"", content_type=None):
        call = self._call(operation, flags, body, content_type)
        return result_of(await self._worker.calls.make_async(call))

    def _call(self, operation, flags, body, content_type):
        return Outgoing(SERVER, operation, flags, body, content_type, self._request, spelling=_SPELLING)


class Programs(MutableMapping):
    """The named values of a session: JSON or bytes, each read and written by itself."""

    def __init__(self, session):
        self._session = session

    def __iter__(self):
        return iter([entry["name"] for entry in self._session._read()["programs"]])

    def __len__(self):
        return len(self._session._read()["programs"])

    def __contains__(self, name):
        return any(name == known for known in self)

    def __getitem__(self, name):
        with _Missing(name):
            return self._session._make(_operation("get", name))

    def __setitem__(self, name, value):
        self._written(self._session._make(_operation("put", name), *_program(value)))

    def __delitem__(self, name):
        with _Missing(name):
            self._session._make(_operation("delete", name))
        self._deleted(name)

    async def aget(self, name, default=None):
        try:
            with _Missing(name):
                return await self._session._amake(_operation("get", name))
        except KeyError:
            return default

    async def aset(self, name, value):
        self._written(await self._session._amake(_operation("put", name), *_program(value)))

    async def adelete(self, name):
        with _Missing(name):
            await self._session._amake(_operation("delete", name))
        self._deleted(name)

    # The snapshot follows what this request writes.

    def _written(self, entry):
        snapshot = self._session._snapshot
        if snapshot is not None:
            others = [known for known in snapshot["programs"] if known["name"] != entry["name"]]
            snapshot["programs"] = [*others, entry]
            # Further on there is more that this snapshot has not seen.
            if entry["version"] == snapshot["version"] + 1:
                snapshot["version"] = entry["version"]

    def _deleted(self, name):
        snapshot = self._session._snapshot
        if snapshot is not None:
            snapshot["programs"] = [known for known in snapshot["programs"] if known["name"] != name]


class _Missing:
    """What the server says of a program that is not there, as a mapping says it."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _traceback):
        if isinstance(error, CallError) and error.code == "program_not_found":
            raise KeyError(self.name) from None


def _operation(verb, name):
    if not isinstance(name, str) or not name:
        raise TypeError(f"a program is named by a text that is not empty, not by {name!r}")
    return f"session.program.{verb}/{name}"


def _program(value):
    """(flags, body, content type) of a value."""
    flags, body, meta = encoded(value) if isinstance(value, _BINARY) else (0, json_body(value), None)
    return flags, bytes(body), (meta or {}).get("contentType")


def _patch(changes, version):
    """(flags, body) of a merge patch."""
    payload = {"patch": dict(changes)}
    if version is not None:
        payload["version"] = version
    return 0, json_body(payload)


def _retry_or_raise(error, left):
    if error.code != "version_conflict" or not left:
        raise error
