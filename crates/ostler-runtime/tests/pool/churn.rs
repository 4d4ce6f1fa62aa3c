//! What holds for sessions whatever comes and goes around them: no state is lost in a planned way,
//! and nobody meets another process without being told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ostler_runtime::core::{Action, Evict, Keyed, Refusal, Settings};
use ostler_runtime::{
    Affinity, CallError, Continuity, EventKind, Failure, KeyedBy, Pool, PoolSpec, Refused,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::crowd::*;
use super::support::*;

fn sessions_of(yard: &Yard, size: u32) -> PoolSpec {
    let settings = Settings { queue_timeout: LIMIT, restart_max: 1_000, ..brisk(size) };
    let spec = spec(functions("saves-as-told.py"), settings);
    yard.around(PoolSpec { affinity: Affinity::StrictQueue, ..spec })
}

/// Somebody with a session, who knows what its process should know and where that was.
struct Guest {
    pool: Pool,
    id: String,
    /// A pid and a value; `None` before the first call and after a loss.
    knows: Option<(Value, Value)>,
    /// Times that it was told of a loss, by a refusal or by a failure of its own.
    losses: usize,
    calls: u64,
}

impl Guest {
    fn new(pool: &Pool, n: usize) -> Guest {
        Guest { pool: pool.clone(), id: format!("s-{n}"), knows: None, losses: 0, calls: 0 }
    }

    /// Looks at what the session knows, and has it remember another value.
    async fn calls(&mut self) {
        if let Some((kept, found)) = self.asks("recall", "").await {
            self.judge(&kept["pid"], found);
            let (_, value) = self.knows.as_ref().expect("just judged");
            assert_eq!(kept["value"], *value, "{}: {found:?}", self.id);
        }
        self.calls += 1;
        let value = json!([self.id, self.calls]);
        if let Some((kept, found)) = self.asks("remember", &json!([value]).to_string()).await {
            self.judge(&kept["pid"], found);
            self.knows = Some((kept["pid"].clone(), value));
        }
    }

    /// `None`: its process is gone, and it was told.
    async fn asks(&mut self, function: &str, arguments: &str) -> Option<(Value, Continuity)> {
        let running = of(&self.pool, &self.id, call(function, arguments)).await;
        match end(running).await {
            Ok(answered) => {
                let kept = serde_json::from_slice(&answered.body.bytes).expect("JSON");
                Some((kept, answered.continuity.expect("it has a session")))
            }
            Err(
                CallError::Refused(Refused::Pool(Refusal::SessionWorkerLost))
                | CallError::Failed(Failure::Crashed { .. }),
            ) => {
                (self.knows, self.losses) = (None, self.losses + 1);
                None
            }
            Err(other) => panic!("{}: {other:?}", self.id),
        }
    }

    /// It is where it was, or was told that it is not.
    fn judge(&mut self, pid: &Value, found: Continuity) {
        let before = self.knows.as_ref().map(|(before, _)| before);
        let fits = match found {
            Continuity::Bound => before.is_none(),
            Continuity::Same => before == Some(pid),
            Continuity::Restored => before.is_some_and(|before| before != pid),
            Continuity::Elsewhere | Continuity::Restarted => false,
        };
        assert!(fits, "{} was at {before:?} and finds {found:?} at {pid}", self.id);
        let value = self.knows.take().map_or(Value::Null, |(_, value)| value);
        self.knows = Some((pid.clone(), value));
    }
}

/// Guests who come again and again until it is enough.
struct House {
    enough: Arc<AtomicBool>,
    guests: Vec<JoinHandle<Guest>>,
}

impl House {
    fn of(pool: &Pool, guests: usize) -> House {
        let enough = Arc::<AtomicBool>::default();
        let come = |n| {
            let (enough, mut guest) = (Arc::clone(&enough), Guest::new(pool, n));
            tokio::spawn(async move {
                while !enough.load(Ordering::Relaxed) {
                    guest.calls().await;
                }
                guest
            })
        };
        House { guests: (0..guests).map(come).collect(), enough }
    }

    async fn closes(self) -> Vec<Guest> {
        self.enough.store(true, Ordering::Relaxed);
        let mut guests = Vec::new();
        for guest in self.guests {
            guests.push(within("a guest leaves", guest).await.expect("it found what it should"));
        }
        guests
    }
}

#[tokio::test]
async fn no_session_loses_its_state_while_everything_is_replaced() {
    let yard = Yard::new();
    let mut spec = sessions_of(&yard, 3);
    spec.settings.max_requests = Some(50);
    let pool = start(spec.clone()).await;
    let house = House::of(&pool, 8);
    for leave in [3, 6] {
        order(&pool, Action::RecyclePool).await;
        until("they have left", || ends(&pool).len() >= leave).await;
        within("it is reloaded", pool.reload(spec.clone())).await.expect("it is good");
    }
    order(&pool, Action::Scale { min: 1, max: 1 }).await;
    until("one is left", || pool.info().workers.len() == 1).await;
    order(&pool, Action::Scale { min: 3, max: 3 }).await;
    until("there are three again", || pool.info().view.ready >= 3).await;
    for guest in house.closes().await {
        assert_eq!(guest.losses, 0, "{}", guest.id);
    }
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn more_sessions_than_processes_take_turns_and_keep_their_state() {
    let yard = Yard::new();
    let mut spec = PoolSpec { key: Some(KeyedBy::Session), ..sessions_of(&yard, 2) };
    spec.settings.min = 0;
    spec.settings.keyed = Some(Keyed { evict: Evict::Lru, evict_min_age: Duration::ZERO });
    let pool = start(spec).await;
    let house = House::of(&pool, 5);
    until("many were evicted", || ends(&pool).len() >= 15).await;
    for guest in house.closes().await {
        assert_eq!(guest.losses, 0, "{}", guest.id);
        assert!(guest.calls > 0, "{} was never served", guest.id);
    }
    let events = events(&pool);
    let most = most_between(&events, EventKind::WorkerSpawned, EventKind::WorkerTerminated);
    assert_eq!(most, 2, "processes at a time");
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn nobody_meets_another_process_without_being_told_while_processes_are_killed() {
    let yard = Yard::new();
    let pool = start(sessions_of(&yard, 3)).await;
    within("all are ready", pool.all_ready()).await;
    let house = House::of(&pool, 8);
    for round in 0..6 {
        let worker = round % 3;
        if round % 2 == 0 {
            order(&pool, Action::RecyclePool).await;
        }
        try_send(pid(&pool, worker).await, libc::SIGKILL);
        until("it was seen", || told(&pool, EventKind::WorkerCrashed).len() > round).await;
    }
    let guests = house.closes().await;
    assert!(guests.iter().map(|guest| guest.losses).sum::<usize>() > 0, "nobody was hit");
    assert!(told(&pool, EventKind::PoolAlarm).is_empty());
    stop(pool).await;
}
