"""The load: kinds of jobs, and clients that submit them until they are told to stop.

What a client was told goes into the journal: `acknowledged` (a key and its jobs), `cancelling` and
what came of it, `saw` (a job in some status).
"""

import datetime
import random
import threading
import time

from client import Client, Refused

PATIENT = {"max_attempts": 12, "backoff": {"initial": "20ms", "max": "200ms"}}
BATCH = 5
UNIQUE_KEYS = 3
# For those that shall run soon, however many others wait.
FIRST = 50


def order(function, payload, **more):
    return {"pool": "work", "function": function, "payload": payload, **PATIENT, **more}


def quick(draw, token):
    return order("quick", {"token": token})


def slow(draw, token):
    return order("slow", {"token": token, "seconds": draw.uniform(0.005, 0.2)})


def crash(draw, token):
    return order("crash", {"token": token})


def again(draw, token):
    return order("again", {"token": token})


def broken(draw, token):
    return order("broken", {"token": token})


def once(draw, token):
    return order("slow", {"token": token, "seconds": draw.uniform(0, 0.1)}, max_attempts=1)


def family(draw, token):
    depth = draw.choice([1, 1, 2])
    return order("parent", {"token": token, "width": 2, "depth": depth})


def gang(draw, token):
    payload = {"token": token, "seconds": draw.uniform(0, 0.1)}
    return order("shard", payload, worker_count=2)


def unique(draw, token):
    payload = {"token": token, "seconds": 0.1}
    return order("slow", payload, unique_key=f"u{draw.randrange(UNIQUE_KEYS)}", priority=FIRST)


def later(draw, token):
    now = datetime.datetime.now(datetime.timezone.utc)
    moment = now + datetime.timedelta(seconds=draw.uniform(0.1, 2))
    return order("quick", {"token": token}, run_at=moment.isoformat())


def cancelled(draw, token):
    return order("slow", {"token": token, "seconds": draw.uniform(0, 0.2)}, priority=FIRST)


# How often each is chosen. A batch is made of quick ones.
KINDS = {
    quick: 8, slow: 4, crash: 2, again: 2, broken: 1, once: 4, family: 2, gang: 2, unique: 2,
    later: 2, cancelled: 4, "batch": 2,
}


class Moment:
    """Lets others wait for the next time that something happens."""

    def __init__(self):
        self.happened = threading.Condition()

    def __call__(self):
        with self.happened:
            self.happened.notify_all()

    def wait(self, seconds):
        with self.happened:
            return self.happened.wait(seconds)


class Submitter(threading.Thread):
    """A client that does one thing after the other. Stops when it is told to, never in the middle."""

    def __init__(self, name, seed, socket, journal, sent, pace):
        super().__init__(name=name, daemon=True)
        self.draw = random.Random(f"{seed} {name}")
        self.client, self.journal, self.pace = Client(socket, sent), journal, pace
        self.stopping, self.failure, self.count, self.known = threading.Event(), None, 0, []

    def run(self):
        try:
            while not self.stopping.is_set():
                self.step()
                self.stopping.wait(self.draw.expovariate(1 / self.pace))
        except Exception as failure:  # told by whoever joins it
            self.failure = failure
        finally:
            self.client.close()

    def complain(self):
        if self.failure:
            raise self.failure

    def step(self):
        kind = self.draw.choices(list(KINDS), KINDS.values())[0]
        self.count += 1
        key = f"{self.name}-{self.count}"
        ids = self.batch(key) if kind == "batch" else self.submit(kind, key)
        self.known = (self.known + ids)[-20:]
        if kind is cancelled:
            self.cancel(ids[0], f"{key}-cancel")
        if self.draw.random() < 0.3:
            self.look(self.draw.choice(self.known))

    def submit(self, kind, key):
        body = kind(self.draw, key)
        body["tags"] = {"kind": kind.__name__, "key": key}
        patience = {"Prefer": "wait=1"} if self.draw.random() < 0.1 else {}
        # Now and then the answer is asked for once more.
        for _ in range(2 if self.draw.random() < 0.1 else 1):
            job = self.client.change("POST", "/api/jobs", body, key, **patience).body
            self.acknowledged(key, kind.__name__, [job], body.get("unique_key"))
            self.saw(job)
        return [job["id"]]

    def batch(self, key):
        bodies = [quick(self.draw, f"{key}.{slot}") for slot in range(BATCH)]
        for slot, body in enumerate(bodies):
            body["tags"] = {"kind": "batch", "key": key, "slot": str(slot)}
        answer = self.client.change("POST", "/api/jobs/batch", {"jobs": bodies}, key)
        jobs = answer.body["jobs"]
        self.acknowledged(key, "batch", jobs, None)
        return [job["id"] for job in jobs]

    def acknowledged(self, key, kind, jobs, unique_key):
        ids = [job["id"] for job in jobs]
        self.journal.note("acknowledged", key=key, kind=kind, ids=ids, unique_key=unique_key)

    def cancel(self, id, key):
        time.sleep(self.draw.choice([0, 0, self.draw.uniform(0, 0.25)]))
        self.journal.note("cancelling", id=id)
        answer = self.client.change("POST", f"/api/jobs/{id}/cancel", {}, key, (200, 202, 409))
        if answer.status == 409:
            if answer.code != "illegal_transition":
                raise Refused(f"the cancel of {id} was answered {answer.body}")
            self.journal.note("not cancelled", id=id, status=answer.body["from"])
        else:
            self.journal.note("cancelled", id=id)
            self.saw(answer.body)

    def look(self, id):
        self.saw(self.client.get(f"/api/jobs/{id}"))

    def saw(self, job):
        self.journal.note("saw", id=job["id"], status=job["status"])
