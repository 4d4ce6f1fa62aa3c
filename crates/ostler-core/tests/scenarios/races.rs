//! Anything in the middle of anything: every state of affairs that takes a while, and every
//! disturbance of it. Afterwards the world does its part, and the pool has to be whole again, with
//! one outcome for every request, and a good one if nothing but planned things happened.

use std::time::Duration;

use ostler_core::{
    Action, Answer, Command, Event, Evict, Exit, Keyed, Lifecycle, Outcome, Phase, Recording,
    Refusal, Retirement, SessionId, Settings, Status, WorkerId,
};

use crate::support::*;

/// Enough budget and patience that only what is looked for can refuse anybody.
fn patient(min: u32, max: u32, retire_max: u32) -> Settings {
    let queue_timeout = secs(3_000);
    Settings { min, retire_max, restart_max: 1_000, queue_timeout, ..calm(max) }
}

fn keyed(retire_max: u32) -> Settings {
    let keyed = Some(Keyed { evict: Evict::Lru, evict_min_age: Duration::ZERO });
    Settings { keyed, ..patient(0, 2, retire_max) }
}

/// A state of affairs that takes a while, where so many may be replaced at a time.
type Middle = (&'static str, fn(u32) -> Stage);

/// Two workers, with a strict session on the first; both work, and somebody waits for each.
fn busy(retire_max: u32) -> Stage {
    let mut stage = Stage::ready(patient(2, 3, retire_max));
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 2, HINT);
    stage.arrive_in(3, 1, STRICT);
    stage.arrive(4);
    stage
}

const MIDDLES: [Middle; 19] = [
    ("quiet", |retire_max| {
        let mut stage = busy(retire_max);
        for (id, worker) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
            stage.complete(id, p(worker, 1));
        }
        stage
    }),
    ("busy", busy),
    ("growing", |retire_max| {
        let mut stage = busy(retire_max);
        stage.advance(ms(50));
        stage
    }),
    ("a successor starts", |retire_max| {
        let mut stage = busy(retire_max);
        stage.recycle(1);
        stage
    }),
    ("a successor is ready", |retire_max| {
        let mut stage = busy(retire_max);
        stage.recycle(1);
        stage.become_ready(p(3, 1));
        stage
    }),
    ("a session is handed over", |retire_max| {
        let mut stage = busy(retire_max);
        stage.recycle(1);
        stage.become_ready(p(3, 1));
        stage.complete(1, p(1, 1));
        stage
    }),
    ("the old one is asked to go", |retire_max| {
        let mut stage = busy(retire_max);
        stage.recycle(2);
        stage.become_ready(p(3, 1));
        stage.complete(2, p(2, 1));
        stage
    }),
    ("all are recycled", |retire_max| {
        let mut stage = busy(retire_max);
        stage.recycle_all();
        stage
    }),
    ("a trial starts", |retire_max| {
        let mut stage = busy(retire_max);
        stage.reload(patient(2, 3, retire_max));
        stage
    }),
    ("a trial waits for its place", |retire_max| {
        let mut stage = busy(retire_max);
        stage.recycle(1);
        stage.reload(patient(2, 3, retire_max));
        stage
    }),
    ("a new kind takes over", |retire_max| {
        let mut stage = busy(retire_max);
        stage.reload(patient(2, 3, retire_max));
        stage.become_ready(p(3, 1));
        stage
    }),
    ("one too many leaves", |retire_max| {
        let mut stage = busy(retire_max);
        stage.scale(1, 1);
        stage
    }),
    ("a process is dead", |retire_max| {
        let mut stage = busy(retire_max);
        stage.exit(p(1, 1), Exit::Signal(11));
        stage
    }),
    ("the pool is paused", |retire_max| {
        let mut stage = busy(retire_max);
        stage.pause_all();
        stage
    }),
    ("leases are held and wanted", |retire_max| {
        let mut stage = Stage::ready(patient(2, 3, retire_max));
        stage.ask_lease(1, 1);
        stage.ask_lease(2, 3);
        stage.arrive_for(1, ostler_core::Target::Lease(ostler_core::LeaseId(1), 0));
        stage.arrive(2);
        stage
    }),
    ("keys are busy", |retire_max| {
        let mut stage = Stage::ready(keyed(retire_max));
        stage.arrive_keyed(1, 1, STRICT);
        stage.arrive_keyed(2, 2, HINT);
        stage.become_ready(p(1, 1));
        stage.become_ready(p(2, 1));
        stage.arrive_keyed(3, 1, STRICT);
        stage
    }),
    ("a key is evicted", |retire_max| {
        let mut stage = Stage::ready(keyed(retire_max));
        stage.arrive_keyed(1, 1, STRICT);
        stage.arrive_keyed(2, 2, HINT);
        stage.become_ready(p(1, 1));
        stage.become_ready(p(2, 1));
        stage.complete(1, p(1, 1));
        stage.arrive_keyed(3, 3, STRICT);
        stage.arrive_keyed(4, 1, STRICT);
        stage
    }),
    ("a key is handed to a successor", |retire_max| {
        let mut stage = Stage::ready(keyed(retire_max));
        stage.arrive_keyed(1, 1, STRICT);
        stage.become_ready(p(1, 1));
        stage.arrive_keyed(2, 1, STRICT);
        stage.arrive_keyed(3, 2, HINT);
        stage.become_ready(p(2, 1));
        stage.recycle(1);
        stage
    }),
    ("a trial starts beside the keys", |retire_max| {
        let mut stage = Stage::ready(keyed(retire_max));
        stage.arrive_keyed(1, 1, STRICT);
        stage.arrive_keyed(2, 2, HINT);
        stage.become_ready(p(1, 1));
        stage.become_ready(p(2, 1));
        stage.reload(keyed(retire_max));
        stage
    }),
];

