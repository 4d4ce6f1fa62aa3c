//! Schedules.

use jiff::Timestamp;

use super::super::key::{Begun, Key};
use super::super::schedule::{NewSchedule, Overlap, Schedule, ScheduleChange};
use super::*;

fn every(period: &str) -> NewSchedule {
    NewSchedule {
        name: "often".to_owned(),
        workspace: "default".to_owned(),
        cron: format!("@every {period}"),
        timezone: "UTC".to_owned(),
        job: NewJob { tags: [("by".to_owned(), "clock".to_owned())].into(), ..new_job() },
        overlap: Overlap::Allow,
        paused: false,
    }
}

fn at(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp::from_millisecond(START + seconds * 1_000).unwrap())
}

async fn add(world: &World, new: NewSchedule) -> Schedule {
    world.ledger.add_schedule(new, asked()).await.unwrap()
}

async fn jobs(world: &World) -> Vec<Job> {
    world.ledger.jobs(&Default::default(), 100).await.unwrap()
}

pub(in crate::ledger) async fn a_schedule_submits_its_job_each_time(mut world: World) -> World {
    world.ledger.keep_time().await.unwrap();
    let schedule = add(&world, every("10s")).await;
    assert_eq!((schedule.next_at, schedule.version), (at(10), 1));
    assert!(world.told().contains(&Notice::DueSooner));
    assert_eq!(world.ledger.keep_time().await.unwrap(), at(10));
    world.pass(10 * SECOND).await;
    let job = jobs(&world).await.remove(0);
    assert_eq!(job.schedule.as_ref(), Some(&schedule.id));
    assert_eq!(job.spec.tags, schedule.spec.job.tags);
    assert_eq!(world.trail(&job.id).await[0].actor, "schedule");
    let now = world.ledger.schedule("often").await.unwrap();
    assert_eq!((now.last_at, now.next_at), (at(10), at(20)));
    assert_eq!(now.last_job, Some(job.id));
    world.crash().await;
    world.pass(10 * SECOND).await;
    assert_eq!(jobs(&world).await.len(), 2);
    world.ledger.keep_time().await.unwrap();
    assert_eq!(jobs(&world).await.len(), 2, "each time once");
    world
}

pub(in crate::ledger) async fn times_that_passed_count_once(mut world: World) -> World {
    let schedule = add(&world, every("10s")).await;
    world.crash().await;
    world.pass(95 * SECOND).await;
    assert_eq!(jobs(&world).await.len(), 1);
    let now = world.ledger.schedule(schedule.id.as_str()).await.unwrap();
    assert_eq!((now.last_at, now.next_at), (at(10), at(100)));
    world
}

pub(in crate::ledger) async fn a_time_is_left_out_while_the_last_job_goes_on(
    world: World,
) -> World {
    let skipping = NewSchedule { overlap: Overlap::Skip, ..every("10s") };
    let schedule = add(&world, skipping).await;
    world.pass(10 * SECOND).await;
    let claimed = world.claim().await;
    world.pass(10 * SECOND).await;
    assert_eq!(jobs(&world).await.len(), 1);
    let now = world.ledger.schedule(schedule.id.as_str()).await.unwrap();
    assert_eq!((now.last_at, now.next_at), (at(20), at(30)));
    world.complete(&claimed).await;
    world.pass(10 * SECOND).await;
    assert_eq!(jobs(&world).await.len(), 2);
    world
}

pub(in crate::ledger) async fn a_paused_schedule_stands_still(world: World) -> World {
    let schedule = add(&world, NewSchedule { paused: true, ..every("10s") }).await;
    assert_eq!(schedule.next_at, None);
    world.pass(HOUR).await;
    assert!(jobs(&world).await.is_empty());
    let resume = ScheduleChange { paused: Some(false), ..ScheduleChange::default() };
    let resumed = world.ledger.change_schedule("often", resume, asked()).await.unwrap();
    assert_eq!((resumed.next_at, resumed.version), (at(3_610), 2));
    let pause = ScheduleChange { paused: Some(true), ..ScheduleChange::default() };
    let paused = world.ledger.change_schedule("often", pause, asked()).await.unwrap();
    assert_eq!(paused.next_at, None);
    world.pass(HOUR).await;
    assert!(jobs(&world).await.is_empty());
    world
}

