//! What time alone brings about.

use super::*;

pub(in crate::ledger) async fn a_job_that_takes_too_long_is_canceled(world: World) -> World {
    let timed = || NewJob { timeout: Some(10 * SECOND), ..new_job() };
    let waiting = world.submit(timed()).await.id;
    let busy = world.submit_claimed(timed()).await;
    let between = world.submit_claimed(timed()).await;
    world.finish(&between, failed(AttemptFailure::Crashed)).await;
    world.pass(Duration::from_millis(9_999)).await;
    assert_eq!(world.job(&busy.job.id).await.cancel, None);
    world.told();
    world.pass(Duration::from_millis(1)).await;
    assert_eq!(world.status(&waiting).await, JobStatus::Pending, "its time begins with its start");
    let canceled = world.job(&between.job.id).await;
    assert_eq!(
        (canceled.status, canceled.reason.as_deref()),
        (JobStatus::Canceled, Some("timeout"))
    );
    let (job, fence, reason) = (busy.job.id.clone(), busy.fence, "timeout".to_owned());
    assert!(world.told().contains(&Notice::CancelAsked { job, fence, reason }));
    let ended = world.complete(&busy).await;
    assert_eq!((ended.status, ended.reason.as_deref()), (JobStatus::Canceled, Some("timeout")));
    let last = world.trail(&ended.id).await.pop().unwrap();
    assert_eq!((last.trigger.as_str(), last.actor.as_str()), ("timeout", "system"));
    world
}

pub(in crate::ledger) async fn a_timeout_covers_the_children(world: World) -> World {
    let parent = world.submit_claimed(NewJob { timeout: Some(SECOND), ..new_job() }).await;
    let child = world.submit(child_of(&parent.job.id)).await.id;
    world.complete(&parent).await;
    world.pass(SECOND).await;
    let parent = world.job(&parent.job.id).await;
    assert_eq!((parent.status, parent.reason.as_deref()), (JobStatus::Canceled, Some("timeout")));
    let child = world.job(&child).await;
    assert_eq!(child.reason.as_deref(), Some("parent_cancelled"));
    world
}

pub(in crate::ledger) async fn time_says_when_it_wants_to_be_asked_again(world: World) -> World {
    assert_eq!(world.ledger.keep_time().await.unwrap(), None);
    let claimed = world.submit_claimed(NewJob { timeout: Some(HOUR), ..new_job() }).await;
    assert!(world.told().contains(&Notice::DueSooner));
    let next = world.ledger.keep_time().await.unwrap();
    assert_eq!(next, claimed.job.deadline);
    let later = NewJob { timeout: Some(2 * HOUR), ..new_job() };
    world.submit_claimed(later).await;
    assert!(!world.told().contains(&Notice::DueSooner), "nothing is due sooner by that");
    world.complete(&claimed).await;
    let next = world.ledger.keep_time().await.unwrap().unwrap();
    assert_eq!(next.as_millisecond(), START + 7_200_000);
    world
}

pub(in crate::ledger) async fn more_than_a_chunk_is_done_in_turns(world: World) -> World {
    let timed = NewJob { timeout: Some(SECOND), ..new_job() };
    world.ledger.submit(vec![timed; 300], asked()).await.unwrap();
    while !world.claim_all().await.is_empty() {}
    world.clock.pass(SECOND);
    let next = world.ledger.keep_time().await.unwrap().unwrap();
    assert_eq!(next.as_millisecond(), START + 1_000, "at once");
    assert_eq!(world.ledger.keep_time().await.unwrap(), None);
    let notices = world.told();
    let asked = notices.iter().filter(|notice| matches!(notice, Notice::CancelAsked { .. }));
    assert_eq!(asked.count(), 300);
    world
}

pub(in crate::ledger) async fn ended_jobs_are_kept_for_their_time(mut world: World) -> World {
    world.bounded(|settings| settings.retention = HOUR).await;
    let claimed = world.submit_claimed(new_job()).await;
    let ended = world.complete(&claimed).await;
    let open = world.submit(new_job()).await.id;
    world.pass(HOUR).await;
    assert_eq!(world.job(&ended.id).await, ended);
    world.told();
    world.pass(Duration::from_millis(1)).await;
    let gone = world.ledger.job(&ended.id).await.unwrap_err();
    assert_eq!(gone, LedgerError::NoJob { id: ended.id.to_string() });
    assert!(world.told().contains(&Notice::JobPruned { job: ended.id.clone() }));
    assert!(world.trail(&ended.id).await.is_empty());
    assert!(world.ledger.attempts(&ended.id).await.unwrap().is_empty());
    assert!(world.ledger.events(&ended.id, 0, 10).await.unwrap().is_empty());
    assert_eq!(world.status(&open).await, JobStatus::Pending, "what has no end stays");
    let finished = world.ledger.finish(&ended.id, claimed.fence, done()).await.unwrap();
    assert_eq!(finished, Finished::Stale);
    world
}

pub(in crate::ledger) async fn children_are_kept_as_long_as_their_parent_may_look_for_them(
    mut world: World,
) -> World {
    world.bounded(|settings| settings.retention = HOUR).await;
    let parent = world.submit_claimed(new_job()).await;
    let child = NewJob { child_key: Some("k".to_owned()), ..child_of(&parent.job.id) };
    let ended = world.submit_claimed(child.clone()).await;
    world.complete(&ended).await;
    world.pass(2 * HOUR).await;
    assert!(world.try_submit(child).await.unwrap().known);
    world.complete(&parent).await;
    world.pass(2 * HOUR).await;
    assert!(world.ledger.jobs(&Default::default(), 10).await.unwrap().is_empty());
    world
}
