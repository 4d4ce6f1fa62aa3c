"""The server's side of sessions, just real enough: operations, versions, saved states."""

import json
import select

from harness import TERMINAL, wire


class Store:
    """One session's worth of what the server keeps."""

    def __init__(self, **metadata):
        self.metadata = metadata
        self.programs = {}
        self.version = 1
        self.saved = None

    def body(self, session):
        programs = [{"name": n, "bytes": len(b), "content_type": t} for n, (_, b, t) in self.programs.items()]
        return {
            "id": session, "metadata": self.metadata, "programs": programs, "version": self.version,
            "created_at": "2026-01-01T00:00:00Z", "last_accessed": "2026-01-01T00:00:00Z",
            "ttl": 3600, "expires_at": None,
        }


class Problem(Exception):
    def __init__(self, code, **more):
        self.problem = {"code": code, "detail": f"it says {code}", "status": 400, **more}


def merged(target, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merged(target.get(key), value)
    return target


class SessionServer:
    """Reads both streams of a worker and answers its session operations."""

    def __init__(self, worker, prefix=""):
        self.worker = worker
        #: Before the names of sessions as the worker knows them, so that tests may share one.
        self.prefix = prefix
        self.stores = {}
        self.of_request = {}
        #: (operation, wire id of the request) in the order in which they came.
        self.operations = []
        #: Called before an operation is carried out; may raise Problem.
        self.before = lambda operation, store: None

    def store(self, session, **metadata):
        return self.stores.setdefault(session, Store(**metadata))

    def query(self, function, *args, session=None, **options):
        meta = {} if session is None else {"sessionId": self.prefix + session}
        rid = self.worker.query(function, *args, **meta, **options)
        self.of_request[str(rid)] = session
        return rid

    def call(self, function, *args, **options):
        """The terminal frame, with every operation on the way answered."""
        rid = self.query(function, *args, **options)
        return self.answers(rid)[rid]

    def value(self, function, *args, **options):
        frame = self.call(function, *args, **options)
        assert frame.kind == wire.COMPLETE, frame.meta
        return value_of(frame)

    def error(self, function, *args, **options):
        frame = self.call(function, *args, **options)
        assert frame.kind == wire.ERROR, frame.kind
        return error_of(frame)

    def save(self, session):
        return self.call("ostler.save_session", session=session)

    def moved(self, session):
        """Save it and keep the state, as the server does."""
        frame = self.save(session)
        assert frame.kind == wire.COMPLETE, frame.meta
        self.store(session).saved = (frame.flags & wire.RAW, bytes(frame.body), None)
        return value_of(frame)

    def answers(self, *rids):
        found = {}
        while len(found) < len(rids):
            frame = self.next()
            if frame.kind == wire.CALL:
                self.answer(frame)
            elif frame.kind in TERMINAL:
                assert frame.id in rids, (frame.id, rids)
                found[frame.id] = frame
        return found

    def next_call(self):
        """The next operation, unanswered."""
        while True:
            frame = self.next()
            assert frame.kind not in TERMINAL, (frame.kind, frame.meta)
            if frame.kind == wire.CALL:
                return frame

    def next(self):
        streams = (self.worker.data, self.worker.control)
        while not any(stream.frames for stream in streams):
            ready, _, _ = select.select([stream.sock for stream in streams], [], [], 30)
            assert ready, "the worker says nothing"
            for stream in streams:
                if stream.sock in ready:
                    stream.frames.appendleft(stream.next())
        return next(stream for stream in streams if stream.frames).frames.popleft()

    def answer(self, frame):
        assert frame.meta["pool"] == "ostler", frame.meta
        operation, rid = frame.meta["function"], frame.meta.get("requestId")
        self.operations.append((operation, rid))
        session = self.of_request.get(rid)
        stream = self.worker.control if frame.meta.get("answerOn") == "control" else self.worker.data
        try:
            if session is None:
                raise Problem("session_required")
            flags, body, content_type = self.carry_out(operation, session, frame)
            meta = {"contentType": content_type} if content_type else None
            stream.send(wire.CALL_RESULT, frame.id, flags, meta, body)
        except Problem as problem:
            stream.send(wire.CALL_RESULT, frame.id, wire.FAILED, problem.problem)

    def carry_out(self, operation, session, frame):
        store = self.store(session)
        self.before(operation, store)
        name, _, program = operation.partition("/")
        if name == "session.take":
            taken, store.saved = store.saved, None
            return taken or (0, b"", None)
        if name == "session.patch":
            self.patch(store, json.loads(frame.body))
        elif name == "session.program.put":
            return self.put(store, program, frame)
        elif name != "session.get":
            return self.program(store, name, program)
        return 0, json.dumps(store.body(session)).encode(), None

    def patch(self, store, payload):
        if payload.get("version") not in (None, store.version):
            raise Problem("version_conflict", retryable=True, version=store.version)
        store.metadata = merged(store.metadata, payload["patch"])
        store.version += 1

    def put(self, store, program, frame):
        content_type = frame.meta.get("contentType")
        store.programs[program] = (frame.flags & wire.RAW, bytes(frame.body), content_type)
        store.version += 1
        entry = {"name": program, "bytes": len(frame.body), "content_type": content_type}
        return 0, json.dumps({**entry, "version": store.version}).encode(), None

    def program(self, store, name, program):
        if program not in store.programs:
            raise Problem("program_not_found")
        if name == "session.program.get":
            return store.programs[program]
        del store.programs[program]
        store.version += 1
        return 0, b"", None

    def count(self, operation):
        return sum(name == operation for name, _ in self.operations)


def error_of(frame):
    """As the worker said it; a line has it under a key of its own."""
    return frame.meta.get("error", frame.meta)


def value_of(frame):
    return bytes(frame.body) if frame.flags & wire.RAW else json.loads(frame.body or b"null")
