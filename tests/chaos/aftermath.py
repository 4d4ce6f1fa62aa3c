"""When nobody kills any more: every job comes to its end, and what the server says is gathered."""

import concurrent.futures
import time

import journal
from checker import History
from client import Client
from server import Failed

# Without the end of any job for so long, something is stuck.
STUCK = 60
OPEN = ["SUBMITTED", "PENDING", "RUNNING"]
READERS = 4


def settle(socket):
    client = Client(socket)
    before, since = None, time.monotonic()
    while open_ones := waiting(client):
        if open_ones != before:
            before, since = open_ones, time.monotonic()
        if time.monotonic() - since > STUCK:
            raise Failed(f"these have no end for {STUCK} s: {sorted(open_ones)[:10]}")
        time.sleep(0.05)
    client.close()


def waiting(client):
    return {job["id"] for status in OPEN for job in client.pages(f"/api/jobs?status={status}")}


def listed(socket):
    """All jobs by their ids, as a list shows them."""
    client = Client(socket)
    jobs = {job["id"]: job for job in client.pages("/api/jobs")}
    client.close()
    return jobs


def gathered(server, book, ids, schedule=None):
    """Everything that the server says of these jobs, beside the journal."""
    ids = sorted(ids)
    parts = [ids[n::READERS] for n in range(READERS)]
    with concurrent.futures.ThreadPoolExecutor(READERS) as readers:
        bodies = readers.map(lambda part: whole(server.socket, part), parts)
        jobs = {job["id"]: job for part in bodies for job in part}
    return History(journal.read(book.path, server.journal.path), jobs, schedule)


def whole(socket, ids):
    client = Client(socket)
    jobs = []
    for id in ids:
        job = client.get(f"/api/jobs/{id}")
        job.setdefault("result", None)
        attempts = client.get(f"/api/jobs/{id}/attempts")["items"]
        job["attempt_list"] = sorted(attempts, key=lambda attempt: attempt["attempt"])
        jobs.append(job)
    client.close()
    return jobs


def audited(server):
    """What the server's own replay of its trail finds."""
    client = Client(server.socket)
    report = client.get("/api/audit/verify")
    client.close()
    wrong = [f"the audit finds {finding}" for finding in report["findings"]]
    if report["jobs"] == 0 or report["workers"] == 0:
        wrong.append(f"the audit saw nothing: {report}")
    return wrong


def audited_by_command(server):
    """The same as its operator asks for it."""
    ran = server.run("audit", "verify")
    said = f"{ran.stdout}{ran.stderr}"
    return [f"`ostler audit verify` ended with {ran.returncode}: {said}"] if ran.returncode else []


def stopped(server):
    """Ends it in order; what did not end with it."""
    server.stop()
    left = server.left_behind(range(1, server.boots + 1))
    return [f"process {pid} outlived its server" for pid in left]