pub(in crate::ledger) async fn a_schedule_is_changed_and_deleted(world: World) -> World {
    let schedule = add(&world, every("10s")).await;
    let other = NewJob { function: "else".to_owned(), ..new_job() };
    let change = ScheduleChange { job: Some(other), ..ScheduleChange::default() };
    world.clock.pass(SECOND);
    let changed = world.ledger.change_schedule("often", change, asked()).await.unwrap();
    assert_eq!(changed.next_at, at(10), "its times are the same");
    let change = ScheduleChange {
        cron: Some("0 0 * * *".to_owned()),
        timezone: Some("Asia/Tokyo".to_owned()),
        overlap: Some(Overlap::Skip),
        ..ScheduleChange::default()
    };
    let id = schedule.id.as_str();
    let changed = world.ledger.change_schedule(id, change, asked()).await.unwrap();
    let next = changed.next_at.unwrap();
    assert_eq!(next.as_second() % 86_400, 15 * 3_600, "midnight in Tokyo");
    assert_eq!(changed.spec.job.function, "else");
    assert_eq!(world.ledger.schedule(id).await.unwrap(), changed);
    world.ledger.delete_schedule(id, asked()).await.unwrap();
    let gone = LedgerError::NoSchedule { id: id.to_owned() };
    assert_eq!(world.ledger.schedule(id).await.unwrap_err(), gone);
    assert_eq!(world.ledger.delete_schedule(id, asked()).await.unwrap_err(), gone);
    let change = ScheduleChange::default();
    assert_eq!(world.ledger.change_schedule(id, change, asked()).await.unwrap_err(), gone);
    add(&world, every("10s")).await;
    world
}

pub(in crate::ledger) async fn jobs_outlive_their_schedule(world: World) -> World {
    let schedule = add(&world, every("10s")).await;
    world.pass(10 * SECOND).await;
    world.ledger.delete_schedule("often", asked()).await.unwrap();
    world.pass(10 * SECOND).await;
    let jobs = jobs(&world).await;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].schedule, Some(schedule.id));
    world
}

pub(in crate::ledger) async fn what_does_not_fit_is_refused(mut world: World) -> World {
    world.bounded(|settings| settings.schedules_max = 1).await;
    let parent = Some(JobId::fresh());
    let cases = [
        ("name", NewSchedule { name: String::new(), ..every("1s") }),
        ("cron", NewSchedule { cron: "* *".to_owned(), ..every("1s") }),
        ("timezone", NewSchedule { timezone: "Nowhere".to_owned(), ..every("1s") }),
        ("parent_job_id", NewSchedule { job: NewJob { parent, ..new_job() }, ..every("1s") }),
        (
            "worker_count",
            NewSchedule { job: NewJob { worker_count: 0, ..new_job() }, ..every("1s") },
        ),
    ];
    for (expected, new) in cases {
        let error = world.ledger.add_schedule(new, asked()).await.unwrap_err();
        assert_eq!(field(&error), expected);
    }
    add(&world, every("10s")).await;
    let again = world.ledger.add_schedule(every("20s"), asked()).await.unwrap_err();
    assert_eq!(again, LedgerError::ScheduleExists { name: "often".to_owned() });
    let other = NewSchedule { name: "other".to_owned(), ..every("1s") };
    let full = world.ledger.add_schedule(other, asked()).await.unwrap_err();
    assert_eq!(full, LedgerError::ScheduleQuota { current: 1, max: 1 });
    world
}

pub(in crate::ledger) async fn a_schedule_without_room_leaves_its_time_out(
    mut world: World,
) -> World {
    world.bounded(|settings| settings.jobs_max = 1).await;
    add(&world, every("10s")).await;
    let only = world.submit(new_job()).await;
    world.pass(10 * SECOND).await;
    assert_eq!(jobs(&world).await.len(), 1);
    world.cancel(&only.id).await;
    world.pass(10 * SECOND).await;
    assert_eq!(jobs(&world).await.len(), 2);
    world
}

pub(in crate::ledger) async fn schedules_are_listed_in_pages_and_mark_their_keys(
    world: World,
) -> World {
    let key = |name: &str| Key {
        caller: "me".to_owned(),
        route: "POST /api/schedules".to_owned(),
        key: name.to_owned(),
    };
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        world.ledger.begin_key(&key(name), 1, true).await.unwrap();
        let asked = Asked { key: Some(key(name)), ..asked() };
        let new = NewSchedule { name: name.to_owned(), ..every("1h") };
        let id = world.ledger.add_schedule(new, asked).await.unwrap().id;
        let begun = world.ledger.begin_key(&key(name), 1, true).await.unwrap();
        assert_eq!(begun, Begun::Applied { resource: id.to_string() });
        ids.push(id);
    }
    let page = world.ledger.schedules(None, 2).await.unwrap();
    assert_eq!(page.iter().map(|one| &one.id).collect::<Vec<_>>(), [&ids[0], &ids[1]]);
    let rest = world.ledger.schedules(Some(&ids[1]), 2).await.unwrap();
    assert_eq!(rest.iter().map(|one| &one.id).collect::<Vec<_>>(), [&ids[2]]);
    let elsewhere =
        NewSchedule { workspace: "acme".to_owned(), name: "a".to_owned(), ..every("1h") };
    let other = add(&world, elsewhere).await;
    assert_eq!(
        world.ledger.schedule("a").await.unwrap().id,
        ids[0],
        "names are the workspace's own"
    );
    assert_eq!(world.ledger.schedule(other.id.as_str()).await.unwrap(), other);
    world
}
