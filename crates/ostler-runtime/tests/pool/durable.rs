//! Workers whose changes of status are stored before they count, and calls that are part of a job.

use std::sync::{Arc, Mutex};

use ostler_runtime::core::{Action, Refusal, Reply, Status, WorkerId};
use ostler_runtime::store::ledger::audit::{Entity, Transition};
use ostler_runtime::store::ledger::key::Asked;
use ostler_runtime::store::ledger::{Ledger, LedgerSettings};
use ostler_runtime::{
    Body, Call, Desk, DeskAnswer, DeskAsk, Directory, Duty, HostError, Listener, Pool, PoolSpec,
};

use super::support::*;

fn ledger() -> Ledger {
    Ledger::in_memory(LedgerSettings::default())
}

async fn with(ledger: &Ledger, size: u32) -> Pool {
    let spec = spec(program("answers-twice.sh").await, brisk(size));
    let pool = start(PoolSpec { ledger: Some(ledger.clone()), ..spec }).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

async fn trail(ledger: &Ledger, worker: &str) -> Vec<Transition> {
    ledger.transitions(Entity::Worker, worker, 0, 100).await.expect("it can be read")
}

fn steps(trail: &[Transition]) -> Vec<(u64, &str, &str)> {
    trail.iter().map(|row| (row.seq, row.to.as_str(), row.trigger.as_str())).collect()
}

#[tokio::test]
async fn every_change_of_status_is_in_the_trail_with_who_asked_for_it() {
    let ledger = ledger();
    let pool = with(&ledger, 1).await;
    let asked = Asked {
        reason: Some("lunch".to_owned()),
        request_id: Some("r-1".to_owned()),
        ..Asked::by("ada")
    };
    let pause = Action::Pause { worker: WorkerId(1), freeze: false };
    let reply = within("it is paused", pool.order_by(pause, asked)).await;
    assert_eq!(reply, Reply::Done { worker: WorkerId(1), status: Status::Paused });
    let id = pool.worker_id(WorkerId(1)).expect("it has a ledger");
    let trail = trail(&ledger, &id).await;
    let wanted = [(1, "IDLE", "create"), (2, "RUNNING", "start"), (3, "PAUSED", "pause")];
    assert_eq!(steps(&trail), wanted);
    let last = &trail[2];
    assert_eq!((last.actor.as_str(), last.reason.as_deref()), ("ada", Some("lunch")));
    assert_eq!(last.request_id.as_deref(), Some("r-1"));
    assert_eq!(trail[0].actor, "system");
    let kept = ledger.worker("test-1").await.expect("it can be read").expect("it is there");
    assert_eq!((kept.status, kept.seq, kept.id), (Status::Paused, 3, id));
    stop(pool).await;
}

#[tokio::test]
async fn numbers_go_on_where_the_pool_before_stopped() {
    let ledger = ledger();
    let pool = with(&ledger, 2).await;
    stop(pool).await;
    let pool = with(&ledger, 1).await;
    let names: Vec<String> = pool.info().workers.iter().map(|w| w.name.clone()).collect();
    assert_eq!(names, ["test-3"]);
    stop(pool).await;
}

#[tokio::test]
async fn workers_made_by_order_come_back_as_they_were() {
    let ledger = ledger();
    let pool = with(&ledger, 1).await;
    for _ in 0..3 {
        let made = within("one is made", pool.create_worker("team-a", Asked::by("ada"))).await;
        assert!(matches!(made, Reply::Done { status: Status::Idle, .. }), "{made:?}");
    }
    for worker in [2, 3] {
        let started = pool.order(Action::Start(WorkerId(worker)));
        within("it is started", started).await;
    }
    let pause = Action::Pause { worker: WorkerId(3), freeze: false };
    within("it is paused", pool.order(pause)).await;
    stop(pool).await;

    let pool = with(&ledger, 1).await;
    let on_second = Call { worker: Some("test-2".to_owned()), ..call("echo", "7") };
    let answered = end(pool.call(on_second)).await.expect("it runs again");
    assert_eq!((text(&answered.body).as_str(), answered.worker.as_deref()), ("7", Some("test-2")));
    let statuses: Vec<_> = pool
        .info()
        .workers
        .iter()
        .filter(|worker| worker.view.dedicated)
        .map(|worker| (worker.name.clone(), worker.view.status, worker.workspace.clone()))
        .collect();
    let team = Some(Arc::from("team-a"));
    assert_eq!(
        statuses,
        [
            ("test-2".to_owned(), Status::Running, team.clone()),
            ("test-3".to_owned(), Status::Paused, team.clone()),
            ("test-4".to_owned(), Status::Idle, team),
        ]
    );
    let idle = Call { worker: Some("test-4".to_owned()), ..call("echo", "7") };
    assert_eq!(refusal(pool.call(idle)).await, Refusal::WorkerNotServing);
    let nobody = Call { worker: Some("test-99".to_owned()), ..call("echo", "7") };
    assert_eq!(refusal(pool.call(nobody)).await, Refusal::NoSuchWorker);
    stop(pool).await;
}

#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Listener for Notes {
    fn began(&self, worker: &Arc<str>) {
        self.0.lock().expect("nobody panics").push(format!("began on {worker}"));
    }

    fn progress(&self, json: &str) {
        self.0.lock().expect("nobody panics").push(format!("progress {json}"));
    }

    fn log(&self, level: &'static str, text: &str) {
        self.0.lock().expect("nobody panics").push(format!("{level} {text}"));
    }
}

