//! How attempts end, and jobs with them.

use super::*;
use crate::clock::Clock as _;

pub(in crate::ledger) async fn a_crash_is_tried_again_until_the_attempts_are_used_up(
    world: World,
) -> World {
    let job = world.submit(new_job()).await.id;
    for attempt in 1..=2 {
        let claimed = world.claim().await;
        assert_eq!(claimed.attempt, attempt);
        let after = world.finish(&claimed, failed(AttemptFailure::Crashed)).await;
        assert_eq!((after.status, after.attempt), (JobStatus::Running, attempt));
        assert_eq!(after.error, Some(error()), "the last attempt's");
        assert!(world.claim_all().await.is_empty(), "not at once");
        let next = world.ledger.keep_time().await.unwrap().unwrap();
        let delay = next.as_millisecond() - world.clock.wall();
        let base = 1_000 * (1 << (attempt - 1));
        assert!((base * 8 / 10..=base * 12 / 10).contains(&delay), "{attempt}: {delay} ms");
        world.told();
        world.pass(Duration::from_millis(delay as u64)).await;
        assert!(world.told().contains(&Notice::Ready { pool: "py".to_owned() }));
    }
    let claimed = world.claim().await;
    let ended = world.finish(&claimed, failed(AttemptFailure::Crashed)).await;
    assert_eq!(
        (ended.status, ended.reason.as_deref()),
        (JobStatus::Failed, Some("worker_crashed"))
    );
    assert_eq!(ended.error, Some(error()));
    assert_eq!(world.path(&job).await, ["SUBMITTED", "PENDING", "RUNNING", "FAILED"]);
    let attempts = world.ledger.attempts(&job).await.unwrap();
    let outcomes: Vec<Option<&str>> = attempts.iter().map(|one| one.outcome.as_deref()).collect();
    assert_eq!(outcomes, [Some("crashed"); 3]);
    assert!(attempts.iter().all(|one| one.ended_at.is_some() && one.error == Some(error())));
    world
}

pub(in crate::ledger) async fn what_went_wrong_is_the_reason(world: World) -> World {
    let reasons = [
        (AttemptFailure::Error, "application_error"),
        (AttemptFailure::Retryable, "application_error"),
        (AttemptFailure::Crashed, "worker_crashed"),
        (AttemptFailure::Lost, "lost"),
        (AttemptFailure::Invalid, "invalid_arguments"),
    ];
    for (failure, reason) in reasons {
        let claimed = world.submit_claimed(once()).await;
        let ended = world.finish(&claimed, failed(failure)).await;
        assert_eq!((ended.status, ended.reason.as_deref()), (JobStatus::Failed, Some(reason)));
        let last = world.trail(&ended.id).await.pop().unwrap();
        assert_eq!(last.reason.as_deref(), Some(reason));
    }
    world
}

pub(in crate::ledger) async fn an_exception_fails_at_once_unless_it_is_to_be_retried(
    world: World,
) -> World {
    let claimed = world.submit_claimed(new_job()).await;
    assert_eq!(world.fail(&claimed).await.status, JobStatus::Failed);
    let retrying = Retrying { on_error: true, ..Retrying::default() };
    let claimed = world.submit_claimed(NewJob { retrying, ..new_job() }).await;
    assert_eq!(world.fail(&claimed).await.status, JobStatus::Running);
    world.clock.pass(HOUR);
    let again = world.claim().await;
    let invalid = world.finish(&again, failed(AttemptFailure::Invalid)).await;
    assert_eq!(invalid.status, JobStatus::Failed, "what never fits is not tried again");
    world
}

pub(in crate::ledger) async fn an_error_that_was_overcome_is_not_shown(world: World) -> World {
    let claimed = world.submit_claimed(new_job()).await;
    world.finish(&claimed, failed(AttemptFailure::Retryable)).await;
    world.clock.pass(HOUR);
    let again = world.claim().await;
    assert_eq!(again.job.error, Some(error()));
    let ended = world.complete(&again).await;
    assert_eq!((ended.status, ended.error), (JobStatus::Completed, None));
    world
}

pub(in crate::ledger) async fn an_attempt_that_never_began_does_not_count(world: World) -> World {
    let job = world.submit(NewJob { timeout: Some(HOUR), ..once() }).await.id;
    for fence in 1..=3 {
        let claimed = world.claim().await;
        assert_eq!((claimed.attempt, claimed.fence), (1, fence));
        world.told();
        let released = world.finish(&claimed, AttemptEnd::Released).await;
        assert_eq!((released.status, released.attempt), (JobStatus::Running, 0));
        assert_eq!((released.started_at, released.deadline), (None, None), "nor did its time");
        assert!(world.told().contains(&Notice::Ready { pool: "py".to_owned() }));
        assert!(world.ledger.attempts(&job).await.unwrap().is_empty());
    }
    let claimed = world.claim().await;
    assert_eq!(world.complete(&claimed).await.status, JobStatus::Completed);
    world
}

pub(in crate::ledger) async fn a_result_beyond_its_bound_fails_the_job(mut world: World) -> World {
    world.bounded(|settings| settings.result_max = 2).await;
    let claimed = world.submit_claimed(new_job()).await;
    let ended = world.finish(&claimed, AttemptEnd::Completed(content("\"long\""))).await;
    assert_eq!(ended.status, JobStatus::Failed);
    assert_eq!(ended.reason.as_deref(), Some("result_too_large"));
    assert_eq!(ended.result, None);
    assert_eq!(world.job(&ended.id).await, ended);
    let fits = world.submit_claimed(new_job()).await;
    assert_eq!(world.complete(&fits).await.status, JobStatus::Completed);
    world
}

