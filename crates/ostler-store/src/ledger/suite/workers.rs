//! The status of workers and its trail.

use jiff::Timestamp;
use ostler_core::Status;

use super::super::worker::{Stored, WorkerChange};
use super::*;

/// The n-th change of a worker that is made, started and paused.
pub(super) fn change(worker: &str, seq: u64) -> WorkerChange {
    let (from, to, trigger) = match seq {
        1 => (None, Status::Idle, "create"),
        2 => (Some(Status::Idle), Status::Running, "start"),
        _ => (Some(Status::Running), Status::Paused, "pause"),
    };
    WorkerChange {
        worker: worker.to_owned(),
        name: "py-3".to_owned(),
        pool: "py".to_owned(),
        workspace: "default".to_owned(),
        dedicated: false,
        seq,
        from,
        to,
        trigger: trigger.to_owned(),
        reason: None,
        at: Timestamp::from_millisecond(START).unwrap(),
        asked: Asked::default(),
    }
}

async fn record(world: &World, changes: impl IntoIterator<Item = WorkerChange>) {
    for change in changes {
        assert_eq!(world.ledger.record(change).await, Stored::Yes);
    }
}

async fn worker_trail(world: &World, id: &str) -> Vec<Transition> {
    world.ledger.transitions(Entity::Worker, id, 0, 100).await.unwrap()
}

pub(in crate::ledger) async fn changes_are_stored_in_their_order(mut world: World) -> World {
    record(&world, (1..=3).map(|seq| change("w_1", seq))).await;
    world.crash().await;
    let worker = world.ledger.worker("w_1").await.unwrap().unwrap();
    assert_eq!((worker.name.as_str(), worker.pool.as_str()), ("py-3", "py"));
    let trail = worker_trail(&world, "w_1").await;
    let path: Vec<&str> = trail.iter().map(|step| step.to.as_str()).collect();
    assert_eq!(path, ["IDLE", "RUNNING", "PAUSED", "TERMINATED"]);
    assert_eq!(trail[0].actor, "system");
    assert_eq!(world.ledger.worker("py-3").await.unwrap().unwrap(), worker, "also by name");
    world
}

pub(in crate::ledger) async fn a_change_that_does_not_follow_is_refused(world: World) -> World {
    let ledger = &world.ledger;
    let refused = |stored| matches!(stored, Stored::No(_));
    assert!(refused(ledger.record(change("w_1", 2)).await), "the first is missing");
    record(&world, [change("w_1", 1)]).await;
    assert!(refused(ledger.record(change("w_1", 3)).await), "the second is missing");
    let other = WorkerChange { from: Some(Status::Paused), ..change("w_1", 2) };
    assert!(refused(ledger.record(other).await), "it was not PAUSED");
    let illegal = WorkerChange { to: Status::Completed, ..change("w_1", 2) };
    assert!(refused(ledger.record(illegal).await), "IDLE does not become COMPLETED");
    assert_eq!(worker_trail(&world, "w_1").await.len(), 1);
    world
}

pub(in crate::ledger) async fn a_change_may_come_again_but_not_another_in_its_place(
    world: World,
) -> World {
    record(&world, (1..=3).map(|seq| change("w_1", seq))).await;
    record(&world, [change("w_1", 3), change("w_1", 2)]).await;
    let other = WorkerChange { to: Status::Failed, ..change("w_1", 3) };
    assert!(matches!(world.ledger.record(other).await, Stored::No(_)));
    assert_eq!(worker_trail(&world, "w_1").await.len(), 3);
    world
}

pub(in crate::ledger) async fn pool_workers_end_with_their_server(mut world: World) -> World {
    record(&world, (1..=2).map(|seq| change("w_1", seq))).await;
    record(&world, [change("w_2", 1)]).await;
    let dedicated = |seq| WorkerChange { dedicated: true, ..change("w_3", seq) };
    record(&world, (1..=2).map(dedicated)).await;
    world.restart().await;
    let last = |trail: Vec<Transition>| {
        let step = trail.into_iter().next_back().unwrap();
        (step.to, step.trigger, step.reason.unwrap_or_default())
    };
    let own = |to: &str, trigger: &str, reason: &str| {
        (to.to_owned(), trigger.to_owned(), reason.to_owned())
    };
    let running = last(worker_trail(&world, "w_1").await);
    assert_eq!(running, own("COMPLETED", "complete", "server_stopped"));
    let idle = last(worker_trail(&world, "w_2").await);
    assert_eq!(idle, own("TERMINATED", "terminate", "server_stopped"));
    let dedicated = world.ledger.worker("w_3").await.unwrap().unwrap();
    assert_eq!(dedicated.status, Status::Running, "it goes on");
    world
}

pub(in crate::ledger) async fn pool_workers_of_a_dead_server_are_terminated(
    mut world: World,
) -> World {
    record(&world, (1..=3).map(|seq| change("w_1", seq))).await;
    world.crash().await;
    let trail = worker_trail(&world, "w_1").await;
    let last = trail.last().unwrap();
    assert_eq!((last.to.as_str(), last.trigger.as_str()), ("TERMINATED", "terminate"));
    assert_eq!((last.reason.as_deref(), last.seq), (Some("server_restarted"), 4));
    assert_eq!(last.node, world.ledger.node());
    world
}

pub(in crate::ledger) async fn a_pool_knows_its_past(mut world: World) -> World {
    let first = world.ledger.pool_past("py").await.unwrap();
    assert_eq!((first.number, first.next_worker), (1, 1));
    assert_eq!(world.ledger.pool_past("other").await.unwrap().number, 2);
    let dedicated = WorkerChange {
        dedicated: true,
        name: "py-7".to_owned(),
        workspace: "acme".to_owned(),
        ..change("w_7", 1)
    };
    record(&world, [change("w_1", 1), dedicated]).await;
    world.crash().await;
    let past = world.ledger.pool_past("py").await.unwrap();
    assert_eq!((past.number, past.next_worker), (1, 8));
    assert_eq!(past.dedicated.len(), 1);
    let kept = &past.dedicated[0];
    assert_eq!((kept.id.as_str(), kept.workspace.as_str()), ("w_7", "acme"));
    assert_eq!((kept.status, kept.seq), (Status::Idle, 1));
    assert!(world.ledger.pool_past("other").await.unwrap().dedicated.is_empty());
    world
}

pub(in crate::ledger) async fn ended_workers_are_kept_for_their_time(mut world: World) -> World {
    world.bounded(|settings| settings.worker_retention = HOUR).await;
    let end =
        WorkerChange { from: Some(Status::Running), to: Status::Completed, ..change("w_1", 3) };
    record(&world, [change("w_1", 1), change("w_1", 2), end, change("w_2", 1)]).await;
    world.pass(HOUR).await;
    assert!(world.ledger.worker("w_1").await.unwrap().is_some());
    world.pass(Duration::from_millis(1)).await;
    assert_eq!(world.ledger.worker("w_1").await.unwrap(), None);
    assert!(worker_trail(&world, "w_1").await.is_empty());
    assert!(world.ledger.worker("w_2").await.unwrap().is_some(), "it has no end");
    world
}