#[tokio::test]
async fn a_call_of_a_job_tells_its_worker_and_whoever_listens() {
    let pool = one(functions("dutiful.py")).await;
    let duty = Duty { job: "j_1".into(), attempt: 2, shard: 1, shard_count: 3, depth: 4 };
    let notes = Arc::new(Notes::default());
    let listener: Arc<dyn Listener> = notes.clone();
    let part = Call { duty: Some(Arc::new(duty)), listener: Some(listener), ..call("report", "") };
    let answered = end(pool.call(part)).await.expect("it answers");
    assert_eq!(text(&answered.body), r#"["j_1",2,1,3,4]"#);
    let heard = notes.0.lock().expect("nobody panics").clone();
    assert_eq!(heard, ["began on test-1", "progress {\"done\":0.5}", "warning half way"]);
    assert_eq!(ask(&pool, "report", "").await, "null", "a plain call is part of no job");
    stop(pool).await;
}

/// Answers with who asked for what.
#[derive(Debug)]
struct Echo;

impl Desk for Echo {
    fn operate(&self, ask: DeskAsk) -> DeskAnswer {
        Box::pin(async move {
            assert_ne!(ask.operation, "job.get", "nobody asks for that");
            if ask.operation == "job.cancel" {
                return Err(HostError::new("not today"));
            }
            let body = String::from_utf8_lossy(&ask.body.to_json()).into_owned();
            let job = ask.duty.map(|duty| duty.job.to_string()).unwrap_or_default();
            Ok(Body::json(format!(r#"["{}",{body},"{}","{job}"]"#, ask.operation, ask.worker)))
        })
    }
}

#[tokio::test]
async fn a_worker_hands_in_jobs_at_the_desk() {
    let directory = Directory::new();
    let spec = spec(program("calls-back.py").await, brisk(1));
    let pool = start(PoolSpec { directory: directory.clone(), ..spec }).await;
    let submit = r#"["ostler","job.submit",{"function":"f"}]"#;
    let refused = ask(&pool, "relay", submit).await;
    assert!(refused.contains("session_required"), "nobody sits there yet: {refused}");
    directory.set_desk(Arc::new(Echo));
    let duty = Duty { job: "j_1".into(), attempt: 1, shard: 0, shard_count: 1, depth: 0 };
    let part = Call { duty: Some(Arc::new(duty)), ..call("relay", submit) };
    let answered = end(pool.call(part)).await.expect("it answers");
    let told = text(&answered.body).replace(' ', "");
    assert_eq!(told, r#"["job.submit",{"function":"f"},"test-1","j_1"]"#);
    let denied = ask(&pool, "relay", r#"["ostler","job.cancel",{}]"#).await;
    assert!(denied.contains("not today"), "{denied}");
    let panicked = ask(&pool, "relay", r#"["ostler","job.get",{}]"#).await;
    assert!(panicked.contains("panicked"), "{panicked}");
    stop(pool).await;
}
