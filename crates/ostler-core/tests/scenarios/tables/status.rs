//! Status of a worker x what may be ordered.

use ostler_core::{
    Action, Change, Command, Event, Exit, OrderId, RecordId, Recording, Reply, SessionId, Settings,
    Status, Trigger, WorkerId,
};

use super::{Row, rows};
use crate::support::*;

const STATUSES: [Status; 6] = [
    Status::Idle,
    Status::Running,
    Status::Paused,
    Status::Completed,
    Status::Failed,
    Status::Terminated,
];

/// The worker in question: made by order, beside the pool's own.
const SUBJECT: WorkerId = WorkerId(2);

const SESSION: SessionId = SessionId(1);

/// Cells: the status after (`I`dle, `R`unning, `P`aused, `C`ompleted, `F`ailed, `T`erminated), `+`
/// for another worker made, `=` for what is no concern of its status, `-` for refused.
#[rustfmt::skip]
fn table() -> Vec<Row<Action>> {
    rows! { Action;
        //                                                       Running Completed Terminated
        //                                                   Idle | Paused | Failed |
        Create    { "" |_| Action::Create                      => "+ + + + + +" }
        Start     { "" |_| Action::Start(SUBJECT)              => "R - - - - -" }
        Pause {
            "" |_| Action::Pause { worker: SUBJECT, freeze: false }
                                                               => "- P - - - -",
            "freezing" |_| Action::Pause { worker: SUBJECT, freeze: true }
                                                               => "- P - - - -",
        }
        Resume    { "" |_| Action::Resume(SUBJECT)             => "- - R - - -" }
        Complete  { "" |_| Action::Complete(SUBJECT)           => "- C - - - -" }
        Terminate { "" |_| Action::Terminate(SUBJECT)          => "T T T T T -" }
        Recycle   { "" |_| Action::Recycle(SUBJECT)            => "- R - - - -" }
        RecyclePool { "" |_| Action::RecyclePool               => "= = = = = =" }
        PausePool   { "" |_| Action::PausePool                 => "= = = = = =" }
        ResumePool  { "" |_| Action::ResumePool                => "= = = = = =" }
        DrainPool   { "" |_| Action::DrainPool                 => "= = = = = =" }
        Scale {
            "up" |_| Action::Scale { min: 2, max: 3 }          => "= = = = = =",
            "to none" |_| Action::Scale { min: 0, max: 1 }     => "= = = = = =",
        }
        Bind {
            "" |_| Action::Bind { session: SESSION, worker: SUBJECT }
                                                               => "= = = = = =",
        }
        Unbind { "" |_| Action::Unbind(SESSION)                => "= = = = = =" }
    }
}

fn named(letter: char) -> Status {
    match letter {
        'I' => Status::Idle,
        'R' => Status::Running,
        'P' => Status::Paused,
        'C' => Status::Completed,
        'F' => Status::Failed,
        'T' => Status::Terminated,
        other => panic!("no status is called {other}"),
    }
}

/// A pool whose subject has that status and, where it ended, no process.
fn worker_in(status: Status) -> Stage {
    let mut stage = Stage::ready(Settings { restart_max: 0, ..calm(1) });
    stage.order(Action::Create);
    if status != Status::Idle {
        stage.order(Action::Start(SUBJECT));
        stage.become_ready(p(2, 1));
    }
    match status {
        Status::Idle | Status::Running => {}
        Status::Paused => {
            stage.pause(2);
        }
        Status::Completed => {
            stage.complete_worker(2);
            stage.leave(p(2, 1));
        }
        Status::Failed => stage.crash(p(2, 1)),
        Status::Terminated => {
            stage.terminate(2);
            stage.crash(p(2, 1));
        }
    }
    stage.forget();
    assert_eq!(stage.status(2), status);
    stage
}

#[test]
fn every_order_in_every_status_does_what_the_table_says() {
    for row in table() {
        for (from, cell) in row.cells(&STATUSES) {
            let mut stage = worker_in(from);
            let action = row.happening(&mut stage);
            match cell {
                '+' => assert_another(stage, action, &row.name()),
                '=' => assert_no_concern(stage, action, &row.name()),
                '-' => assert_refused(stage, action, &row.name()),
                letter => assert_obeyed(stage, action, named(letter), &row.name()),
            }
        }
    }
}

fn assert_another(mut stage: Stage, action: Action, name: &str) {
    let before = stage.view(2);
    let order = stage.order(action);
    assert_eq!(stage.take(), [done(order, 3, Status::Idle)], "{name}");
    assert_eq!(stage.view(2), before, "{name}");
}

