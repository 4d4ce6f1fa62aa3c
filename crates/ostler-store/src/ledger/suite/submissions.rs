//! What may be submitted, and what comes of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ostler_core::JobBackoff;

use super::super::job::Children;
use super::*;

pub(in crate::ledger) async fn a_job_goes_from_its_submission_to_its_end(world: World) -> World {
    let job = world.submit(new_job()).await;
    assert_eq!(job.status, JobStatus::Pending);
    let claimed = world.claim().await;
    assert_eq!((&claimed.job.id, claimed.attempt, claimed.fence), (&job.id, 1, 1));
    assert_eq!(claimed.job.status, JobStatus::Running);
    assert!(world.claim_all().await.is_empty(), "nobody else gets it");
    let ended = world.complete(&claimed).await;
    assert_eq!(ended.status, JobStatus::Completed);
    assert_eq!(ended.result, Some(content("42")));
    assert_eq!(world.job(&job.id).await, ended);
    assert_eq!(world.path(&job.id).await, ["SUBMITTED", "PENDING", "RUNNING", "COMPLETED"]);
    world
}

pub(in crate::ledger) async fn each_step_is_recorded_with_who_asked_for_it(world: World) -> World {
    let asked = Asked { reason: Some("because".to_owned()), ..asked() };
    let job = world.ledger.submit(vec![new_job()], asked).await.unwrap().remove(0).job;
    let claimed = world.claim().await;
    world.complete(&claimed).await;
    let trail = world.trail(&job.id).await;
    let seqs: Vec<u64> = trail.iter().map(|step| step.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    let froms: Vec<Option<&str>> = trail.iter().map(|step| step.from.as_deref()).collect();
    assert_eq!(froms, [None, Some("SUBMITTED"), Some("PENDING"), Some("RUNNING")]);
    let triggers: Vec<&str> = trail.iter().map(|step| step.trigger.as_str()).collect();
    assert_eq!(triggers, ["submit", "due", "claim", "complete"]);
    let first = &trail[0];
    assert_eq!((first.actor.as_str(), first.request_id.as_deref()), ("tester", Some("r_1")));
    assert_eq!(first.reason.as_deref(), Some("because"));
    assert_eq!(trail[3].actor, "system");
    assert!(trail.iter().all(|step| step.node == world.ledger.node()));
    let after = world.ledger.transitions(Entity::Job, job.id.as_str(), 2, 1).await.unwrap();
    assert_eq!(after, [trail[2].clone()], "the trail is read in pages");
    world
}

fn full() -> NewJob {
    let backoff = JobBackoff { initial: SECOND, max: HOUR, factor: 1.5 };
    NewJob {
        workspace: "acme".to_owned(),
        queue: "slow".to_owned(),
        payload: Content::new("application/octet-stream", vec![0, 159, 146, 150]),
        task_description: Some("Ünïcode\nand lines".to_owned()),
        worker_count: 3,
        session: Some("s1".to_owned()),
        priority: -100,
        run_at: Some(Timestamp::from_millisecond(START + 5_000).unwrap()),
        timeout: Some(HOUR),
        retrying: Retrying { max_attempts: 7, on_error: true, backoff },
        children: Children::Ignore,
        tags: BTreeMap::from([("team".to_owned(), "a b".to_owned())]),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        unique_key: Some("only".to_owned()),
        concurrency_key: Some("one by one".to_owned()),
        concurrency_limit: 2,
        ..new_job()
    }
}

pub(in crate::ledger) async fn everything_submitted_is_shown_again(mut world: World) -> World {
    let job = world.submit(full()).await;
    assert_eq!(job.spec, NewJob { depth: Some(0), ..full() });
    assert_eq!((job.status, job.depth, &job.root), (JobStatus::Submitted, 0, &job.id));
    assert_eq!(job.created_at, Timestamp::from_millisecond(START).unwrap());
    assert_eq!(world.job(&job.id).await, job);
    world.crash().await;
    assert_eq!(world.job(&job.id).await, job, "also after a restart");
    world
}

pub(in crate::ledger) async fn what_does_not_fit_is_refused_by_its_field(world: World) -> World {
    type Change = fn(&mut NewJob);
    let cases: [(&str, Change); 22] = [
        ("workspace_id", |job| job.workspace.clear()),
        ("queue", |job| job.queue = "a\nb".to_owned()),
        ("pool", |job| job.pool.clear()),
        ("function", |job| job.function = "f".repeat(201)),
        ("task_description", |job| job.task_description = Some("x".repeat(4097))),
        ("task_description", |job| job.task_description = Some("\0".to_owned())),
        ("worker_count", |job| job.worker_count = 0),
        ("worker_count", |job| job.worker_count = 11),
        ("priority", |job| job.priority = 101),
        ("priority", |job| job.priority = -101),
        ("timeout", |job| job.timeout = Some(Duration::ZERO)),
        ("max_attempts", |job| job.retrying.max_attempts = 0),
        ("max_attempts", |job| job.retrying.max_attempts = 101),
        ("backoff", |job| job.retrying.backoff.factor = f64::NAN),
        ("concurrency_limit", |job| job.concurrency_limit = 0),
        ("tags", |job| {
            job.tags = (0..33).map(|n| (n.to_string(), String::new())).collect();
        }),
        ("tags", |job| job.tags = BTreeMap::from([("a".to_owned(), "v".repeat(501))])),
        ("tags", |job| job.tags = BTreeMap::from([(String::new(), String::new())])),
        ("unique_key", |job| job.unique_key = Some(String::new())),
        ("child_key", |job| job.child_key = Some("without a parent".to_owned())),
        ("depth", |job| job.depth = Some(1)),
        ("payload", |job| job.payload = content(&"x".repeat((16 << 20) + 1))),
    ];
    for (expected, change) in cases {
        let mut job = new_job();
        change(&mut job);
        assert_eq!(field(&world.refused(job).await), expected);
    }
    assert!(world.ledger.jobs(&Default::default(), 10).await.unwrap().is_empty());
    world
}

pub(in crate::ledger) async fn a_batch_is_stored_whole_or_not_at_all(world: World) -> World {
    let bad = NewJob { worker_count: 0, ..new_job() };
    let error = world.ledger.submit(vec![new_job(), new_job(), bad], asked()).await.unwrap_err();
    assert!(matches!(error, LedgerError::Invalid { index: 2, .. }), "{error:?}");
    assert!(world.ledger.jobs(&Default::default(), 10).await.unwrap().is_empty());
    let jobs = (0..50).map(|n| NewJob { payload: content(&n.to_string()), ..new_job() });
    let submitted = world.ledger.submit(jobs.collect(), asked()).await.unwrap();
    let payloads: Vec<Content> = submitted.iter().map(|s| s.job.spec.payload.clone()).collect();
    assert_eq!(payloads, (0..50).map(|n| content(&n.to_string())).collect::<Vec<_>>());
    assert_eq!(world.claim_all().await.len(), 50);
    world
}

pub(in crate::ledger) async fn a_job_for_later_is_pending_when_it_is_due(world: World) -> World {
    let run_at = Some(Timestamp::from_millisecond(START + 10_000).unwrap());
    world.ledger.keep_time().await.unwrap();
    let job = world.submit(NewJob { run_at, ..new_job() }).await;
    assert_eq!(job.status, JobStatus::Submitted);
    assert!(world.told().contains(&Notice::DueSooner));
    assert!(world.claim_all().await.is_empty());
    assert!(world.ledger.claim_job(&job.id).await.unwrap().is_none());
    assert_eq!(world.ledger.keep_time().await.unwrap(), run_at);
    world.pass(Duration::from_millis(9_999)).await;
    assert_eq!(world.status(&job.id).await, JobStatus::Submitted);
    world.told();
    world.pass(Duration::from_millis(1)).await;
    assert_eq!(world.status(&job.id).await, JobStatus::Pending);
    assert!(world.told().contains(&Notice::Ready { pool: "py".to_owned() }));
    assert_eq!(world.claim().await.job.id, job.id);
    world
}

pub(in crate::ledger) async fn a_job_that_is_due_is_claimed_before_anybody_keeps_time(
    world: World,
) -> World {
    let run_at = Some(Timestamp::from_millisecond(START + 10).unwrap());
    let job = world.submit(NewJob { run_at, ..new_job() }).await;
    world.clock.pass(SECOND);
    assert_eq!(world.claim().await.job.id, job.id);
    assert_eq!(world.path(&job.id).await, ["SUBMITTED", "PENDING", "RUNNING"]);
    world
}

pub(in crate::ledger) async fn depth_follows_from_the_parent_and_ends_at_five(
    world: World,
) -> World {
    let root = world.submit(new_job()).await;
    let mut parent = root.clone();
    for depth in 1..=5 {
        let job = NewJob { depth: Some(depth), ..child_of(&parent.id) };
        parent = world.submit(job).await;
        assert_eq!((parent.depth, &parent.root), (depth, &root.id));
    }
    assert_eq!(field(&world.refused(child_of(&parent.id)).await), "depth");
    let wrong = NewJob { depth: Some(2), ..child_of(&root.id) };
    assert_eq!(field(&world.refused(wrong).await), "depth");
    assert_eq!(world.job(&root.id).await.open_children, 1);
    world
}

pub(in crate::ledger) async fn a_parent_must_exist_and_go_on(world: World) -> World {
    let nobody = JobId::fresh();
    assert_eq!(field(&world.refused(child_of(&nobody)).await), "parent_job_id");
    let ended = world.submit_claimed(new_job()).await;
    world.complete(&ended).await;
    assert_eq!(field(&world.refused(child_of(&ended.job.id)).await), "parent_job_id");
    let leaving = world.submit_claimed(new_job()).await;
    world.cancel(&leaving.job.id).await;
    assert_eq!(world.status(&leaving.job.id).await, JobStatus::Running);
    assert_eq!(field(&world.refused(child_of(&leaving.job.id)).await), "parent_job_id");
    world
}

pub(in crate::ledger) async fn a_unique_key_finds_the_living_job(world: World) -> World {
    let unique = || NewJob { unique_key: Some("k".to_owned()), ..new_job() };
    let first = world.submit(unique()).await;
    let again = world.try_submit(unique()).await.unwrap();
    assert_eq!((again.known, &again.job.id), (true, &first.id));
    world.submit(NewJob { workspace: "other".to_owned(), ..unique() }).await;
    world.submit(NewJob { function: "other".to_owned(), ..unique() }).await;
    let claimed = world.ledger.claim_job(&first.id).await.unwrap().unwrap();
    assert!(world.try_submit(unique()).await.unwrap().known, "also while it runs");
    world.complete(&claimed).await;
    let next = world.submit(unique()).await;
    assert_ne!(next.id, first.id);
    let other = || NewJob { unique_key: Some("batch".to_owned()), ..new_job() };
    let batch = world.ledger.submit(vec![other(), unique(), other()], asked()).await.unwrap();
    let known: Vec<bool> = batch.iter().map(|submitted| submitted.known).collect();
    assert_eq!(known, [false, true, true], "also within one batch");
    assert_eq!((&batch[1].job.id, &batch[2].job.id), (&next.id, &batch[0].job.id));
    world
}

pub(in crate::ledger) async fn many_who_submit_one_unique_key_make_one_job(world: World) -> World {
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let ledger = world.ledger.clone();
        let job = NewJob { unique_key: Some("k".to_owned()), ..new_job() };
        all.spawn(async move { ledger.submit(vec![job], asked()).await.unwrap().remove(0) });
    }
    let submitted = all.join_all().await;
    assert_eq!(submitted.iter().filter(|submitted| !submitted.known).count(), 1);
    assert!(submitted.iter().all(|one| one.job.id == submitted[0].job.id));
    assert_eq!(world.ledger.jobs(&Default::default(), 10).await.unwrap().len(), 1);
    world
}

