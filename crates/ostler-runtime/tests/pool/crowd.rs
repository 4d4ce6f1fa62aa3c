//! What the tests of sessions and of workers that come and go share: calls of sessions, callers who
//! do not stop, and the lives of workers as events tell them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ostler_runtime::core::{Action, Reply, WorkerId};
use ostler_runtime::{
    Affinity, Answered, Call, CallError, Continuity, Event, EventKind, Pool, Running,
};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::support::*;

/// A call that belongs to a session, under the pool's mode.
pub async fn of(pool: &Pool, session: &str, call: Call) -> Running {
    under(pool, session, None, call).await
}

/// A call that belongs to a session, under a mode of its own.
pub async fn under(pool: &Pool, id: &str, affinity: Option<Affinity>, call: Call) -> Running {
    let session = within("the session is entered", pool.enter(id, affinity)).await;
    pool.call(Call { session: Some(session.expect("it may be entered")), ..call })
}

/// What a call of a session answers, and what the session found.
pub async fn served(running: Running) -> (Value, Continuity) {
    read(end(running).await)
}

pub async fn ask_of(
    pool: &Pool,
    session: &str,
    function: &str,
    arguments: &str,
) -> (Value, Continuity) {
    served(of(pool, session, call(function, arguments)).await).await
}

/// The process that serves a session just now, and what the session found there.
pub async fn home(pool: &Pool, session: &str) -> (i32, Continuity) {
    let (pid, continuity) = ask_of(pool, session, "where", "").await;
    (as_pid(&pid), continuity)
}

fn read(answered: Result<Answered, CallError>) -> (Value, Continuity) {
    let answered = answered.expect("it is served");
    let value = serde_json::from_slice(&answered.body.bytes).expect("JSON");
    (value, answered.continuity.expect("it has a session"))
}

pub fn as_pid(value: &Value) -> i32 {
    value.as_i64().and_then(|pid| pid.try_into().ok()).expect("a pid")
}

pub async fn order(pool: &Pool, action: Action) -> Reply {
    within("the order is answered", pool.order(action)).await
}

/// The worker of a process.
pub fn worker_with(pool: &Pool, pid: i32) -> WorkerId {
    let info = pool.info();
    let found = info.workers.iter().find(|worker| worker.pid == Some(pid));
    found.unwrap_or_else(|| panic!("nobody has {pid}")).view.id
}

/// Callers, each with one call after the other, until they are told that it is enough.
pub struct Crowd {
    enough: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<Vec<Answered>>>,
}

impl Crowd {
    pub fn of(callers: usize, pool: &Pool, call: &Call) -> Crowd {
        let mut crowd =
            Crowd { enough: Arc::default(), served: Arc::default(), callers: Vec::new() };
        for _ in 0..callers {
            let (pool, call) = (pool.clone(), call.clone());
            let (enough, served) = (Arc::clone(&crowd.enough), Arc::clone(&crowd.served));
            crowd.callers.push(tokio::spawn(async move {
                let mut answers = Vec::new();
                while !enough.load(Ordering::Relaxed) {
                    answers.push(end(pool.call(call.clone())).await.expect("no call fails"));
                    served.fetch_add(1, Ordering::Relaxed);
                }
                answers
            }));
        }
        crowd
    }

    /// Waits until as many more were served.
    pub async fn goes_on(&self, calls: usize) {
        let before = self.served.load(Ordering::Relaxed);
        until("the crowd is served", || {
            assert!(!self.callers.iter().any(JoinHandle::is_finished), "a call failed");
            self.served.load(Ordering::Relaxed) >= before + calls
        })
        .await;
    }

    /// Everybody was served whenever they called.
    pub async fn goes_home(self) -> Vec<Answered> {
        self.enough.store(true, Ordering::Relaxed);
        let mut answers = Vec::new();
        for caller in self.callers {
            answers.extend(within("a caller goes home", caller).await.expect("no call fails"));
        }
        answers
    }
}

/// One incarnation of one worker.
type Incarnation = (Arc<str>, u32);

fn incarnation(event: &Event) -> Option<Incarnation> {
    Some((Arc::clone(event.worker.as_ref()?), event.generation?))
}

/// The most processes at a time that were between two events of theirs.
pub fn most_between(events: &[Arc<Event>], from: EventKind, to: EventKind) -> usize {
    let (mut between, mut most) = (BTreeSet::new(), 0);
    for event in events {
        let Some(process) = incarnation(event) else { continue };
        if event.kind == from {
            between.insert(process);
        } else if event.kind == to {
            between.remove(&process);
        }
        most = most.max(between.len());
    }
    most
}

/// The fewest processes that were ready and not told to end, since all were ready.
pub fn fewest_serving(events: &[Arc<Event>]) -> usize {
    let (mut serving, mut fewest) = (BTreeSet::new(), None);
    for event in events {
        if let Some(process) = incarnation(event) {
            match event.kind {
                EventKind::WorkerReady => drop(serving.insert(process)),
                EventKind::WorkerStopping | EventKind::WorkerTerminated => {
                    serving.remove(&process);
                }
                _ => {}
            }
        }
        if fewest.is_some() || event.kind == EventKind::PoolAllReady {
            fewest = Some(fewest.map_or(serving.len(), |n: usize| n.min(serving.len())));
        }
    }
    fewest.expect("all were ready once")
}

/// Whether each of the first `size` workers, and each that came later, left only after another one
/// beyond the first `size` had become ready.
pub fn successors_came_first(events: &[Arc<Event>], size: u64) -> bool {
    let number =
        |event: &Event| -> Option<u64> { event.worker.as_ref()?.rsplit('-').next()?.parse().ok() };
    let mut spare = 0_i64;
    events.iter().all(|event| {
        match event.kind {
            EventKind::WorkerReady => spare += i64::from(number(event).is_some_and(|n| n > size)),
            EventKind::WorkerStopping => spare -= 1,
            _ => {}
        }
        spare >= 0
    })
}

/// Events of a kind, so far.
pub fn told(pool: &Pool, kind: EventKind) -> Vec<Arc<Event>> {
    events(pool).into_iter().filter(|event| event.kind == kind).collect()
}

/// Why the processes ended that have ended so far.
pub fn ends(pool: &Pool) -> Vec<&'static str> {
    let ended = told(pool, EventKind::WorkerTerminated);
    ended.iter().map(|event| event.reason.expect("an end has a reason")).collect()
}

/// What became of a session's bindings, of the rare kinds, in order: `session.rebound/restored`.
pub fn steps(pool: &Pool, session: &str) -> Vec<String> {
    let about = |event: &Arc<Event>| event.detail.get("session").is_some_and(|id| id == session);
    let label = |event: Arc<Event>| match event.reason {
        Some(reason) => format!("{}/{reason}", event.kind.name()),
        None => event.kind.name().to_owned(),
    };
    events(pool).into_iter().filter(about).map(label).collect()
}

/// Nothing was wrong that nobody asked for.
pub fn nothing_amiss(pool: &Pool) {
    let bad = [
        EventKind::WorkerCrashed,
        EventKind::RequestFailed,
        EventKind::RequestRejected,
        EventKind::PoolAlarm,
        EventKind::PoolFailed,
    ];
    for event in events(pool) {
        assert!(!bad.contains(&event.kind), "{event:?}");
    }
    assert_eq!(pool.info().view.counters.restarts_unplanned, 0);
}
