"""For every rule of the checker a history that it must not let pass, and one that is sound."""

import copy
import unittest

import checker
from checker import History

# 12:00:00 on this day, as the journal has it.
NOON = checker.seconds("2026-01-02T12:00:00Z")


def at(seconds):
    return f"2026-01-02T12:00:{seconds:06.3f}Z"


def job(id, statuses=("SUBMITTED", "PENDING", "RUNNING", "COMPLETED"), outcomes=("completed",), **more):
    steps = [
        {"seq": n + 1, "from": statuses[n - 1] if n else None, "to": status}
        for n, status in enumerate(statuses)
    ]
    attempts = [
        {"attempt": n + 1, "outcome": outcome, "ended_at": at(2)} for n, outcome in enumerate(outcomes)
    ]
    body = {
        "id": id, "status": statuses[-1], "function": "quick", "payload": {"token": id},
        "tags": {"key": f"key-{id}"}, "worker_count": 1, "parent_job_id": None, "schedule_id": None,
        "unique_key": None, "max_attempts": 3, "attempts": len(attempts), "attempt_list": attempts,
        "state_history": steps, "reason": None, "run_at": at(0), "created_at": at(0),
        "completed_at": at(5), "result": id if statuses[-1] == "COMPLETED" else None,
    }
    return {**body, **more}


def acknowledged(*ids, key=None, unique_key=None):
    return {"what": "acknowledged", "key": key or f"key-{ids[0]}", "ids": list(ids), "unique_key": unique_key}


def execution(id, attempt=1, shard=0, ended=True, began=1):
    line = {"job": id, "attempt": attempt, "shard": shard, "at": NOON + began}
    lines = [{**line, "what": "began"}]
    return lines + [{**line, "what": "ended"}] if ended else lines


def told(what, id, **more):
    return {"what": what, "id": id, **more}


ENDED = ("SUBMITTED", "PENDING", "RUNNING")


def sound():
    """One of everything that may happen."""
    jobs = [
        job("done"),
        job("tried", outcomes=("lost", "crashed", "completed")),
        job("lost", (*ENDED, "FAILED"), ("lost",), max_attempts=1, reason="lost"),
        job("broken", (*ENDED, "FAILED"), ("error",), function="broken", reason="application_error"),
        job("stopped", ("SUBMITTED", "CANCELED"), (), reason="cancelled"),
        job("late"),
        job("gang", function="shard", worker_count=2, result=[["gang", 0], ["gang", 1]]),
        job("top", function="parent", payload={"token": "top", "width": 2}, outcomes=("crashed", "completed")),
        job("left", parent_job_id="top", tags={"slot": "0"}),
        job("right", parent_job_id="top", tags={"slot": "1"}),
        job("first", unique_key="u", completed_at=at(5)),
        job("second", unique_key="u", created_at=at(5), completed_at=at(9)),
        job("tick", schedule_id="s", tags={}),
        job("tock", schedule_id="s", tags={}, created_at=at(6), completed_at=at(7)),
        job("b1", tags={"key": "batch"}),
        job("b2", tags={"key": "batch"}),
    ]
    lines = [acknowledged(id) for id in ("done", "done", "tried", "lost", "broken", "stopped", "late", "gang", "top")]
    lines += [
        acknowledged("b1", "b2", key="batch"),
        acknowledged("first", unique_key="u"),
        acknowledged("first", key="key-other", unique_key="u"),
        acknowledged("second", unique_key="u"),
        told("saw", "done", status="RUNNING"),
        told("saw", "done", status="COMPLETED"),
        told("cancelling", "stopped"),
        told("cancelled", "stopped"),
        told("cancelling", "late"),
        told("not cancelled", "late", status="COMPLETED"),
        *execution("tried", 2, ended=False),
        *execution("tried", 3),
        *execution("lost", ended=True),
        *execution("broken", ended=False),
        *execution("gang", shard=0),
        *execution("gang", shard=1),
        *execution("top", 1, ended=False),
        *execution("top", 2),
    ]
    alone = ("done", "late", "left", "right", "first", "second", "tick", "tock", "b1", "b2")
    for id in alone:
        lines += execution(id, began=5.5 if id == "second" else 6.5 if id == "tock" else 1)
    return History(lines, {job["id"]: job for job in jobs}, "s")


