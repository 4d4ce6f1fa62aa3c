"""Judges a history: what clients were told and workers did, against what the server says in the end.

Each rule is a function that yields what it finds. It knows nothing of servers, files and threads;
test_checker.py shows for every rule a history that it must not let pass.
"""

import dataclasses
import datetime
import functools
from collections import Counter, defaultdict

ENDS = {"COMPLETED", "FAILED", "CANCELED"}
STEPS = {
    None: {"SUBMITTED"},
    "SUBMITTED": {"PENDING", "CANCELED", "FAILED"},
    "PENDING": {"RUNNING", "CANCELED", "FAILED"},
    "RUNNING": ENDS,
}
# What a failed job's last attempt must have come to.
OUTCOMES = {
    "lost": {"lost"},
    "worker_crashed": {"crashed"},
    "application_error": {"error", "retryable"},
}
# Reasons of a cancellation that nobody outside asked for.
INHERITED = {"parent_cancelled", "parent_failed", "sibling_failed"}


@dataclasses.dataclass
class History:
    """`lines`: the journal. `jobs`: by id, as the API shows them, each with its `attempt_list`."""

    lines: list
    jobs: dict
    schedule: str = None

    def of(self, what):
        return [line for line in self.lines if line["what"] == what]

    def children(self, id):
        return self.families.get(id, [])

    @functools.cached_property
    def families(self):
        found = defaultdict(list)
        for job in self.jobs.values():
            found[job["parent_job_id"]].append(job)
        return found

    def executions(self, what):
        """(job, shard) → attempts, in the order of the journal."""
        found = defaultdict(list)
        for line in self.of(what):
            found[line["job"], line["shard"]].append(line["attempt"])
        return found


def findings(history):
    return [f"{rule.__doc__.splitlines()[0]}: {found}" for rule in RULES for found in rule(history)]


def acknowledged_jobs_exist(history):
    """What was acknowledged is there"""
    for line in history.of("acknowledged"):
        for id in line["ids"]:
            if id not in history.jobs:
                yield f"{id}, acknowledged under {line['key']}, is not"


def one_key_one_job(history):
    """One key, one effect"""
    acknowledged, made = {}, defaultdict(set)
    for job in history.jobs.values():
        if "key" in job["tags"]:
            made[job["tags"]["key"]].add(job["id"])
    for line in history.of("acknowledged"):
        key, ids = line["key"], line["ids"]
        if acknowledged.setdefault(key, ids) != ids:
            yield f"{key} was answered {acknowledged[key]} and then {ids}"
        # With a unique key it may be somebody else's, but there is still at most one of its own.
        if line["unique_key"] is None and made[key] != set(ids):
            yield f"{key} was answered {sorted(ids)} and made {sorted(made[key])}"
        if len(made[key]) > len(ids):
            yield f"{key} made {sorted(made[key])}"


def every_job_ends_once(history):
    """Every job ends once, along the table"""
    for id, job in history.jobs.items():
        steps = job["state_history"]
        if [step["seq"] for step in steps] != list(range(1, len(steps) + 1)):
            yield f"{id}: gaps in {[step['seq'] for step in steps]}"
        before = None
        for step in steps:
            if step["from"] != before or step["to"] not in STEPS.get(before, ()):
                yield f"{id}: {step['from']} to {step['to']} after {before}"
            before = step["to"]
        if before != job["status"]:
            yield f"{id} is {job['status']}, its trail says {before}"
        if job["status"] not in ENDS or job["completed_at"] is None:
            yield f"{id} is {job['status']}, completed at {job['completed_at']}"


def ends_stay(history):
    """An end that was seen is the end"""
    for line in history.of("saw"):
        job = history.jobs.get(line["id"])
        if line["status"] in ENDS and job and job["status"] != line["status"]:
            yield f"{line['id']} was seen {line['status']} and is {job['status']}"