fn assert_no_concern(mut stage: Stage, action: Action, name: &str) {
    let from = stage.status(2);
    let order = stage.order(action);
    let expected = match action {
        Action::Bind { .. } if from.terminal() => Reply::NoSuchWorker,
        Action::Bind { .. } => Reply::NotServing,
        Action::RecyclePool if from == Status::Running => {
            Reply::Recycling { workers: vec![WorkerId(1), SUBJECT] }
        }
        Action::RecyclePool => Reply::Recycling { workers: vec![WorkerId(1)] },
        _ => Reply::PoolDone,
    };
    assert_eq!(reply_to(order, &stage.take()), Some(expected), "{name} in {from:?}");
    assert_eq!(stage.status(2), from, "{name} in {from:?}");
    let of_it = |(record, _): &(RecordId, Change)| record.worker == SUBJECT;
    assert!(!stage.records().iter().any(of_it), "{name} in {from:?}");
}

fn assert_obeyed(mut stage: Stage, action: Action, to: Status, name: &str) {
    let from = stage.status(2);
    let order = stage.order(action);
    if to == Status::Terminated && stage.phase(2).is_some() {
        assert_eq!(stage.take(), [kill(p(2, 1))], "{name} in {from:?}");
        stage.exit(p(2, 1), Exit::Signal(9));
        stage.clear(p(2, 1));
    }
    let obeyed = Reply::Done { worker: SUBJECT, status: to };
    assert_eq!(reply_to(order, &stage.take()), Some(obeyed), "{name} in {from:?}");
    assert_eq!(stage.status(2), to, "{name} in {from:?}");
    let stored = stage.records().into_iter();
    let stored = stored.map(|(_, change)| (change.from, change.to, change.order));
    // A worker of one's own that is recycled keeps its status and gets a new process.
    let expected = (from != to).then_some((Some(from), to, Some(order)));
    assert_eq!(stored.collect::<Vec<_>>(), Vec::from_iter(expected), "{name} in {from:?}");
}

fn assert_refused(mut stage: Stage, action: Action, name: &str) {
    let before = stage.view(2);
    let from = before.status;
    let order = stage.order(action);
    let refused = Reply::Illegal { from, to: wanted(action), allowed: allowed(from) };
    assert_eq!(stage.take(), [reply(order, refused)], "{name} in {from:?}");
    assert_eq!((stage.records(), stage.notices()), (vec![], vec![]), "{name} in {from:?}");
    assert_eq!(stage.view(2), before, "{name} in {from:?}");
    assert_eq!(stage.counters().illegal_orders, 1, "{name} in {from:?}");
}

fn wanted(action: Action) -> Status {
    match action {
        Action::Create => Status::Idle,
        Action::Start(_) | Action::Resume(_) => Status::Running,
        Action::Pause { .. } => Status::Paused,
        Action::Complete(_) | Action::Recycle(_) => Status::Completed,
        Action::Terminate(_) => Status::Terminated,
        other => unreachable!("{other:?} is not about a status"),
    }
}

/// Sorted by name, as a refusal lists them.
fn allowed(from: Status) -> Vec<Status> {
    use Status::{Completed, Failed, Idle, Paused, Running, Terminated};
    match from {
        Idle | Paused => vec![Failed, Running, Terminated],
        Running => vec![Completed, Failed, Paused, Terminated],
        Completed | Failed => vec![Terminated],
        Terminated => vec![],
    }
}

fn reply_to(order: OrderId, deeds: &[Command]) -> Option<Reply> {
    let mut replies = deeds.iter().filter_map(|deed| match deed {
        Command::Reply { order: of, reply } if *of == order => Some(reply.clone()),
        _ => None,
    });
    let first = replies.next();
    assert_eq!(replies.next(), None, "an order is answered once");
    first
}

#[test]
fn an_unknown_worker_is_said_to_be_unknown() {
    for row in table() {
        let mut stage = Stage::ready(calm(1));
        let action = row.happening(&mut stage);
        if names_it(action) {
            let order = stage.order(action);
            assert_eq!(stage.take(), [reply(order, Reply::NoSuchWorker)], "{}", row.name());
        }
    }
}

