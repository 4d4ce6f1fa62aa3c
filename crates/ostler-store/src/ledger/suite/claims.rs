//! Who gets which work, and what a running job says.

use jiff::Timestamp;

use super::super::job::{JobEvent, Saying};
use super::*;

pub(in crate::ledger) async fn the_most_urgent_is_claimed_first(world: World) -> World {
    let early = Some(Timestamp::from_millisecond(START - 10_000).unwrap());
    let low = world.submit(NewJob { priority: -5, ..new_job() }).await.id;
    let first = world.submit(new_job()).await.id;
    let second = world.submit(new_job()).await.id;
    let waited = world.submit(NewJob { run_at: early, ..new_job() }).await.id;
    let high = world.submit(NewJob { priority: 5, ..new_job() }).await.id;
    let claimed: Vec<JobId> =
        world.ledger.claim("py", 4).await.unwrap().into_iter().map(|one| one.job.id).collect();
    assert_eq!(claimed, [high, waited, first, second]);
    assert_eq!(world.claim().await.job.id, low);
    world
}

pub(in crate::ledger) async fn pools_do_not_get_each_others_work(world: World) -> World {
    world.submit(NewJob { pool: "pypy".to_owned(), ..new_job() }).await;
    assert!(world.claim_all().await.is_empty());
    assert_eq!(world.ledger.claim("pypy", 9).await.unwrap().len(), 1);
    assert!(world.ledger.claim("nobody", 9).await.unwrap().is_empty());
    world
}

pub(in crate::ledger) async fn a_claim_makes_an_attempt(world: World) -> World {
    let job = world.submit(NewJob { timeout: Some(HOUR), ..new_job() }).await;
    world.clock.pass(SECOND);
    let claimed = world.claim().await;
    let started = Timestamp::from_millisecond(START + 1_000).unwrap();
    let deadline = Timestamp::from_millisecond(START + 3_601_000).unwrap();
    assert_eq!(claimed.job.started_at, Some(started));
    assert_eq!(claimed.job.deadline, Some(deadline));
    assert_eq!(claimed.job.attempt, 1);
    let attempts = world.ledger.attempts(&job.id).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].attempt, attempts[0].fence), (1, 1));
    assert_eq!(attempts[0].node, world.ledger.node());
    assert_eq!((attempts[0].started_at, attempts[0].ended_at), (started, None));
    world
}

pub(in crate::ledger) async fn many_who_claim_at_once_get_each_job_once(world: World) -> World {
    world.ledger.submit(vec![new_job(); 100], asked()).await.unwrap();
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let ledger = world.ledger.clone();
        all.spawn(async move { ledger.claim("py", 3).await.unwrap() });
    }
    let mut ids: Vec<JobId> =
        all.join_all().await.into_iter().flatten().map(|claimed| claimed.job.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
    assert!(world.claim_all().await.is_empty());
    world
}

pub(in crate::ledger) async fn a_gang_is_claimed_when_its_workers_are_had(world: World) -> World {
    let small = world.submit(new_job()).await.id;
    let gang = world.submit(NewJob { worker_count: 3, ..new_job() }).await.id;
    let urgent = NewJob { worker_count: 2, priority: 1, ..new_job() };
    let urgent = world.submit(urgent).await.id;
    let claimed = world.claim_all().await;
    assert_eq!(claimed.iter().map(|one| &one.job.id).collect::<Vec<_>>(), [&small]);
    assert_eq!(world.ledger.next_gang("py").await.unwrap(), Some((urgent.clone(), 2)));
    assert_eq!(world.status(&urgent).await, JobStatus::Pending, "nothing is claimed by asking");
    assert!(world.ledger.claim_job(&urgent).await.unwrap().is_some());
    assert!(world.ledger.claim_job(&urgent).await.unwrap().is_none(), "once");
    assert_eq!(world.ledger.next_gang("py").await.unwrap(), Some((gang, 3)));
    assert_eq!(world.ledger.next_gang("other").await.unwrap(), None);
    world
}