pub(in crate::ledger) async fn a_child_key_finds_the_child_also_after_its_end(
    world: World,
) -> World {
    let parent = world.submit_claimed(new_job()).await.job.id;
    let other = world.submit_claimed(new_job()).await.job.id;
    let keyed = |of: &JobId| NewJob { child_key: Some("k".to_owned()), ..child_of(of) };
    let child = world.submit(keyed(&parent)).await;
    assert_eq!(world.try_submit(keyed(&parent)).await.unwrap().job.id, child.id);
    assert_eq!(world.job(&parent).await.open_children, 1, "and it is counted once");
    world.submit(keyed(&other)).await;
    let claimed = world.ledger.claim_job(&child.id).await.unwrap().unwrap();
    world.complete(&claimed).await;
    let found = world.try_submit(keyed(&parent)).await.unwrap();
    assert_eq!((found.known, found.job.status), (true, JobStatus::Completed));
    assert_eq!(found.job.result, Some(content("42")));
    world
}

pub(in crate::ledger) async fn jobs_without_an_end_are_bounded(mut world: World) -> World {
    world.bounded(|settings| settings.jobs_max = 3).await;
    let unique = || NewJob { unique_key: Some("k".to_owned()), ..new_job() };
    let first = world.submit(unique()).await;
    let two = vec![new_job(), new_job(), new_job()];
    let error = world.ledger.submit(two, asked()).await.unwrap_err();
    assert_eq!(error, LedgerError::Quota { current: 1, max: 3 });
    world.submit(new_job()).await;
    world.submit(new_job()).await;
    assert_eq!(world.refused(new_job()).await, LedgerError::Quota { current: 3, max: 3 });
    assert!(world.try_submit(unique()).await.unwrap().known, "what is there needs no room");
    world.cancel(&first.id).await;
    world.submit(new_job()).await;
    world.crash().await;
    assert_eq!(world.refused(new_job()).await, LedgerError::Quota { current: 3, max: 3 });
    world
}

