//! Lifecycle of a pool x event, and what each tells those who come.

use ostler_core::{
    Action, Answer, Command, Event, Exit, KeyId, LeaseId, LeaseSpec, Lifecycle, OrderId, ProcessId,
    RecordId, Recording, Refusal, Reply, RequestId, RequestSpec, SessionId, Settings, SpawnFailure,
    WorkerId,
};

use super::{Row, assert_as_drawn, expect, refused_aloud, rows};
use crate::support::*;

/// The lifecycles, those apart that may answer differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    New,
    Starting,
    Running,
    /// Running, but its only process has died and is not cleared.
    Bereft,
    Failed,
    /// Failed, and one new worker is to show whether the cause is gone.
    Probing,
    Draining,
    /// Draining, and its last process has died and is not cleared.
    Leaving,
    Stopped,
}

const COLUMNS: [Column; 9] = [
    Column::New,
    Column::Starting,
    Column::Running,
    Column::Bereft,
    Column::Failed,
    Column::Probing,
    Column::Draining,
    Column::Leaving,
    Column::Stopped,
];

impl Column {
    fn lifecycle(self) -> Lifecycle {
        match self {
            Column::New | Column::Starting => Lifecycle::Starting,
            Column::Running | Column::Bereft => Lifecycle::Running,
            Column::Failed | Column::Probing => Lifecycle::Failed,
            Column::Draining | Column::Leaving => Lifecycle::Draining,
            Column::Stopped => Lifecycle::Stopped,
        }
    }

    /// A pool of one without a budget for restarts; request 1 runs where somebody runs.
    fn stage(self) -> Stage {
        let settings = Settings { restart_max: 0, prefetch: 0, ..calm(1) };
        let mut stage = Stage::new(settings);
        if self != Column::New {
            stage.feed(Event::PoolStarted);
        }
        if !matches!(self, Column::New | Column::Starting) {
            stage.become_ready(p(1, 1));
        }
        match self {
            Column::New | Column::Starting => {}
            Column::Running => stage.arrive(1),
            Column::Bereft => stage.exit(p(1, 1), Exit::Code(1)),
            Column::Failed => stage.crash(p(1, 1)),
            Column::Probing => {
                stage.crash(p(1, 1));
                stage.advance(secs(30));
            }
            Column::Draining => {
                stage.arrive(1);
                stage.shut_down();
            }
            Column::Leaving => {
                stage.shut_down();
                stage.exit(p(1, 1), Exit::Code(0));
            }
            Column::Stopped => {
                stage.shut_down();
                stage.leave(p(1, 1));
            }
        }
        stage.forget();
        assert_eq!(stage.pool.lifecycle(), self.lifecycle(), "{self:?}");
        stage
    }
}

/// The process that the pool depends on.
fn subject(stage: &Stage) -> ProcessId {
    let last = stage.pool.workers().last();
    last.map_or(p(1, 1), |worker| p(worker.id.0, worker.generation))
}

fn ordered(action: Action) -> Event {
    Event::Ordered { order: OrderId(99), action }
}

fn arrived(target: ostler_core::Target) -> Event {
    let spec = RequestSpec { target, ..RequestSpec::until(FAR) };
    Event::RequestArrived { request: RequestId(2), spec }
}

fn leased() -> Event {
    let spec = LeaseSpec { workers: 1, ttl: secs(60), deadline: FAR };
    Event::LeaseRequested { lease: LeaseId(1), spec }
}