pub(in crate::ledger) async fn a_paused_queue_gives_nothing(mut world: World) -> World {
    let slow = |workers| NewJob { queue: "slow".to_owned(), worker_count: workers, ..new_job() };
    let job = world.submit(slow(1)).await.id;
    world.submit(slow(2)).await;
    world.submit(new_job()).await;
    let paused = world.ledger.pause_queue("slow", asked()).await.unwrap();
    assert_eq!((paused.waiting, paused.running, paused.paused_at.is_some()), (2, 0, true));
    world.clock.pass(SECOND);
    assert_eq!(world.ledger.pause_queue("slow", asked()).await.unwrap(), paused, "since then");
    world.crash().await;
    assert_eq!(world.claim_all().await.len(), 1, "others go on");
    assert!(world.ledger.claim_job(&job).await.unwrap().is_none());
    assert_eq!(world.ledger.next_gang("py").await.unwrap(), None);
    let queues = world.ledger.queues().await.unwrap();
    let names: Vec<(&str, u64, u64)> =
        queues.iter().map(|queue| (queue.name.as_str(), queue.waiting, queue.running)).collect();
    assert_eq!(names, [("default", 0, 1), ("slow", 2, 0)]);
    world.ledger.keep_time().await.unwrap();
    world.told();
    assert_eq!(world.ledger.resume_queue("slow", asked()).await.unwrap().paused_at, None);
    assert!(world.told().contains(&Notice::DueSooner));
    world.ledger.keep_time().await.unwrap();
    assert!(world.told().contains(&Notice::Ready { pool: "py".to_owned() }));
    assert_eq!(world.claim_all().await.len(), 1);
    assert!(world.ledger.next_gang("py").await.unwrap().is_some());
    world
}

pub(in crate::ledger) async fn a_key_bounds_how_many_run_and_others_pass_by(world: World) -> World {
    let keyed = |pool: &str| NewJob {
        pool: pool.to_owned(),
        concurrency_key: Some("k".to_owned()),
        concurrency_limit: 2,
        ..new_job()
    };
    for _ in 0..4 {
        world.submit(keyed("py")).await;
    }
    let elsewhere = world.submit(keyed("other")).await.id;
    let free = world.submit(new_job()).await.id;
    let claimed = world.ledger.claim("py", 3).await.unwrap();
    assert_eq!(claimed.len(), 3);
    assert_eq!(claimed[2].job.id, free, "two of the key, then the one behind");
    assert!(world.claim_all().await.is_empty());
    assert!(world.ledger.claim_job(&elsewhere).await.unwrap().is_none(), "in every pool");
    world.told();
    world.complete(&claimed[0]).await;
    assert!(world.told().contains(&Notice::Ready { pool: "py".to_owned() }));
    assert_eq!(world.claim_all().await.len(), 1);
    world.complete(&claimed[1]).await;
    world.told();
    world.ledger.keep_time().await.unwrap();
    assert!(world.told().contains(&Notice::Ready { pool: "other".to_owned() }));
    assert!(world.ledger.claim_job(&elsewhere).await.unwrap().is_some());
    assert!(world.claim_all().await.is_empty());
    world
}

pub(in crate::ledger) async fn words_with_an_old_fence_change_nothing(world: World) -> World {
    let job = world.submit(new_job()).await.id;
    let old = world.claim().await;
    world.finish(&old, AttemptEnd::Released).await;
    let new = world.claim().await;
    assert_eq!((new.attempt, new.fence), (1, 2));
    let before = world.job(&job).await;
    let finished = world.ledger.finish(&job, old.fence, done()).await.unwrap();
    assert_eq!(finished, Finished::Stale);
    let words = vec![Saying::Message(json!("late"))];
    world.ledger.say(&job, old.fence, words).await.unwrap();
    assert_eq!(world.job(&job).await, before);
    assert_eq!(world.ledger.counts().await.unwrap().stale, 2);
    let nobody = JobId::fresh();
    assert_eq!(world.ledger.finish(&nobody, 1, done()).await.unwrap(), Finished::Stale);
    world.complete(&new).await;
    assert_eq!(world.ledger.finish(&job, new.fence, done()).await.unwrap(), Finished::Stale);
    world
}