/// Whether an order is about the subject and no other.
fn names_it(action: Action) -> bool {
    match action {
        Action::Start(worker)
        | Action::Pause { worker, .. }
        | Action::Resume(worker)
        | Action::Complete(worker)
        | Action::Terminate(worker)
        | Action::Recycle(worker)
        | Action::Bind { worker, .. } => worker == SUBJECT,
        Action::Create
        | Action::RecyclePool
        | Action::PausePool
        | Action::ResumePool
        | Action::DrainPool
        | Action::Scale { .. }
        | Action::Unbind(_) => false,
    }
}

/// A subject in that status whose next change the store is still busy with.
fn changing(from: Status, action: Action) -> Stage {
    let mut stage = worker_in(from);
    stage.store = Store::Silent;
    stage.order(action);
    stage.forget();
    stage
}

#[test]
fn while_any_change_is_being_stored_every_order_waits_its_turn() {
    let freeze = false;
    let changes = [
        (Status::Idle, Action::Start(SUBJECT)),
        (Status::Running, Action::Pause { worker: SUBJECT, freeze }),
        (Status::Paused, Action::Resume(SUBJECT)),
        (Status::Running, Action::Complete(SUBJECT)),
        (Status::Running, Action::Terminate(SUBJECT)),
        (Status::Completed, Action::Terminate(SUBJECT)),
    ];
    for (from, change) in changes {
        for row in table() {
            let mut stage = changing(from, change);
            let action = row.happening(&mut stage);
            let before = stage.view(2);
            let order = stage.order(action);
            let what = format!("{} during {change:?}", row.name());
            match row.cells(&STATUSES)[0].1 {
                '+' => assert_eq!(stage.records().len(), 1, "{what}: that is another matter"),
                '=' => assert_eq!(stage.status(2), before.status, "{what}"),
                _ => {
                    assert_eq!(stage.take(), [reply(order, Reply::InTransition)], "{what}");
                    assert_eq!((stage.records(), stage.view(2)), (vec![], before), "{what}");
                }
            }
        }
    }
}

/// Why the pool itself changes a status, and how.
type Own = (Trigger, fn(&mut Stage));

#[test]
fn what_the_pool_does_by_itself_goes_along_the_same_table() {
    let refused = |stage: &mut Stage| {
        stage.order(Action::Recycle(SUBJECT));
        stage.leave(p(2, 1));
        stage.fail_spawn(p(2, 2), ostler_core::SpawnFailure::Exhausted);
    };
    let own: [Own; 3] = [
        (Trigger::ErrorUnrecoverable, |stage| stage.crash(p(2, 1))),
        (Trigger::PauseExhausted, refused),
        (Trigger::Terminate, |stage| {
            stage.arrive_for(1, ostler_core::Target::Worker(SUBJECT));
            stage.complete_worker(2);
            stage.advance(secs(30));
        }),
    ];
    for (trigger, happen) in own {
        let mut stage = worker_in(Status::Running);
        happen(&mut stage);
        let changes: Vec<_> = stage.records().into_iter().map(|(_, change)| change).collect();
        let [change] = changes[..] else { panic!("{trigger:?}: {changes:?}") };
        assert_eq!((change.trigger, change.order), (trigger, None));
        assert_eq!((change.from, change.to), (Some(Status::Running), stage.status(2)));
        assert!(allowed(Status::Running).contains(&change.to), "{trigger:?}");
    }
}

#[test]
fn an_order_that_the_store_refuses_leaves_the_status_as_it_was() {
    for row in table() {
        for (from, cell) in row.cells(&STATUSES) {
            let mut stage = worker_in(from);
            let action = row.happening(&mut stage);
            // Recycling a worker of one's own stores nothing.
            if matches!(cell, '-' | '+' | '=') || matches!(action, Action::Recycle(_)) {
                continue;
            }
            stage.store = Store::Answers(Recording::Refused);
            let order = stage.order(action);
            let told = reply_to(order, &stage.take());
            assert_eq!(told, Some(Reply::StoreRefused), "{} in {from:?}", row.name());
            assert_eq!(stage.status(2), from, "{} in {from:?}", row.name());
        }
    }
}

#[test]
fn a_confirmation_of_another_change_is_dropped_and_counted() {
    let mut stage = changing(Status::Running, Action::Pause { worker: SUBJECT, freeze: false });
    let stale = stage.stale();
    for seq in [1, 2, 4] {
        let record = ostler_core::RecordId { worker: SUBJECT, seq };
        stage.feed(Event::Recorded { record, result: Recording::Stored });
    }
    assert_eq!((stage.status(2), stage.stale()), (Status::Running, stale + 3));
}