pub(in crate::ledger) async fn what_nobody_works_on_is_canceled_at_once(world: World) -> World {
    let job = world.submit(new_job()).await.id;
    let asked = Asked { reason: Some("not needed".to_owned()), ..asked() };
    let canceled = world.ledger.cancel(&job, asked).await.unwrap();
    assert_eq!(canceled.status, JobStatus::Canceled);
    assert_eq!(canceled.reason.as_deref(), Some("cancelled"));
    assert_eq!(canceled.cancel.as_ref().map(|cancel| cancel.by.as_str()), Some("tester"));
    let last = world.trail(&job).await.pop().unwrap();
    assert_eq!((last.trigger.as_str(), last.reason.as_deref()), ("cancel", Some("not needed")));
    assert_eq!((last.actor.as_str(), last.request_id.as_deref()), ("tester", Some("r_1")));
    assert!(world.claim_all().await.is_empty());
    world
}

pub(in crate::ledger) async fn what_runs_is_canceled_when_it_has_let_go(world: World) -> World {
    for end in [done(), AttemptEnd::Canceled, AttemptEnd::Released, failed(AttemptFailure::Error)] {
        let claimed = world.submit_claimed(new_job()).await;
        let id = claimed.job.id.clone();
        world.told();
        let words = Asked { reason: Some("my words".to_owned()), ..asked() };
        let flagged = world.ledger.cancel(&id, words).await.unwrap();
        assert_eq!(flagged.status, JobStatus::Running);
        assert_eq!(flagged.cancel.as_ref().map(|cancel| cancel.reason.as_str()), Some("cancelled"));
        let (fence, reason) = (claimed.fence, "cancelled".to_owned());
        assert!(world.told().contains(&Notice::CancelAsked { job: id.clone(), fence, reason }));
        let again = world.cancel(&id).await;
        assert_eq!(again, flagged, "asking again changes nothing");
        let ended = world.finish(&claimed, end).await;
        assert_eq!((ended.status, ended.result), (JobStatus::Canceled, None));
        let last = world.trail(&id).await.pop().unwrap();
        assert_eq!((last.reason.as_deref(), last.actor.as_str()), (Some("my words"), "tester"));
        assert_eq!(last.request_id.as_deref(), Some("r_1"));
    }
    world
}

pub(in crate::ledger) async fn what_has_ended_is_not_canceled(world: World) -> World {
    let claimed = world.submit_claimed(new_job()).await;
    let ended = world.complete(&claimed).await;
    let error = world.ledger.cancel(&ended.id, asked()).await.unwrap_err();
    let (id, from, to) = (ended.id.clone(), JobStatus::Completed, JobStatus::Canceled);
    assert_eq!(error, LedgerError::Illegal { id, from, to, allowed: Vec::new() });
    assert_eq!(world.job(&ended.id).await, ended);
    let nobody = JobId::fresh();
    let error = world.ledger.cancel(&nobody, asked()).await.unwrap_err();
    assert_eq!(error, LedgerError::NoJob { id: nobody.to_string() });
    world
}

pub(in crate::ledger) async fn a_handler_that_gives_up_by_itself_is_canceled(
    world: World,
) -> World {
    let claimed = world.submit_claimed(new_job()).await;
    let ended = world.finish(&claimed, AttemptEnd::Canceled).await;
    assert_eq!((ended.status, ended.reason.as_deref()), (JobStatus::Canceled, Some("cancelled")));
    assert_eq!(ended.cancel.map(|cancel| cancel.by).as_deref(), Some("system"));
    world
}

pub(in crate::ledger) async fn what_waits_for_its_next_attempt_is_canceled_at_once(
    world: World,
) -> World {
    let claimed = world.submit_claimed(new_job()).await;
    world.finish(&claimed, failed(AttemptFailure::Crashed)).await;
    assert_eq!(world.cancel(&claimed.job.id).await.status, JobStatus::Canceled);
    world.clock.pass(HOUR);
    assert!(world.claim_all().await.is_empty());
    world
}

pub(in crate::ledger) async fn cancel_against_completion_has_one_end(world: World) -> World {
    for round in 0..100 {
        let claimed = world.submit_claimed(new_job()).await;
        let id = claimed.job.id.clone();
        let (cancel, finish) = if round % 2 == 0 {
            tokio::join!(
                world.ledger.cancel(&id, asked()),
                world.ledger.finish(&id, claimed.fence, done())
            )
        } else {
            let (finish, cancel) = tokio::join!(
                world.ledger.finish(&id, claimed.fence, done()),
                world.ledger.cancel(&id, asked())
            );
            (cancel, finish)
        };
        let Finished::Taken(ended) = finish.unwrap() else { panic!("its fence is current") };
        match cancel {
            Ok(_) => assert_eq!(ended.status, JobStatus::Canceled),
            Err(_) => assert_eq!(ended.status, JobStatus::Completed),
        }
        assert_eq!(world.path(&id).await.len(), 4);
    }
    world
}
