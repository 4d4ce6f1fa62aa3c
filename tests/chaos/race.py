#!/usr/bin/env python3
"""Cancel against completion: each job gets one end, and whoever asked was told the truth.

    tests/chaos/race.py [BINARY] [--store sqlite|postgres] [--cancels N] [--seed N]

Jobs that take no time are submitted in batches and cancelled at once, one by one, in the order in
which they run or against it.
"""

import random
import threading
import time
from collections import Counter

import checker
import rig
from aftermath import audited, gathered, listed, settle, stopped
from client import Client, Refused
from load import order

CLIENTS = 16
BATCH = 20
# So many are looked at with their whole trail; the audit of the server replays all of them.
SAMPLE = 1000
# What an accepted cancel says: it had not begun, or its work is asked to let go.
TOLD = {200: "CANCELED", 202: "asked"}


def main():
    cancels = ("cancels", "OSTLER_CHAOS_CANCELS", 10_000, "how many jobs are cancelled")
    chosen = rig.options(__doc__, cancels)
    rig.judge(chosen, lambda server, book: race(server, book, chosen))


def race(server, book, chosen):
    began = time.monotonic()
    server.start()
    server.wait_until_it_answers()
    asked = cancelling(server.socket, chosen)
    settle(server.socket)
    jobs = listed(server.socket)
    wrong = judged(asked, jobs) + sampled(server, book, asked, chosen.seed)
    wrong += audited(server) + stopped(server)
    ends = Counter(job["status"] for job in jobs.values())
    told = Counter(told for told in asked.values())
    print(f"{len(asked)} cancels: {told['CANCELED']} before the start, {told['asked']} while it ran, "
          f"{told['COMPLETED']} too late; {ends['CANCELED']} CANCELED, {ends['COMPLETED']} COMPLETED; "
          f"{chosen.store}, seed {chosen.seed}, {time.monotonic() - began:.0f} s")
    return wrong


def cancelling(socket, chosen):
    """What each client was told, by job: CANCELED, `asked`, or the status that came first."""
    rounds = [-(-chosen.cancels // BATCH // CLIENTS)] * CLIENTS
    cancellers = [Canceller(f"r{n}", chosen.seed, socket, count) for n, count in enumerate(rounds)]
    for canceller in cancellers:
        canceller.start()
    for canceller in cancellers:
        canceller.join()
        if canceller.failure:
            raise canceller.failure
    return {id: told for canceller in cancellers for id, told in canceller.told.items()}


class Canceller(threading.Thread):
    def __init__(self, name, seed, socket, rounds):
        super().__init__(name=name, daemon=True)
        self.draw, self.client = random.Random(f"{seed} {name}"), Client(socket)
        self.rounds, self.told, self.failure = rounds, {}, None

    def run(self):
        try:
            for number in range(self.rounds):
                self.cancel(self.submit(number))
        except Exception as failure:  # told by whoever joins it
            self.failure = failure
        finally:
            self.client.close()

    def submit(self, number):
        key = f"{self.name}-{number}"
        jobs = [order("quick", {"token": f"{key}.{n}"}, tags={"kind": "race"}) for n in range(BATCH)]
        answer = self.client.change("POST", "/api/jobs/batch", {"jobs": jobs}, key)
        return [job["id"] for job in answer.body["jobs"]]

    def cancel(self, ids):
        if self.draw.random() < 0.3:
            ids.reverse()
        for id in ids:
            # Without a key: nobody kills here, and it would be stored before and after.
            answer = self.client.insist("POST", f"/api/jobs/{id}/cancel")
            if answer.status not in TOLD and answer.code != "illegal_transition":
                raise Refused(f"the cancel of {id} was answered {answer.status}: {answer.body}")
            self.told[id] = TOLD.get(answer.status) or answer.body["from"]


def judged(asked, jobs):
    """Both ends occurred, and each job has the one that was told."""
    wrong = [f"{id} is gone" for id in asked.keys() - jobs.keys()]
    for id, told in asked.items():
        expected = "CANCELED" if told == "asked" else told
        if id in jobs and jobs[id]["status"] != expected:
            wrong.append(f"{id} was told to be {told} and is {jobs[id]['status']}")
    for end in ("CANCELED", "COMPLETED"):
        if end not in {job["status"] for job in jobs.values()}:
            wrong.append(f"none is {end}: there was no race")
    return wrong


def sampled(server, book, asked, seed):
    """The whole trail of those that were cancelled while they ran, and of some others."""
    running = [id for id, told in asked.items() if told == "asked"]
    others = random.Random(f"{seed} sample").sample(sorted(asked), min(len(asked), SAMPLE))
    history = gathered(server, book, {*running[:SAMPLE], *others})
    history.lines = [line for line in history.lines if line["job"] in history.jobs]
    history.lines += [{"what": "cancelling", "id": id} for id in history.jobs]
    early = {id for id, told in asked.items() if told == "CANCELED"}
    began = [line["job"] for line in history.of("began") if line["job"] in early]
    return checker.findings(history) + [f"{id} began after it was cancelled" for id in began]


if __name__ == "__main__":
    main()