pub(in crate::ledger) async fn a_retry_is_a_new_job_with_fresh_attempts(world: World) -> World {
    let parent = world.submit_claimed(new_job()).await.job.id;
    let child = NewJob { child_key: Some("k".to_owned()), ..child_of(&parent) };
    let failed = world.submit_claimed(child).await;
    world.fail(&failed).await;
    let retried = world.ledger.retry(&failed.job.id, asked()).await.unwrap();
    assert_ne!(retried.id, failed.job.id);
    assert_eq!(retried.retry_of.as_ref(), Some(&failed.job.id));
    assert_eq!((retried.status, retried.attempt, retried.depth), (JobStatus::Pending, 0, 0));
    assert_eq!((&retried.root, &retried.spec.parent), (&retried.id, &None));
    assert_eq!(retried.spec.payload, failed.job.spec.payload);
    assert_eq!(world.status(&failed.job.id).await, JobStatus::Failed, "the old one stays");
    let cancelled = world.submit(new_job()).await;
    world.cancel(&cancelled.id).await;
    world.ledger.retry(&cancelled.id, asked()).await.unwrap();
    world
}

pub(in crate::ledger) async fn only_what_ended_without_a_result_is_retried(world: World) -> World {
    let job = world.submit(NewJob { unique_key: Some("k".to_owned()), ..new_job() }).await;
    let illegal = |from, allowed: Vec<JobStatus>| LedgerError::Illegal {
        id: job.id.clone(),
        from,
        to: JobStatus::Submitted,
        allowed,
    };
    let refused = world.ledger.retry(&job.id, asked()).await.unwrap_err();
    assert_eq!(refused, illegal(JobStatus::Pending, JobStatus::Pending.allowed()));
    let claimed = world.claim().await;
    world.complete(&claimed).await;
    let refused = world.ledger.retry(&job.id, asked()).await.unwrap_err();
    assert_eq!(refused, illegal(JobStatus::Completed, Vec::new()));
    let nobody = JobId::fresh();
    let refused = world.ledger.retry(&nobody, asked()).await.unwrap_err();
    assert_eq!(refused, LedgerError::NoJob { id: nobody.to_string() });
    world
}

pub(in crate::ledger) async fn a_retry_does_not_double_a_unique_job(world: World) -> World {
    let unique = || NewJob { unique_key: Some("k".to_owned()), ..new_job() };
    let first = world.submit(unique()).await;
    world.cancel(&first.id).await;
    world.submit(unique()).await;
    let refused = world.ledger.retry(&first.id, asked()).await.unwrap_err();
    assert_eq!(field(&refused), "unique_key");
    world
}