async fn story(world: &World, id: &JobId) -> Vec<(String, Value)> {
    let lines = world.ledger.events(id, 0, 100).await.unwrap();
    lines.into_iter().map(|line: JobEvent| (line.kind, line.data)).collect()
}

pub(in crate::ledger) async fn what_a_job_says_is_its_story(mut world: World) -> World {
    let claimed = world.submit_claimed(NewJob { worker_count: 2, ..new_job() }).await;
    let id = &claimed.job.id;
    let words = vec![
        Saying::Worker { shard: 1, worker: "py-2".to_owned() },
        Saying::Progress(json!({ "done": 1 })),
        Saying::Message(json!("half\u{0}way")),
        Saying::Progress(json!({ "done": 2 })),
        Saying::Log { level: "warning".to_owned(), text: "hm".to_owned() },
    ];
    world.told();
    world.ledger.say(id, claimed.fence, words).await.unwrap();
    let last_seq = 7;
    assert!(world.told().contains(&Notice::JobSaid { job: id.clone(), last_seq }));
    let job = world.job(id).await;
    assert_eq!(job.progress, Some(json!({ "done": 2 })));
    assert!(job.version > claimed.job.version);
    world.complete(&claimed).await;
    let status = |from: Option<&str>, to: &str| {
        ("status".to_owned(), json!({ "from": from, "to": to, "reason": null }))
    };
    let expected = [
        status(None, "SUBMITTED"),
        status(Some("SUBMITTED"), "PENDING"),
        status(Some("PENDING"), "RUNNING"),
        ("attempt".to_owned(), json!({ "attempt": 1, "shard": 1, "worker": "py-2" })),
        ("message".to_owned(), json!("half\u{0}way")),
        ("progress".to_owned(), json!({ "done": 2 })),
        ("log".to_owned(), json!({ "level": "warning", "text": "hm" })),
        status(Some("RUNNING"), "COMPLETED"),
    ];
    assert_eq!(story(&world, id).await, expected, "a progress that was overtaken is left out");
    let attempts = world.ledger.attempts(id).await.unwrap();
    assert_eq!(attempts[0].workers, ["", "py-2"]);
    world.crash().await;
    assert_eq!(story(&world, id).await, expected);
    let page = world.ledger.events(id, 4, 2).await.unwrap();
    assert_eq!(page.iter().map(|line| line.seq).collect::<Vec<_>>(), [5, 6]);
    world
}

pub(in crate::ledger) async fn the_lines_of_a_story_are_bounded(mut world: World) -> World {
    world.bounded(|settings| settings.events_max = 6).await;
    let claimed = world.submit_claimed(new_job()).await;
    let id = &claimed.job.id;
    let words = (0..5).map(|n| Saying::Message(json!(n))).collect();
    world.ledger.say(id, claimed.fence, words).await.unwrap();
    let last = vec![Saying::Progress(json!("far"))];
    world.ledger.say(id, claimed.fence, last).await.unwrap();
    let job = world.job(id).await;
    assert_eq!((job.events_dropped, job.progress), (3, Some(json!("far"))));
    world.complete(&claimed).await;
    let kinds: Vec<String> = story(&world, id).await.into_iter().map(|(kind, _)| kind).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let told = ["message", "message", "message", "status"];
    assert_eq!(kinds[3..], told, "what it came to is always told");
    let restless = world.submit(new_job()).await.id;
    for _ in 0..10 {
        let claimed = world.claim().await;
        world.finish(&claimed, AttemptEnd::Released).await;
    }
    assert_eq!(story(&world, &restless).await.len(), 3, "what never began is no story");
    world
}
