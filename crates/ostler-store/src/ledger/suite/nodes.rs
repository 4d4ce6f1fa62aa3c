//! Servers that end, and what those after them find.

use super::*;

pub(in crate::ledger) async fn what_ran_when_the_server_died_is_tried_again(
    mut world: World,
) -> World {
    let old = world.submit_claimed(new_job()).await;
    let pending = world.submit(new_job()).await.id;
    let node = world.ledger.node().to_owned();
    world.crash().await;
    assert_ne!(world.ledger.node(), node);
    let lost = world.job(&old.job.id).await;
    assert_eq!((lost.status, lost.attempt), (JobStatus::Running, 1));
    assert_eq!(lost.error.unwrap()["code"], "lost");
    let attempt = world.ledger.attempts(&old.job.id).await.unwrap().remove(0);
    assert_eq!((attempt.outcome.as_deref(), attempt.node), (Some("lost"), node));
    assert!(attempt.ended_at.is_some());
    let stale = world.ledger.finish(&old.job.id, old.fence, done()).await.unwrap();
    assert_eq!(stale, Finished::Stale, "the old one has no say any more");
    assert_eq!(world.claim().await.job.id, pending);
    world.clock.pass(2 * SECOND);
    let again = world.claim().await;
    assert_eq!((&again.job.id, again.attempt), (&old.job.id, 2));
    assert!(again.fence > old.fence);
    assert_eq!(world.complete(&again).await.status, JobStatus::Completed);
    world
}

pub(in crate::ledger) async fn what_may_run_only_once_fails_as_lost(mut world: World) -> World {
    let claimed = world.submit_claimed(once()).await;
    let unclaimed = world.submit(once()).await.id;
    world.crash().await;
    let lost = world.job(&claimed.job.id).await;
    assert_eq!((lost.status, lost.reason.as_deref()), (JobStatus::Failed, Some("lost")));
    assert_eq!(world.claim().await.job.id, unclaimed, "what never began may begin");
    world
}

pub(in crate::ledger) async fn what_was_to_be_cancelled_is_canceled_by_the_next_server(
    mut world: World,
) -> World {
    let parent = world.submit_claimed(new_job()).await;
    let child = world.submit_claimed(child_of(&parent.job.id)).await;
    world.complete(&parent).await;
    world.cancel(&parent.job.id).await;
    world.crash().await;
    assert_eq!(world.status(&child.job.id).await, JobStatus::Canceled);
    assert_eq!(world.status(&parent.job.id).await, JobStatus::Canceled);
    world
}

pub(in crate::ledger) async fn a_lost_child_fails_its_parent(mut world: World) -> World {
    let parent = world.submit_claimed(new_job()).await;
    let child =
        world.submit_claimed(NewJob { parent: Some(parent.job.id.clone()), ..once() }).await;
    world.complete(&parent).await;
    world.crash().await;
    assert_eq!(world.status(&child.job.id).await, JobStatus::Failed);
    let parent = world.job(&parent.job.id).await;
    assert_eq!(parent.reason.as_deref(), Some("child_failed"));
    world
}

pub(in crate::ledger) async fn many_lost_attempts_are_all_settled(mut world: World) -> World {
    world.ledger.submit(vec![new_job(); 600], asked()).await.unwrap();
    let mut claimed = 0;
    while let more @ 1.. = world.claim_all().await.len() {
        claimed += more;
    }
    assert_eq!(claimed, 600);
    world.crash().await;
    world.clock.pass(2 * SECOND);
    let mut again = 0;
    while let more @ 1.. = world.claim_all().await.len() {
        again += more;
    }
    assert_eq!(again, 600);
    world
}

pub(in crate::ledger) async fn time_goes_on_where_it_was_after_a_restart(
    mut world: World,
) -> World {
    let timed = world.submit_claimed(NewJob { timeout: Some(10 * SECOND), ..new_job() }).await;
    let run_at = jiff::Timestamp::from_millisecond(START + 5_000).unwrap();
    let later = world.submit(NewJob { run_at: Some(run_at), ..new_job() }).await.id;
    world.crash().await;
    world.pass(5 * SECOND).await;
    assert_eq!(world.status(&later).await, JobStatus::Pending);
    assert!(world.told().contains(&Notice::Ready { pool: "py".to_owned() }));
    world.pass(5 * SECOND).await;
    let timed = world.job(&timed.job.id).await;
    assert_eq!((timed.status, timed.reason.as_deref()), (JobStatus::Canceled, Some("timeout")));
    world
}

pub(in crate::ledger) async fn a_closed_ledger_takes_nothing(mut world: World) -> World {
    let closed = world.ledger.clone();
    world.restart().await;
    let error = closed.submit(vec![new_job()], asked()).await.unwrap_err();
    assert!(matches!(error, LedgerError::Unavailable { .. }), "{error:?}");
    world
}