/// Cells: the lifecycle after (`s`tarting, `r`unning, `d`raining, stopped `x`, `f`ailed), `.` for
/// no change, `!` for impossible.
#[rustfmt::skip]
fn table() -> Vec<Row<Event>> {
    rows! { Event;
        //                                                        Starting Bereft Probing Leaving
        //                                                      New | Running | Failed | Draining | Stopped
        PoolStarted {
            "" |_| Event::PoolStarted                         => ". !   ! !   ! !   ! !   !",
        }
        DeadlineReached {
            "the cooldown is over" |s| {
                s.advance(secs(30) - ms(1));
                s.now = s.now.after(ms(1));
                Event::DeadlineReached
            }                                                 => ". .   . .   . .   . .   .",
        }
        ShutdownRequested {
            "" |_| Event::ShutdownRequested { now: false }    => "x d   d d   x d   . .   .",
            "now" |_| Event::ShutdownRequested { now: true }  => "x d   d d   x d   . .   .",
        }
        RequestArrived {
            "" |_| arrived(ostler_core::Target::Any)          => ". .   . .   . .   . .   .",
        }
        CancelRequested {
            "" |_| Event::CancelRequested { request: RequestId(1) }
                                                              => ". .   . .   . .   . .   .",
        }
        SpawnFailed {
            "broken" |s| Event::SpawnFailed {
                process: subject(s),
                cause: SpawnFailure::Broken,
            }                                                 => ". f   . .   . .   . .   .",
            "exhausted" |s| Event::SpawnFailed {
                process: subject(s),
                cause: SpawnFailure::Exhausted,
            }                                                 => ". .   . .   . .   . .   .",
        }
        ProcessReady {
            "" |s| Event::ProcessReady {
                process: subject(s),
                ready: READY,
            }                                                 => ". r   . .   . r   . .   .",
        }
        Answered {
            "" |s| Event::Answered {
                process: subject(s),
                request: RequestId(1),
                attempt: 1,
                answer: Answer::Completed,
                streamed: false,
            }                                                 => ". .   . .   . .   . .   .",
        }
        HealthReported {
            "" |s| Event::HealthReported {
                process: subject(s),
                well: false,
            }                                                 => ". .   . .   . .   . .   .",
        }
        ProcessHeard {
            "" |s| Event::ProcessHeard { process: subject(s) }
                                                              => ". .   . .   . .   . .   .",
        }
        RetireAsked {
            "" |s| Event::RetireAsked { process: subject(s) } => ". .   . .   . .   . .   .",
        }
        MemoryMeasured {
            "" |s| Event::MemoryMeasured { process: subject(s), bytes: 1_000 }
                                                              => ". .   . .   . .   . .   .",
        }
        PressureChanged {
            "" |_| Event::PressureChanged { high: true }      => ". .   . .   . .   . .   .",
        }
        SessionSaved {
            "" |s| Event::SessionSaved {
                process: subject(s),
                session: SessionId(1),
                saved: true,
            }                                                 => ". .   . .   . .   . .   .",
        }
        SessionEnded {
            "" |_| Event::SessionEnded { session: SessionId(1) }
                                                              => ". .   . .   . .   . .   .",
        }
        KeyEnded {
            "" |_| Event::KeyEnded { key: KeyId(1) }          => ". .   . .   . .   . .   .",
        }
        ProcessTainted {
            "" |s| Event::ProcessTainted { process: subject(s) }
                                                              => ". .   . .   . .   . .   .",
        }
        StreamClosed {
            "" |s| Event::StreamClosed { process: subject(s) }
                                                              => ". .   . .   . .   . .   .",
        }
        ProtocolViolated {
            "" |s| Event::ProtocolViolated { process: subject(s) }
                                                              => ". .   . .   . .   . .   .",
        }
        ProcessExited {
            "" |s| Event::ProcessExited {
                process: subject(s),
                exit: Exit::Code(1),
                streamed: Vec::new(),
            }                                                 => ". .   . .   . .   . .   .",
        }
        ProcessCleared {
            "" |s| Event::ProcessCleared { process: subject(s) }
                                                              => ". .   . f   . .   . x   .",
        }
        LeaseRequested {
            "" |_| leased()                                   => ". .   . .   . .   . .   .",
        }
        LeaseRenewed {
            "" |_| Event::LeaseRenewed { lease: LeaseId(1), ttl: secs(1) }
                                                              => ". .   . .   . .   . .   .",
        }
        LeaseReleased {
            "" |_| Event::LeaseReleased { lease: LeaseId(1), discard: true }
                                                              => ". .   . .   . .   . .   .",
        }
        Ordered {
            "create" |_| ordered(Action::Create)              => ". .   . .   . .   . .   .",
            "start" |s| ordered(Action::Start(subject(s).worker))
                                                              => ". .   . .   . .   . .   .",
            "pause" |s| ordered(Action::Pause { worker: subject(s).worker, freeze: false })
                                                              => ". .   . .   . .   . .   .",
            "resume" |s| ordered(Action::Resume(subject(s).worker))
                                                              => ". .   . .   . .   . .   .",
            "complete" |s| ordered(Action::Complete(subject(s).worker))
                                                              => ". .   . .   . .   . .   .",
            "terminate" |s| ordered(Action::Terminate(subject(s).worker))
                                                              => ". .   . .   . .   . .   .",
            "recycle" |s| ordered(Action::Recycle(subject(s).worker))
                                                              => ". .   . .   . .   . .   .",
            "recycle all" |_| ordered(Action::RecyclePool)    => ". .   . .   . .   . .   .",
            "pause all" |_| ordered(Action::PausePool)        => ". .   . .   . .   . .   .",
            "resume all" |_| ordered(Action::ResumePool)      => ". .   . .   . .   . .   .",
            "drain" |_| ordered(Action::DrainPool)            => ". d   d d   d d   . .   .",
            "scale up" |_| ordered(Action::Scale { min: 2, max: 2 })
                                                              => ". .   . .   . .   . .   .",
            "scale to none" |_| ordered(Action::Scale { min: 0, max: 1 })
                                                              => ". .   . .   . .   . .   .",
            "bind" |s| ordered(Action::Bind {
                session: SessionId(1),
                worker: subject(s).worker,
            })                                                => ". .   . .   . .   . .   .",
            "unbind" |_| ordered(Action::Unbind(SessionId(1)))
                                                              => ". .   . .   . .   . .   .",
        }
        ReloadOrdered {
            "" |_| Event::ReloadOrdered {
                order: OrderId(99),
                settings: Box::new(calm(1)),
            }                                                 => ". .   . .   . .   . .   .",
        }
        Recorded {
            "" |s| Event::Recorded {
                record: RecordId { worker: subject(s).worker, seq: 1 },
                result: Recording::Stored,
            }                                                 => ". .   . .   . .   . .   .",
        }
    }
}