class Checker(unittest.TestCase):
    def setUp(self):
        self.history = sound()

    def job(self, id):
        return self.history.jobs[id]

    def add(self, *lines):
        self.history.lines += lines

    def found(self, rule):
        self.assertTrue(list(rule(self.history)), "it was let pass")

    def drop(self, what, id):
        self.history.lines = [
            line for line in self.history.lines if line["what"] != what or line.get("job") != id
        ]

    def test_a_sound_history_is_let_pass(self):
        self.assertEqual(checker.findings(self.history), [])

    def test_every_rule_is_asked(self):
        rules = [name for name, value in vars(checker).items()
                 if callable(value) and value.__doc__ and name.islower() and value.__module__ == "checker"
                 and name not in ("moment", "numbers_of")]
        self.assertEqual(sorted(rule.__name__ for rule in checker.RULES), sorted(rules))

    def test_an_acknowledged_job_that_is_gone(self):
        del self.history.jobs["lost"]
        self.found(checker.acknowledged_jobs_exist)

    def test_a_key_with_two_answers(self):
        self.add(acknowledged("tried", key="key-done"))
        self.found(checker.one_key_one_job)

    def test_a_key_that_made_a_second_job_that_nobody_was_told_of(self):
        self.history.jobs["twin"] = job("twin", tags={"key": "key-done"})
        self.found(checker.one_key_one_job)

    def test_half_a_batch(self):
        del self.history.jobs["b2"]
        self.found(checker.one_key_one_job)

    def test_a_unique_key_under_which_one_request_made_two(self):
        self.history.jobs["twin"] = job("twin", unique_key="v", tags={"key": "key-first"})
        self.found(checker.one_key_one_job)

    def test_a_gap_in_the_trail(self):
        self.job("done")["state_history"][2]["seq"] = 7
        self.found(checker.every_job_ends_once)

    def test_a_step_that_the_table_does_not_have(self):
        del self.job("done")["state_history"][1]
        self.found(checker.every_job_ends_once)

    def test_two_ends(self):
        steps = self.job("done")["state_history"]
        steps.append({"seq": 5, "from": "COMPLETED", "to": "CANCELED"})
        self.found(checker.every_job_ends_once)

    def test_a_status_that_the_trail_does_not_know(self):
        self.job("done")["status"] = "FAILED"
        self.found(checker.every_job_ends_once)

    def test_a_job_without_an_end(self):
        self.history.jobs["stuck"] = job("stuck", ENDED, ("lost",))
        self.found(checker.every_job_ends_once)

    def test_an_end_without_its_time(self):
        self.job("done")["completed_at"] = None
        self.found(checker.every_job_ends_once)

    def test_an_end_that_was_seen_and_taken_back(self):
        self.add(told("saw", "lost", status="COMPLETED"))
        self.found(checker.ends_stay)

    def test_an_execution_that_nobody_recorded(self):
        self.add(*execution("done", 2))
        self.found(checker.attempts_add_up)

    def test_an_attempt_that_began_twice(self):
        self.add(*execution("lost", 1))
        self.found(checker.attempts_add_up)

    def test_more_attempts_than_allowed(self):
        self.job("tried")["max_attempts"] = 2
        self.found(checker.attempts_add_up)

    def test_an_attempt_that_is_missing(self):
        del self.job("tried")["attempt_list"][1]
        self.found(checker.attempts_add_up)

    def test_an_attempt_without_an_end(self):
        self.job("tried")["attempt_list"][0]["outcome"] = None
        self.found(checker.attempts_add_up)

    def test_work_of_nobody(self):
        self.add(*execution("phantom"))
        self.found(checker.attempts_add_up)

    def test_a_shard_too_many(self):
        self.add(*execution("gang", shard=2))
        self.found(checker.attempts_add_up)

    def test_a_completed_job_that_nobody_did(self):
        self.drop("ended", "done")
        self.found(checker.completed_jobs_were_done)

    def test_a_gang_of_which_one_was_missing(self):
        self.history.lines = [
            line for line in self.history.lines if (line["what"], line.get("shard")) != ("ended", 1)
        ]
        self.found(checker.completed_jobs_were_done)

    def test_a_job_that_was_completed_by_an_older_attempt(self):
        self.drop("ended", "tried")
        self.add(*execution("tried", 2))
        self.found(checker.completed_jobs_were_done)

    def test_a_job_that_was_done_twice(self):
        self.job("tried")["attempt_list"][0]["outcome"] = "completed"
        self.found(checker.completed_jobs_were_done)

    def test_a_failed_job_that_was_done(self):
        self.job("lost")["attempt_list"][0]["outcome"] = "completed"
        self.found(checker.completed_jobs_were_done)

    def test_the_result_of_another(self):
        self.job("done")["result"] = "tried"
        self.found(checker.completed_jobs_were_done)

    def test_work_after_the_end(self):
        self.add(*execution("stopped", began=6))
        self.found(checker.nothing_begins_after_the_end)

    def test_a_cancellation_that_was_forgotten(self):
        self.add(told("cancelling", "done"), told("cancelled", "done"))
        self.found(checker.cancellations_hold)

    def test_a_refusal_that_was_not_true(self):
        self.add(told("not cancelled", "lost", status="COMPLETED"))
        self.found(checker.cancellations_hold)

    def test_a_cancellation_that_was_refused_after_its_own_effect(self):
        self.add(told("not cancelled", "stopped", status="CANCELED"))
        self.found(checker.cancellations_hold)

    def test_a_job_that_failed_with_attempts_left(self):
        self.job("lost")["max_attempts"] = 3
        self.found(checker.ends_have_a_cause)

    def test_a_failure_of_a_sound_function(self):
        self.history.jobs["odd"] = job("odd", (*ENDED, "FAILED"), ("error",), reason="application_error")
        self.found(checker.ends_have_a_cause)

    def test_a_failure_whose_attempt_says_otherwise(self):
        self.job("lost")["attempt_list"][0]["outcome"] = "crashed"
        self.found(checker.ends_have_a_cause)

    def test_a_parent_that_failed_by_children_that_are_well(self):
        self.job("top").update(status="FAILED", reason="child_failed")
        self.found(checker.ends_have_a_cause)

    def test_a_cancellation_that_nobody_asked_for(self):
        self.history.jobs["gone"] = job("gone", ("SUBMITTED", "CANCELED"), (), reason="cancelled")
        self.found(checker.ends_have_a_cause)

    def test_a_child_that_was_cancelled_under_a_sound_parent(self):
        self.job("left").update(status="CANCELED", reason="sibling_failed")
        self.found(checker.ends_have_a_cause)

    def test_a_doubled_child(self):
        self.history.jobs["twin"] = job("twin", parent_job_id="top", tags={"slot": "0"})
        self.found(checker.children_are_not_doubled)

    def test_a_completed_parent_that_lacks_a_child(self):
        del self.history.jobs["left"]
        self.found(checker.children_are_not_doubled)

    def test_a_parent_that_did_not_wait(self):
        self.job("left")["completed_at"] = at(8)
        self.found(checker.children_are_not_doubled)

    def test_two_with_one_unique_key(self):
        self.job("second")["created_at"] = at(4)
        self.found(checker.unique_jobs_do_not_meet)

    def test_a_unique_key_that_led_to_another(self):
        self.add(acknowledged("first", key="key-third", unique_key="v"))
        self.found(checker.unique_jobs_do_not_meet)

    def test_a_schedule_that_made_none(self):
        self.history.schedule = "other"
        self.found(checker.scheduled_jobs_do_not_meet)

    def test_a_schedule_that_did_not_wait(self):
        self.job("tock")["created_at"] = at(3)
        self.found(checker.scheduled_jobs_do_not_meet)

    def test_work_before_its_time(self):
        self.job("done")["run_at"] = at(3)
        self.found(checker.nothing_begins_before_its_time)

    def test_the_findings_name_their_rule_and_their_job(self):
        untouched = copy.deepcopy(self.history)
        self.job("done")["result"] = "tried"
        findings = checker.findings(self.history)
        self.assertEqual(len(findings), 1)
        self.assertIn("A completed job was done", findings[0])
        self.assertIn("done", findings[0])
        self.assertEqual(checker.findings(untouched), [])


if __name__ == "__main__":
    unittest.main()
