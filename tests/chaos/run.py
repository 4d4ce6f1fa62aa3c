#!/usr/bin/env python3
"""kill -9 under a load of jobs: what was acknowledged is there, and everything ends once.

    tests/chaos/run.py [BINARY] [--store sqlite|postgres] [--kills N] [--seed N]

Clients submit and cancel jobs of every kind while the server is killed again and again. Then it is
left alone until every job has its end, and the history that clients and workers wrote is compared
with what the server says. OSTLER_CHAOS_KEEP keeps the directory with all of it.
"""

import random
import time

import checker
import rig
from aftermath import audited, audited_by_command, gathered, listed, settle, stopped
from client import Client
from killer import Killer
from load import FIRST, KINDS, Moment, Submitter, order

CLIENTS = 6
PACE = 0.2
COLUMNS = ["jobs", "completed", "failed", "canceled", "attempts", "lost"]


def main():
    kills = ("kills", "OSTLER_CHAOS_KILLS", 20, "how often the server is killed")
    chosen = rig.options(__doc__, kills)
    rig.judge(chosen, lambda server, book: chaos(server, book, chosen))


def chaos(server, book, chosen):
    began = time.monotonic()
    server.start()
    server.wait_until_it_answers()
    client = Client(server.socket)
    schedule = scheduled(client)
    kills, retries = killing(server, book, chosen)
    client.change("DELETE", f"/api/schedules/{schedule}", None, "no schedule", (200, 204))
    client.close()
    settle(server.socket)
    history = gathered(server, book, listed(server.socket), schedule)
    wrong = checker.findings(history) + shaken(history, retries)
    wrong += audited(server) + audited_by_command(server) + stopped(server)
    report(history, kills, retries)
    print(f"{chosen.store}, seed {chosen.seed}, {time.monotonic() - began:.0f} s")
    return wrong


def scheduled(client):
    job = order("quick", {"token": "tick"}, priority=FIRST, tags={"kind": "scheduled"})
    schedule = {"name": "tick", "cron": "@every 1s", "job": job}
    return client.change("POST", "/api/schedules", schedule, "schedule").body["id"]


def killing(server, book, chosen):
    """All the kills, under load; the last server lives on."""
    sent = Moment()
    submitters = [
        Submitter(f"c{n}", chosen.seed, server.socket, book, sent, PACE) for n in range(CLIENTS)
    ]
    killer = Killer(server, random.Random(f"{chosen.seed} killer"), sent)
    for submitter in submitters:
        submitter.start()
    try:
        for _ in range(chosen.kills):
            killer.strike()
            for submitter in submitters:
                submitter.complain()
        server.wait_until_it_answers()
    finally:
        for submitter in submitters:
            submitter.stopping.set()
    for submitter in submitters:
        submitter.join()
        submitter.complain()
    return killer.kills, sum(submitter.client.retries for submitter in submitters)


def shaken(history, retries):
    """Kills that hit nothing show nothing."""
    kinds = {job["tags"]["kind"] for job in history.jobs.values()}
    asked = {kind if isinstance(kind, str) else kind.__name__ for kind in KINDS}
    wrong = [f"there was no job of the kind {kind}" for kind in sorted(asked - kinds)]
    if not any(checker.numbers_of(job, "lost") for job in history.jobs.values()):
        wrong.append("no attempt was lost: the kills hit nothing")
    if not retries:
        wrong.append("no client had to ask again: the kills hit nothing")
    return wrong


def report(history, kills, retries):
    rows = {}
    for job in history.jobs.values():
        row = rows.setdefault(job["tags"]["kind"], dict.fromkeys(COLUMNS, 0))
        row["jobs"] += 1
        row[job["status"].lower()] += 1
        row["attempts"] += job["attempts"]
        row["lost"] += len(checker.numbers_of(job, "lost"))
    rows["all"] = {column: sum(row[column] for row in rows.values()) for column in COLUMNS}
    print(f"{'kind':10}" + "".join(f"{column:>11}" for column in COLUMNS))
    for kind, row in rows.items():
        print(f"{kind:10}" + "".join(f"{row[column]:11}" for column in COLUMNS))
    instants = ", ".join(f"{count} {name}" for name, count in sorted(kills.items()))
    acknowledged, executed = len(history.of("acknowledged")), len(history.of("began"))
    print(f"{sum(kills.values())} kills ({instants}), {acknowledged} acknowledgements, "
          f"{retries} times asked again, {executed} executions")


if __name__ == "__main__":
    main()