def attempts_add_up(history):
    """Every execution is a recorded attempt, and begins once"""
    began = history.executions("began")
    for id, job in history.jobs.items():
        recorded = [attempt["attempt"] for attempt in job["attempt_list"]]
        if recorded != list(range(1, job["attempts"] + 1)):
            yield f"{id} has {job['attempts']} attempts, recorded are {recorded}"
        if len(recorded) > job["max_attempts"]:
            yield f"{id} may have {job['max_attempts']} attempts and has {recorded}"
        for attempt in job["attempt_list"]:
            if attempt["outcome"] is None or attempt["ended_at"] is None:
                yield f"{id}: attempt {attempt['attempt']} has no end"
        for shard in range(job["worker_count"]):
            executed = began[id, shard]
            if len(set(executed)) != len(executed):
                yield f"{id} shard {shard} began {executed}"
            if not set(executed) <= set(recorded):
                yield f"{id} shard {shard} began {executed}, recorded are {recorded}"
    for id, shard in began:
        if id not in history.jobs or shard >= history.jobs[id]["worker_count"]:
            yield f"{id} shard {shard} began, and is no work of anybody"


def completed_jobs_were_done(history):
    """A completed job was done, by the attempt that says so"""
    ended = history.executions("ended")
    for id, job in history.jobs.items():
        outcomes = [attempt["outcome"] for attempt in job["attempt_list"]]
        if job["status"] != "COMPLETED":
            # A parent fails by what its children do after it was done.
            if job["status"] == "FAILED" and "completed" in outcomes and not history.children(id):
                yield f"{id} is FAILED and was done: {outcomes}"
            continue
        if outcomes.count("completed") != 1 or outcomes[-1] != "completed":
            yield f"{id} is COMPLETED after {outcomes}"
        for shard in range(job["worker_count"]):
            if ended[id, shard][-1:] != [job["attempts"]]:
                yield f"{id} is COMPLETED by attempt {job['attempts']}, done by {ended[id, shard]}"
        if job["result"] != expected(job):
            yield f"{id} has the result {job['result']}, not {expected(job)}"


def expected(job):
    token = job["payload"]["token"]
    return [[token, n] for n in range(job["worker_count"])] if job["function"] == "shard" else token


def nothing_begins_after_the_end(history):
    """Nothing begins after the end"""
    for line in history.of("began"):
        job = history.jobs.get(line["job"])
        # A killed server's worker has a moment left in which the next server knows that it is lost.
        lost = job and line["attempt"] in numbers_of(job, "lost")
        if job and job["completed_at"] and not lost and line["at"] > seconds(job["completed_at"]) + 0.001:
            yield f"{line['job']} ended {job['completed_at']}, attempt {line['attempt']} began later"


def numbers_of(job, outcome):
    return {a["attempt"] for a in job["attempt_list"] if a["outcome"] == outcome}


def cancellations_hold(history):
    """A cancellation that was accepted holds, and one that was refused came too late"""
    asked = Counter(line["id"] for line in history.of("cancelling"))
    for line in history.of("cancelled"):
        job = history.jobs.get(line["id"])
        if job and job["status"] != "CANCELED":
            yield f"{line['id']} was cancelled and is {job['status']}"
    for line in history.of("not cancelled"):
        job = history.jobs.get(line["id"])
        if job and job["status"] != line["status"]:
            yield f"{line['id']} was said to be {line['status']} and is {job['status']}"
        if line["status"] == "CANCELED" and asked[line["id"]] == 1:
            yield f"{line['id']} was cancelled by a request that was then refused"


def ends_have_a_cause(history):
    """Every failure and cancellation has a cause"""
    asked = {line["id"] for line in history.of("cancelling")}
    for id, job in history.jobs.items():
        if job["status"] == "FAILED" and not failed_rightly(history, job):
            outcomes = [attempt["outcome"] for attempt in job["attempt_list"]]
            yield f"{id} ({job['function']}) FAILED by {job['reason']} after {outcomes}"
        if job["status"] == "CANCELED" and not cancelled_rightly(history, job, asked):
            yield f"{id} ({job['function']}) CANCELED by {job['reason']}"


