"""The server's side of jobs, just real enough: what is submitted is kept, and known by its key."""

import json

from harness import wire
from session_server import Problem, SessionServer

TIMELESS = ("run_at", "occurrence")


def part(id="j_1", attempt=1, shard=0, shard_count=1, depth=0):
    """The job of a query, as the wire has it."""
    return {"id": id, "attempt": attempt, "shard": shard, "shardCount": shard_count, "depth": depth}


class JobServer(SessionServer):
    """Answers the operations on jobs of one worker."""

    def __init__(self, worker):
        super().__init__(worker)
        #: By id, in the order of their submission; ``asked`` is what the worker sent.
        self.jobs = {}
        self.keys = {}
        self.parts = {}

    def query(self, function, *args, job=None, **options):
        more = {} if job is None else {"job": job}
        rid = super().query(function, *args, **more, **options)
        self.parts[str(rid)] = job
        return rid

    def answer(self, frame):
        assert frame.meta["pool"] == "ostler", frame.meta
        operation, rid = frame.meta["function"], frame.meta.get("requestId")
        stream = self.worker.control if frame.meta.get("answerOn") == "control" else self.worker.data
        asked = json.loads(frame.body)
        try:
            answer = self.submitted(asked, rid) if operation == "job.submit" else self.found(operation, asked)
            stream.send(wire.CALL_RESULT, frame.id, 0, None, json.dumps(answer).encode())
        except Problem as problem:
            stream.send(wire.CALL_RESULT, frame.id, wire.FAILED, problem.problem)

    def submitted(self, asked, rid):
        if asked["pool"] == "nowhere":
            raise Problem("pool_not_found", retryable=False)
        key = self.child_key(asked, self.parts.get(rid))
        if key in self.keys:
            return {**self.jobs[self.keys[key]], "known": True}
        id = f"j_{len(self.jobs) + 100}"
        self.jobs[id] = {"id": id, "status": "PENDING", "asked": asked}
        if key is not None:
            self.keys[key] = id
        return {**self.jobs[id], "known": False}

    def child_key(self, asked, duty):
        if duty is None or "occurrence" not in asked:
            return None
        timeless = {name: value for name, value in asked.items() if name not in TIMELESS}
        described = json.dumps(timeless, sort_keys=True)
        return (asked.get("parent_job_id", duty["id"]), duty["shard"], described, asked["occurrence"])

    def found(self, operation, asked):
        if asked["id"] not in self.jobs:
            raise Problem("job_not_found", retryable=False)
        job = self.jobs[asked["id"]]
        if operation == "job.cancel":
            job.update(status="CANCELED", why=asked.get("reason"))
        return job

    def asked(self):
        """What was submitted, one after the other."""
        return [job["asked"] for job in self.jobs.values()]