#[test]
fn every_event_in_every_lifecycle_leads_where_the_table_says() {
    assert_as_drawn(table(), &COLUMNS, check);
}

fn check(row: &Row<Event>, column: Column, cell: char) -> Result<(), String> {
    let mut stage = column.stage();
    let event = row.happening(&mut stage);
    if cell == '!' {
        return refused_aloud(stage, event);
    }
    stage.feed(event);
    let expected = if cell == '.' { column.lifecycle() } else { named(cell) };
    expect(stage.pool.lifecycle(), expected)
}

fn named(letter: char) -> Lifecycle {
    match letter {
        's' => Lifecycle::Starting,
        'r' => Lifecycle::Running,
        'd' => Lifecycle::Draining,
        'x' => Lifecycle::Stopped,
        'f' => Lifecycle::Failed,
        other => panic!("no lifecycle is called {other}"),
    }
}

/// Why those who come are refused; `None` where they may wait.
fn refusal(column: Column) -> Option<Refusal> {
    match column {
        Column::New | Column::Starting | Column::Running | Column::Bereft => None,
        Column::Failed | Column::Probing => Some(Refusal::PoolFailed),
        Column::Draining | Column::Leaving | Column::Stopped => Some(Refusal::ShuttingDown),
    }
}

#[test]
fn every_lifecycle_answers_those_who_come_at_once_or_lets_them_wait() {
    for column in COLUMNS {
        let mut stage = column.stage();
        stage.arrive(2);
        let expected: Vec<_> = refusal(column).map(|why| refuse(2, why)).into_iter().collect();
        assert_eq!(stage.take(), expected, "{column:?}");
        stage.feed(leased());
        let expected: Vec<_> =
            refusal(column).map(|why| refuse_lease(1, why)).into_iter().collect();
        assert_eq!(stage.take(), expected, "{column:?}");
    }
}

#[test]
fn once_the_end_has_begun_every_order_is_turned_away() {
    let worker = WorkerId(1);
    for column in [Column::Draining, Column::Leaving, Column::Stopped] {
        for action in [
            Action::Create,
            Action::Start(worker),
            Action::Pause { worker, freeze: false },
            Action::Pause { worker, freeze: true },
            Action::Resume(worker),
            Action::Complete(worker),
            Action::Terminate(worker),
            Action::Recycle(worker),
            Action::RecyclePool,
            Action::PausePool,
            Action::ResumePool,
            Action::DrainPool,
            Action::Scale { min: 1, max: 2 },
            Action::Bind { session: SessionId(1), worker },
            Action::Unbind(SessionId(1)),
        ] {
            let mut stage = column.stage();
            let order = stage.order(action);
            let turned_away = [reply(order, Reply::ShuttingDown)];
            assert_eq!(stage.take(), turned_away, "{action:?} while {column:?}");
            assert_eq!(stage.records(), [], "{action:?} while {column:?}");
        }
    }
}

#[test]
fn a_pool_says_once_that_it_has_stopped() {
    for column in COLUMNS {
        let mut stage = column.stage();
        let subject = subject(&stage);
        for now in [false, true, true] {
            stage.feed(Event::ShutdownRequested { now });
        }
        stage.exit(subject, Exit::Signal(9));
        stage.clear(subject);
        stage.feed(Event::ShutdownRequested { now: true });
        let said = stage.take().iter().filter(|deed| **deed == Command::Stopped).count();
        assert_eq!(said, usize::from(column != Column::Stopped), "{column:?}");
        assert_eq!(stage.pool.lifecycle(), Lifecycle::Stopped, "{column:?}");
    }
}