def failed_rightly(history, job):
    if job["reason"] == "child_failed":
        return any(child["status"] != "COMPLETED" for child in history.children(job["id"]))
    last = job["attempt_list"][-1]["outcome"] if job["attempt_list"] else None
    if last not in OUTCOMES.get(job["reason"], ()):
        return False
    return last == "error" and job["function"] == "broken" or job["attempts"] == job["max_attempts"]


def cancelled_rightly(history, job, asked):
    if job["reason"] == "cancelled":
        return job["id"] in asked
    parent = history.jobs.get(job["parent_job_id"])
    return job["reason"] in INHERITED and parent is not None and parent["status"] != "COMPLETED"


def children_are_not_doubled(history):
    """A parent that is tried again finds its children"""
    for id, job in history.jobs.items():
        children = history.children(id)
        slots = [child["tags"]["slot"] for child in children]
        if len(set(slots)) != len(slots):
            yield f"{id} has children {sorted(slots)} after {job['attempts']} attempts"
        if job["function"] == "parent" and job["status"] == "COMPLETED":
            if len(slots) != job["payload"]["width"]:
                yield f"{id} is COMPLETED with children {sorted(slots)}"
            for child in children:
                early = child["status"] != "COMPLETED" or moment(child) > moment(job)
                if early:
                    yield f"{id} is COMPLETED before its child {child['id']}, {child['status']}"


def unique_jobs_do_not_meet(history):
    """Of the living there is one with a unique key"""
    lives = defaultdict(list)
    for job in history.jobs.values():
        if job["unique_key"] is not None:
            lives[job["unique_key"]].append(job)
    yield from meetings(lives)
    for line in history.of("acknowledged"):
        for job in (history.jobs.get(id) for id in line["ids"]):
            if line["unique_key"] is not None and job and job["unique_key"] != line["unique_key"]:
                yield f"{line['key']} asked for {line['unique_key']} and was given {job['id']}"


def scheduled_jobs_do_not_meet(history):
    """A schedule leaves a time out while its last job has no end"""
    if history.schedule is None:
        return
    jobs = [job for job in history.jobs.values() if job["schedule_id"] == history.schedule]
    if not jobs:
        yield f"{history.schedule} made none"
    yield from meetings({history.schedule: jobs})


def meetings(lives):
    for key, jobs in lives.items():
        jobs.sort(key=lambda job: seconds(job["created_at"]))
        for job, following in zip(jobs, jobs[1:]):
            if job["completed_at"] and moment(job) > seconds(following["created_at"]):
                yield f"{key}: {job['id']} had no end when {following['id']} came"


def nothing_begins_before_its_time(history):
    """Nothing begins before its time"""
    for line in history.of("began"):
        job = history.jobs.get(line["job"])
        # Kept in whole milliseconds.
        if job and job["run_at"] and line["at"] < seconds(job["run_at"]) - 0.001:
            yield f"{line['job']} was for {job['run_at']} and began {line['at']}"


def moment(job):
    """When it ended."""
    return seconds(job["completed_at"]) if job["completed_at"] else float("inf")


def seconds(text):
    # Before Python 3.11 only some numbers of digits are understood.
    head, _, fraction = text.removesuffix("Z").partition(".")
    whole = datetime.datetime.fromisoformat(head).replace(tzinfo=datetime.timezone.utc)
    return whole.timestamp() + float(f"0.{fraction or 0}")


RULES = [
    acknowledged_jobs_exist,
    one_key_one_job,
    every_job_ends_once,
    ends_stay,
    attempts_add_up,
    completed_jobs_were_done,
    nothing_begins_after_the_end,
    cancellations_hold,
    ends_have_a_cause,
    children_are_not_doubled,
    unique_jobs_do_not_meet,
    scheduled_jobs_do_not_meet,
    nothing_begins_before_its_time,
]