const FIRST: WorkerId = WorkerId(1);
const SECOND: WorkerId = WorkerId(2);
const THIRD: WorkerId = WorkerId(3);
const SESSION: SessionId = SessionId(1);

/// What may happen at any time, and whether it is planned: then nobody is to suffer for it.
type Disturbance = (&'static str, bool, fn(&mut Stage));

fn current(stage: &Stage, worker: u64) -> Option<(ostler_core::ProcessId, Phase)> {
    let view = stage.pool.workers().find(|view| view.id == WorkerId(worker))?;
    Some((p(worker, view.generation), view.phase?))
}

fn die(stage: &mut Stage, worker: u64) {
    if let Some((process, phase)) = current(stage, worker) {
        if phase != Phase::Dead {
            stage.exit(process, Exit::Signal(11));
        }
        stage.clear(process);
    }
}

fn wake(stage: &mut Stage, worker: u64) {
    if let Some((process, Phase::Starting)) = current(stage, worker) {
        stage.become_ready(process);
    }
}

fn finish(stage: &mut Stage, id: u64) {
    let request = ostler_core::RequestId(id);
    if let Some((Some(process), attempt)) = stage.pool.request(request) {
        stage.answer(id, attempt, process, Answer::Completed);
    }
}

fn about(stage: &mut Stage, worker: u64, event: fn(ostler_core::ProcessId) -> Event) {
    if let Some((process, _)) = current(stage, worker) {
        stage.feed(event(process));
    }
}

fn order(stage: &mut Stage, action: Action) {
    stage.order(action);
}

fn elastic(stage: &Stage) -> Settings {
    stage.pool.settings().clone()
}

const DISTURBANCES: [Disturbance; 48] = [
    ("the first dies", false, |stage| die(stage, 1)),
    ("the second dies", false, |stage| die(stage, 2)),
    ("the third dies", false, |stage| die(stage, 3)),
    ("the first is terminated", false, |stage| order(stage, Action::Terminate(FIRST))),
    ("the second is terminated", false, |stage| order(stage, Action::Terminate(SECOND))),
    ("the third is terminated", false, |stage| order(stage, Action::Terminate(THIRD))),
    ("the first is paused", true, |stage| {
        order(stage, Action::Pause { worker: FIRST, freeze: false })
    }),
    ("the third is paused", true, |stage| {
        order(stage, Action::Pause { worker: THIRD, freeze: false })
    }),
    ("the first is frozen", true, |stage| {
        order(stage, Action::Pause { worker: FIRST, freeze: true });
    }),
    ("the first is resumed", true, |stage| order(stage, Action::Resume(FIRST))),
    ("the first completes", false, |stage| order(stage, Action::Complete(FIRST))),
    ("the third completes", false, |stage| order(stage, Action::Complete(THIRD))),
    ("the first is recycled", true, |stage| order(stage, Action::Recycle(FIRST))),
    ("the second is recycled", true, |stage| order(stage, Action::Recycle(SECOND))),
    ("the third is recycled", true, |stage| order(stage, Action::Recycle(THIRD))),
    ("all are recycled", true, |stage| order(stage, Action::RecyclePool)),
    ("scaled to one", true, |stage| order(stage, Action::Scale { min: 1, max: 1 })),
    ("scaled to three", true, |stage| order(stage, Action::Scale { min: 3, max: 3 })),
    ("scaled to none or two", true, |stage| order(stage, Action::Scale { min: 0, max: 2 })),
    ("reloaded", true, |stage| {
        let settings = elastic(stage);
        stage.reload(settings);
    }),
    ("reloaded to a larger pool", true, |stage| {
        let settings = elastic(stage);
        let (min, max) = (settings.min, settings.max + 1);
        stage.reload(Settings { min, max, ..settings });
    }),
    ("reloaded to a smaller pool", true, |stage| {
        let settings = elastic(stage);
        let min = settings.min.min(1);
        stage.reload(Settings { min, max: 1, ..settings });
    }),
    ("the pool is paused", true, |stage| order(stage, Action::PausePool)),
    ("the pool is resumed", true, |stage| order(stage, Action::ResumePool)),
    ("the pool is drained", true, |stage| order(stage, Action::DrainPool)),
    ("the first session ends", true, |stage| stage.end_session(1)),
    ("the first session is unbound", true, |stage| order(stage, Action::Unbind(SESSION))),
    ("the first session is bound to the second", true, |stage| {
        order(stage, Action::Bind { session: SESSION, worker: SECOND })
    }),
    ("the first session is handed over", true, |stage| {
        if let Some((process, _)) = current(stage, 1) {
            stage.saved(1, process);
        }
    }),
    ("the first session is not handed over", false, |stage| {
        if let Some((process, _)) = current(stage, 1) {
            stage.not_saved(1, process);
        }
    }),
    ("the first key ends", false, |stage| stage.end_key(1)),
    ("the third becomes ready", true, |stage| wake(stage, 3)),
    ("the first request is done", true, |stage| finish(stage, 1)),
    ("the second request is done", true, |stage| finish(stage, 2)),
    ("the third request is cancelled", false, |stage| stage.cancel(3)),
    ("the first request is cancelled", false, |stage| stage.cancel(1)),
    ("the first asks to go", true, |stage| {
        about(stage, 1, |process| Event::RetireAsked { process });
    }),
    ("the first is tainted", false, |stage| {
        about(stage, 1, |process| Event::ProcessTainted { process });
    }),
    ("the stream of the third closes", false, |stage| {
        about(stage, 3, |process| Event::StreamClosed { process });
    }),
    ("memory is short", true, |stage| stage.feed(Event::PressureChanged { high: true })),
    ("a lease is given back", true, |stage| stage.release(1)),
    ("one of the first session comes", true, |stage| {
        let id = 100 + stage.counters().arrived;
        stage.arrive_keyed(id, 1, STRICT);
    }),
    ("somebody else comes", true, |stage| {
        let id = 100 + stage.counters().arrived;
        stage.arrive_of(id, 4);
    }),
    ("the store falls silent", true, |stage| stage.store = Store::Silent),
    ("the store does not know", true, |stage| stage.store = Store::Answers(Recording::Unknown)),
    ("a while passes", false, |stage| stage.advance(secs(7))),
    ("the pool ends", false, |stage| stage.shut_down()),
    ("the pool ends at once", false, |stage| {
        stage.feed(Event::ShutdownRequested { now: true });
    }),
];

/// Every process does what is expected of it.
fn do_their_part(stage: &mut Stage, outcomes: &mut Vec<Command>) {
    let workers: Vec<_> = stage.pool.workers().collect();
    for worker in workers {
        let process = p(worker.id.0, worker.generation);
        match worker.phase {
            Some(Phase::Starting) => stage.become_ready(process),
            Some(Phase::Stopping) => stage.leave(process),
            Some(Phase::Dead) => stage.clear(process),
            Some(Phase::Ready | Phase::Busy | Phase::Degraded) => {
                for request in worker.held {
                    finish(stage, request.0);
                }
            }
            None => {}
        }
    }
    let deeds = stage.take();
    obey(stage, deeds, outcomes);
}

/// Whoever is asked for something gives it, perhaps too late.
fn obey(stage: &mut Stage, deeds: Vec<Command>, outcomes: &mut Vec<Command>) {
    for deed in deeds {
        match deed {
            Command::SaveSession { process, session } => stage.saved(session.0, process),
            Command::Cancel { request, attempt, process, withdraw } => {
                let answer = Answer::Cancelled { started: !withdraw };
                stage.answer(request.0, attempt, process, answer);
            }
            Command::Resolve { .. } | Command::Refuse { .. } => outcomes.push(deed),
            _ => {}
        }
    }
}

fn settle(stage: &mut Stage) -> Vec<Command> {
    let mut outcomes = Vec::new();
    for round in 0..60 {
        if round == 5 {
            stage.store = Store::Answers(Recording::Stored);
            for (record, _) in stage.records() {
                stage.feed(Event::Recorded { record, result: Recording::Stored });
            }
        }
        if round == 10 {
            stage.feed(Event::PressureChanged { high: false });
            stage.resume_all();
            stage.release(1);
            stage.release(2);
        }
        if round >= 10 {
            let paused = stage.pool.workers().filter(|worker| worker.status == Status::Paused);
            let paused: Vec<_> = paused.map(|worker| worker.id.0).collect();
            for worker in paused {
                stage.resume(worker);
            }
        }
        do_their_part(stage, &mut outcomes);
        stage.advance(ms(500));
    }
    do_their_part(stage, &mut outcomes);
    outcomes
}

fn assert_whole(stage: &mut Stage, what: &str) {
    let view = stage.pool.view(stage.now);
    let counters = view.counters;
    assert_eq!(counters.resolved + counters.refused, counters.arrived, "{what}: one outcome each");
    assert_eq!((view.queued, view.leases), (0, 0), "{what}");
    if matches!(view.lifecycle, Lifecycle::Draining | Lifecycle::Stopped) {
        assert_eq!(view.lifecycle, Lifecycle::Stopped, "{what}");
        return;
    }
    assert_eq!(view.lifecycle, Lifecycle::Running, "{what}");
    assert!(view.workers <= view.max as usize, "{what}: {} of {}", view.workers, view.max);
    let keyed = stage.pool.settings().keyed.is_some();
    if !keyed {
        assert_eq!(view.workers, view.target as usize, "{what}");
        assert!(view.target >= view.min, "{what}");
    }
    let mut keys = std::collections::BTreeSet::new();
    for worker in stage.pool.workers() {
        let is = (worker.status, worker.phase, worker.retirement, worker.edition);
        let expected = (Status::Running, Some(Phase::Ready), None::<Retirement>, view.edition);
        assert_eq!(is, expected, "{what}: {worker:?}");
        assert_eq!(worker.key.is_some(), keyed, "{what}: {worker:?}");
        if let Some(key) = worker.key {
            assert!(keys.insert(key), "{what}: {key:?} has two workers");
        }
    }
    stage.forget();
    stage.arrive_of(9_000, 9);
    let mut outcomes = Vec::new();
    (0..8).for_each(|_| do_their_part(stage, &mut outcomes));
    assert_eq!(outcomes, [answered(9_000)], "{what}: it serves");
}

fn run(middle: Middle, retire_max: u32, disturbances: &[Disturbance]) -> Result<(), String> {
    let names: Vec<_> = disturbances.iter().map(|(name, ..)| *name).collect();
    let what = format!("{}, {retire_max} at a time: {}", middle.0, names.join(", then "));
    let went = std::panic::catch_unwind(|| {
        let mut stage = middle.1(retire_max);
        let mut outcomes = Vec::new();
        let before = stage.take();
        for (_, _, disturb) in disturbances {
            disturb(&mut stage);
        }
        obey(&mut stage, before, &mut outcomes);
        outcomes.extend(settle(&mut stage));
        assert_whole(&mut stage, "afterwards");
        let planned = disturbances.iter().all(|(_, planned, _)| *planned);
        let calm = planned && middle.0 != "a process is dead";
        let good = |end: &Command| {
            matches!(
                end,
                Command::Resolve { outcome: Outcome::Answered, .. }
                    | Command::Refuse { refusal: Refusal::PoolDraining, .. }
            )
        };
        if let Some(bad) = outcomes.iter().find(|end| calm && !good(end)) {
            panic!("a planned event cost somebody: {bad:?}");
        }
    });
    went.map_err(|cause| {
        let cause = cause.downcast_ref::<String>().cloned();
        format!("{what}: {}", cause.unwrap_or_default())
    })
}

fn assert_unbroken(ways: impl Iterator<Item = Result<(), String>>) {
    let wrong: Vec<String> = ways.filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} ways to break it:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every two disturbances of every state of affairs.
fn pairs() -> impl Iterator<Item = (Middle, Disturbance, Disturbance)> {
    MIDDLES.into_iter().flat_map(|middle| {
        DISTURBANCES.into_iter().flat_map(move |first| {
            DISTURBANCES.into_iter().map(move |second| (middle, first, second))
        })
    })
}

#[test]
fn anything_may_happen_in_the_middle_of_anything() {
    let ways = MIDDLES.into_iter().flat_map(|middle| {
        DISTURBANCES.into_iter().flat_map(move |disturbance| {
            [1, 2].map(|retire_max| run(middle, retire_max, &[disturbance]))
        })
    });
    assert_unbroken(ways);
}

#[test]
fn two_things_may_happen_in_the_middle_of_anything() {
    // Every thirteenth: each disturbance meets each other one in some state of affairs.
    let some = pairs().enumerate().filter(|(at, _)| at % 13 == 0);
    assert_unbroken(
        some.map(|(at, (middle, first, second))| run(middle, 1 + at as u32 % 2, &[first, second])),
    );
}

#[test]
#[ignore = "takes half a minute"]
fn any_two_things_may_happen_in_the_middle_of_anything() {
    assert_unbroken(pairs().flat_map(|(middle, first, second)| {
        [1, 2].map(|retire_max| run(middle, retire_max, &[first, second]))
    }));
}
