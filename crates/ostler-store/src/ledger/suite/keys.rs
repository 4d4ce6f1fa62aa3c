//! Idempotency keys.

use jiff::Timestamp;

use super::super::key::{Answer, Begun, Key};
use super::super::worker::{Stored, WorkerChange};
use super::workers::change;
use super::*;

fn key(name: &str) -> Key {
    Key { caller: "me".to_owned(), route: "POST /api/jobs".to_owned(), key: name.to_owned() }
}

fn answer() -> Answer {
    Answer {
        status: 202,
        headers: vec![("location".to_owned(), "/api/jobs/1".to_owned())],
        body: vec![0xff, 0, 1].into(),
        at: Timestamp::from_millisecond(START).unwrap(),
    }
}

fn under(name: &str) -> Asked {
    Asked { key: Some(key(name)), ..asked() }
}

async fn begin(world: &World, name: &str) -> Begun {
    world.ledger.begin_key(&key(name), 7, true).await.unwrap()
}

pub(in crate::ledger) async fn an_answer_is_given_again(mut world: World) -> World {
    assert_eq!(begin(&world, "a").await, Begun::Fresh);
    assert_eq!(begin(&world, "a").await, Begun::InFlight);
    world.ledger.finish_key(&key("a"), answer()).await.unwrap();
    assert_eq!(begin(&world, "a").await, Begun::Replay(answer()));
    let other = world.ledger.begin_key(&key("a"), 8, true).await.unwrap();
    assert_eq!(other, Begun::Mismatch);
    world.crash().await;
    assert_eq!(begin(&world, "a").await, Begun::Replay(answer()));
    let elsewhere = Key { caller: "you".to_owned(), ..key("a") };
    let begun = world.ledger.begin_key(&elsewhere, 8, true).await.unwrap();
    assert_eq!(begun, Begun::Fresh, "keys are the caller's own");
    world
}

pub(in crate::ledger) async fn an_effect_is_known_by_its_key(mut world: World) -> World {
    begin(&world, "a").await;
    let jobs = world.ledger.submit(vec![new_job(), new_job()], under("a")).await.unwrap();
    let resource = format!("{},{}", jobs[0].job.id, jobs[1].job.id);
    assert_eq!(begin(&world, "a").await, Begun::Applied { resource: resource.clone() });
    world.crash().await;
    assert_eq!(begin(&world, "a").await, Begun::Applied { resource: resource.clone() });
    world.ledger.abandon_key(&key("a")).await.unwrap();
    assert_eq!(begin(&world, "a").await, Begun::Applied { resource }, "what was done stays done");
    world
}

pub(in crate::ledger) async fn each_operation_marks_its_key(world: World) -> World {
    let ids = ["submit", "cancel", "retry", "pause", "resume", "record"];
    for name in ids {
        assert_eq!(begin(&world, name).await, Begun::Fresh);
    }
    let ledger = &world.ledger;
    let job = ledger.submit(vec![new_job()], under("submit")).await.unwrap().remove(0).job.id;
    ledger.cancel(&job, under("cancel")).await.unwrap();
    let retried = ledger.retry(&job, under("retry")).await.unwrap().id;
    ledger.pause_queue("q", under("pause")).await.unwrap();
    ledger.resume_queue("q", under("resume")).await.unwrap();
    let change = WorkerChange { asked: under("record"), ..change("w_1", 1) };
    assert_eq!(ledger.record(change).await, Stored::Yes);
    let resources = [job.as_str(), job.as_str(), retried.as_str(), "q", "q", "w_1"];
    for (name, resource) in ids.into_iter().zip(resources) {
        let applied = Begun::Applied { resource: resource.to_owned() };
        assert_eq!(begin(&world, name).await, applied, "{name}");
    }
    world
}

pub(in crate::ledger) async fn what_was_refused_does_not_use_a_key_up(world: World) -> World {
    begin(&world, "a").await;
    let bad = NewJob { worker_count: 0, ..new_job() };
    world.ledger.submit(vec![bad], under("a")).await.unwrap_err();
    assert_eq!(begin(&world, "a").await, Begun::InFlight, "nothing was marked");
    world.ledger.abandon_key(&key("a")).await.unwrap();
    assert_eq!(begin(&world, "a").await, Begun::Fresh);
    world.ledger.abandon_key(&key("never begun")).await.unwrap();
    world.ledger.finish_key(&key("never begun"), answer()).await.unwrap();
    assert_eq!(begin(&world, "never begun").await, Begun::Fresh);
    world
}

pub(in crate::ledger) async fn a_crash_in_between_leaves_doubt_only_outside_the_ledger(
    mut world: World,
) -> World {
    begin(&world, "stored").await;
    world.ledger.begin_key(&key("outside"), 7, false).await.unwrap();
    world.crash().await;
    assert_eq!(begin(&world, "stored").await, Begun::Fresh, "its effect is not there");
    assert_eq!(begin(&world, "stored").await, Begun::InFlight);
    let outside = world.ledger.begin_key(&key("outside"), 7, false).await.unwrap();
    assert_eq!(outside, Begun::Unknown);
    world
}

pub(in crate::ledger) async fn keys_are_kept_for_their_time(mut world: World) -> World {
    world.bounded(|settings| settings.key_ttl = HOUR).await;
    begin(&world, "a").await;
    world.ledger.finish_key(&key("a"), answer()).await.unwrap();
    world.pass(HOUR - Duration::from_millis(1)).await;
    assert_eq!(begin(&world, "a").await, Begun::Replay(answer()));
    world.clock.pass(Duration::from_millis(1));
    let other = world.ledger.begin_key(&key("a"), 8, true).await.unwrap();
    assert_eq!(other, Begun::Fresh, "also before anybody sweeps");
    world
}

pub(in crate::ledger) async fn keys_are_bounded(mut world: World) -> World {
    world.bounded(|settings| (settings.keys_max, settings.key_ttl) = (2, HOUR)).await;
    begin(&world, "a").await;
    begin(&world, "b").await;
    let full = world.ledger.begin_key(&key("c"), 7, true).await.unwrap_err();
    assert_eq!(full, LedgerError::KeyQuota { current: 2, max: 2 });
    assert_eq!(begin(&world, "a").await, Begun::InFlight);
    world.ledger.abandon_key(&key("a")).await.unwrap();
    assert_eq!(begin(&world, "c").await, Begun::Fresh);
    world.pass(HOUR).await;
    for name in ["d", "e"] {
        assert_eq!(begin(&world, name).await, Begun::Fresh, "the swept have made room");
    }
    world
}

pub(in crate::ledger) async fn many_who_begin_one_key_begin_it_once(world: World) -> World {
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let ledger = world.ledger.clone();
        all.spawn(async move { ledger.begin_key(&key("a"), 7, true).await.unwrap() });
    }
    let begun = all.join_all().await;
    assert_eq!(begun.iter().filter(|begun| **begun == Begun::Fresh).count(), 1);
    assert_eq!(begun.iter().filter(|begun| **begun == Begun::InFlight).count(), 49);
    world
}
