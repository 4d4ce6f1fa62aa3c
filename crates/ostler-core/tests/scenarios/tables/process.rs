//! Phase of a process x event.

use ostler_core::{
    Action, Answer, Event, Exit, KeyId, LeaseId, LeaseSpec, OrderId, Phase, RecordId, Recording,
    RequestId, RequestSpec, SessionId, Settings, SpawnFailure, WorkerId,
};

use super::{Before, Row, assert_as_drawn, expect, refused_aloud, rows};
use crate::support::*;

/// The phases, those apart that may answer differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Starting,
    Ready,
    Busy,
    /// Degraded: it missed a heartbeat.
    Silent,
    /// Degraded: it failed a check.
    Unwell,
    /// Stopping, on each rung of the ladder.
    Draining,
    Asked,
    Terminated,
    Killed,
    Dead,
}

const COLUMNS: [Column; 10] = [
    Column::Starting,
    Column::Ready,
    Column::Busy,
    Column::Silent,
    Column::Unwell,
    Column::Draining,
    Column::Asked,
    Column::Terminated,
    Column::Killed,
    Column::Dead,
];

impl Column {
    fn phase(self) -> Phase {
        match self {
            Column::Starting => Phase::Starting,
            Column::Ready => Phase::Ready,
            Column::Busy => Phase::Busy,
            Column::Silent | Column::Unwell => Phase::Degraded,
            Column::Draining | Column::Asked | Column::Terminated | Column::Killed => {
                Phase::Stopping
            }
            Column::Dead => Phase::Dead,
        }
    }

    /// A pool of one whose process 1#1 is there, with request 1 where it has work.
    fn stage(self) -> Stage {
        let defaults = Settings::of_size(1);
        let (heartbeat, checkup) = (defaults.heartbeat, defaults.checkup);
        let (max_memory, max_memory_hard) = (Some(2_000), Some(3_000));
        let mut stage = Stage::started(Settings {
            prefetch: 0,
            heartbeat,
            checkup,
            max_memory,
            max_memory_hard,
            ..calm(1)
        });
        if self != Column::Starting {
            stage.become_ready(p(1, 1));
        }
        match self {
            Column::Starting | Column::Ready => {}
            Column::Busy => stage.arrive(1),
            Column::Silent => {
                stage.pongs = false;
                stage.advance(secs(10));
                stage.pongs = true;
            }
            Column::Unwell => {
                stage.advance(secs(30));
                stage.report(p(1, 1), false);
            }
            Column::Draining => {
                stage.arrive(1);
                stage.taint(p(1, 1));
            }
            Column::Asked => stage.taint(p(1, 1)),
            Column::Terminated => {
                stage.taint(p(1, 1));
                stage.advance(secs(2));
            }
            Column::Killed => stage.feed(Event::ProtocolViolated { process: p(1, 1) }),
            Column::Dead => stage.exit(p(1, 1), Exit::Signal(11)),
        }
        stage.forget();
        assert_eq!(stage.phase(1), Some(self.phase()), "{self:?}");
        stage
    }
}

const SUBJECT: ostler_core::ProcessId =
    ostler_core::ProcessId { worker: WorkerId(1), generation: 1 };

fn answered(attempt: u32, answer: Answer) -> Event {
    let (process, request) = (SUBJECT, RequestId(1));
    Event::Answered { process, request, attempt, answer, streamed: false }
}

fn measured(bytes: u64) -> Event {
    Event::MemoryMeasured { process: SUBJECT, bytes }
}

fn exited(exit: Exit) -> Event {
    Event::ProcessExited { process: SUBJECT, exit, streamed: Vec::new() }
}

fn ordered(action: Action) -> Event {
    Event::Ordered { order: OrderId(99), action }
}

/// Half a minute less an instant passes; the event is the rest of it.
fn half_a_minute(stage: &mut Stage) -> Event {
    stage.advance(secs(30) - ms(1));
    stage.now = stage.now.after(ms(1));
    Event::DeadlineReached
}

/// Cells: the phase after (`s`tarting, `r`eady, `b`usy, `d`egraded, stopping `x`, d`e`ad), `n` for
/// the worker's next process, `0` for none, `.` for no change of phase, `-` for dropped and
/// counted, `!` for impossible.
#[rustfmt::skip]
fn table() -> Vec<Row<Event>> {
    const W: WorkerId = WorkerId(1);
    rows! { Event;
        //                                                               Draining Terminated
        //                                                    Starting Busy  Unwell | Asked | Killed
        //                                                        | Ready | Silent |  |  |  |  | Dead
        PoolStarted {
            "again" |_| Event::PoolStarted                    => "! !  !  !  !  !  !  !  !  !",
        }
        DeadlineReached {
            "half a minute of good answers" |s| {
                s.well = true;
                half_a_minute(s)
            }                                                 => "x .  .  r  r  .  .  .  .  .",
            "half a minute of silence" |s| {
                s.pongs = false;
                half_a_minute(s)
            }                                                 => "x x  .  x  x  .  .  .  .  .",
        }
        ShutdownRequested {
            "" |_| Event::ShutdownRequested { now: false }    => "x x  x  x  x  .  .  .  .  .",
            "now" |_| Event::ShutdownRequested { now: true }  => "x x  x  x  x  .  .  .  .  .",
        }
        RequestArrived {
            "" |_| Event::RequestArrived {
                request: RequestId(2),
                spec: RequestSpec::until(FAR),
            }                                                 => ". b  .  .  .  .  .  .  .  .",
        }
        CancelRequested {
            "of its request" |_| Event::CancelRequested {
                request: RequestId(1),
            }                                                 => ". .  .  .  .  .  .  .  .  .",
        }
        SpawnFailed {
            "broken" |_| Event::SpawnFailed {
                process: SUBJECT,
                cause: SpawnFailure::Broken,
            }                                                 => "n -  -  -  -  -  -  -  -  -",
            "exhausted" |_| Event::SpawnFailed {
                process: SUBJECT,
                cause: SpawnFailure::Exhausted,
            }                                                 => "0 -  -  -  -  -  -  -  -  -",
        }
        ProcessReady {
            "" |_| Event::ProcessReady {
                process: SUBJECT,
                ready: READY,
            }                                                 => "r -  -  -  -  -  -  -  -  -",
        }
        Answered {
            "completed" |_| answered(1, Answer::Completed)    => "- -  r  -  -  .  -  -  -  -",
            "not sent" |_| answered(1, Answer::NotSent)       => "- -  r  -  -  .  -  -  -  -",
            "another attempt" |_| answered(2, Answer::Completed)
                                                              => "- -  -  -  -  -  -  -  -  -",
        }
        HealthReported {
            "well, unasked" |_| Event::HealthReported {
                process: SUBJECT,
                well: true,
            }                                                 => "- -  -  -  -  -  -  -  -  -",
            "unwell, unasked" |_| Event::HealthReported {
                process: SUBJECT,
                well: false,
            }                                                 => "- -  -  -  -  -  -  -  -  -",
        }
        ProcessHeard {
            "" |_| Event::ProcessHeard { process: SUBJECT }   => ". .  .  r  .  .  .  .  .  -",
        }
        RetireAsked {
            "" |_| Event::RetireAsked { process: SUBJECT }    => "- .  .  .  .  .  .  .  .  -",
        }
        MemoryMeasured {
            "little" |_| measured(1_000)                      => ". .  .  .  .  .  .  .  .  -",
            "beyond the soft limit" |_| measured(2_000)       => ". .  .  .  .  .  .  .  .  -",
            "beyond the hard limit" |_| measured(3_000)       => ". x  x  x  x  .  .  .  .  -",
        }
        PressureChanged {
            "" |_| Event::PressureChanged { high: true }      => ". .  .  .  .  .  .  .  .  .",
        }
        SessionSaved {
            "unasked" |_| Event::SessionSaved {
                process: SUBJECT,
                session: SessionId(1),
                saved: true,
            }                                                 => "- -  -  -  -  -  -  -  -  -",
        }
        SessionEnded {
            "" |_| Event::SessionEnded { session: SessionId(1) }
                                                              => ". .  .  .  .  .  .  .  .  .",
        }
        KeyEnded {
            "" |_| Event::KeyEnded { key: KeyId(1) }          => ". .  .  .  .  .  .  .  .  .",
        }
        ProcessTainted {
            "" |_| Event::ProcessTainted { process: SUBJECT } => "x x  x  x  x  .  .  .  .  -",
        }
        StreamClosed {
            "" |_| Event::StreamClosed { process: SUBJECT }   => "x x  x  x  x  .  .  .  .  -",
        }
        ProtocolViolated {
            "" |_| Event::ProtocolViolated { process: SUBJECT }
                                                              => "x x  x  x  x  .  .  .  .  -",
        }
        ProcessExited {
            "by itself" |_| exited(Exit::Code(1))             => "e e  e  e  e  e  e  e  e  -",
            "by a signal" |_| exited(Exit::Signal(9))         => "e e  e  e  e  e  e  e  e  -",
        }
        ProcessCleared {
            "" |_| Event::ProcessCleared { process: SUBJECT } => "- -  -  -  -  -  -  -  -  n",
        }
        LeaseRequested {
            "" |_| Event::LeaseRequested {
                lease: LeaseId(1),
                spec: LeaseSpec { workers: 1, ttl: secs(60), deadline: FAR },
            }                                                 => ". .  .  .  .  .  .  .  .  .",
        }
        LeaseRenewed {
            "of nobody" |_| Event::LeaseRenewed {
                lease: LeaseId(1),
                ttl: secs(60),
            }                                                 => ". .  .  .  .  .  .  .  .  .",
        }
        LeaseReleased {
            "of nobody" |_| Event::LeaseReleased {
                lease: LeaseId(1),
                discard: true,
            }                                                 => ". .  .  .  .  .  .  .  .  .",
        }
        Ordered {
            "create" |_| ordered(Action::Create)              => ". .  .  .  .  .  .  .  .  .",
            "start" |_| ordered(Action::Start(W))             => ". .  .  .  .  .  .  .  .  .",
            "pause" |_| ordered(Action::Pause { worker: W, freeze: false })
                                                              => ". .  .  .  .  .  .  .  .  .",
            "freeze" |_| ordered(Action::Pause { worker: W, freeze: true })
                                                              => ". .  .  .  .  .  .  .  .  .",
            "resume" |_| ordered(Action::Resume(W))           => ". .  .  .  .  .  .  .  .  .",
            "complete" |_| ordered(Action::Complete(W))       => "x x  .  x  x  .  .  .  .  .",
            "terminate" |_| ordered(Action::Terminate(W))     => "x x  x  x  x  .  .  .  .  .",
            "recycle" |_| ordered(Action::Recycle(W))         => ". .  .  .  .  .  .  .  .  .",
            "recycle all" |_| ordered(Action::RecyclePool)    => ". .  .  .  .  .  .  .  .  .",
            "pause all" |_| ordered(Action::PausePool)        => ". .  .  .  .  .  .  .  .  .",
            "resume all" |_| ordered(Action::ResumePool)      => ". .  .  .  .  .  .  .  .  .",
            "drain" |_| ordered(Action::DrainPool)            => ". .  .  .  .  .  .  .  .  .",
            "scale up" |_| ordered(Action::Scale { min: 2, max: 2 })
                                                              => ". .  .  .  .  .  .  .  .  .",
            "bind" |_| ordered(Action::Bind { session: SessionId(1), worker: W })
                                                              => ". .  .  .  .  .  .  .  .  .",
            "unbind" |_| ordered(Action::Unbind(SessionId(1)))
                                                              => ". .  .  .  .  .  .  .  .  .",
        }
        ReloadOrdered {
            "" |_| Event::ReloadOrdered {
                order: OrderId(99),
                settings: Box::new(calm(1)),
            }                                                 => ". .  .  .  .  .  .  .  .  .",
        }
        Recorded {
            "again" |_| Event::Recorded {
                record: RecordId { worker: W, seq: 1 },
                result: Recording::Stored,
            }                                                 => "- -  -  -  -  -  -  -  -  -",
        }
    }
}

#[test]
fn every_event_in_every_phase_leads_where_the_table_says() {
    assert_as_drawn(table(), &COLUMNS, check);
}

fn check(row: &Row<Event>, column: Column, cell: char) -> Result<(), String> {
    let mut stage = column.stage();
    let event = row.happening(&mut stage);
    if cell == '!' {
        return refused_aloud(stage, event);
    }
    let before = Before::of(&stage);
    stage.feed(event);
    let expected = match cell {
        '-' => return before.dropped(&mut stage),
        '.' => (1, Some(column.phase())),
        'n' => (2, Some(Phase::Starting)),
        '0' => (1, None),
        letter => (1, Some(named(letter))),
    };
    let view = stage.view(1);
    expect((view.generation, view.phase, before.was_late(&stage)), (expected.0, expected.1, false))
}

fn named(letter: char) -> Phase {
    match letter {
        's' => Phase::Starting,
        'r' => Phase::Ready,
        'b' => Phase::Busy,
        'd' => Phase::Degraded,
        'x' => Phase::Stopping,
        'e' => Phase::Dead,
        other => panic!("no phase is called {other}"),
    }
}

/// The process that an event is about, if it is about one.
fn about(event: &Event) -> Option<ostler_core::ProcessId> {
    match event {
        Event::SpawnFailed { process, .. }
        | Event::ProcessReady { process, .. }
        | Event::Answered { process, .. }
        | Event::HealthReported { process, .. }
        | Event::ProcessHeard { process }
        | Event::RetireAsked { process }
        | Event::MemoryMeasured { process, .. }
        | Event::SessionSaved { process, .. }
        | Event::ProcessTainted { process }
        | Event::StreamClosed { process }
        | Event::ProtocolViolated { process }
        | Event::ProcessExited { process, .. }
        | Event::ProcessCleared { process } => Some(*process),
        Event::PoolStarted
        | Event::DeadlineReached
        | Event::ShutdownRequested { .. }
        | Event::RequestArrived { .. }
        | Event::CancelRequested { .. }
        | Event::PressureChanged { .. }
        | Event::SessionEnded { .. }
        | Event::KeyEnded { .. }
        | Event::LeaseRequested { .. }
        | Event::LeaseRenewed { .. }
        | Event::LeaseReleased { .. }
        | Event::Ordered { .. }
        | Event::ReloadOrdered { .. }
        | Event::Recorded { .. } => None,
    }
}

/// The first process is gone and the second runs the same request as its first attempt.
fn succeeded(settings: Settings) -> Stage {
    let mut stage = Stage::ready(settings);
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.arrive(1);
    stage.forget();
    stage
}

#[test]
fn nothing_about_an_older_process_changes_anything() {
    let checked = Settings { checkup: Settings::of_size(1).checkup, ..calm(1) };
    for row in table() {
        for settings in [calm(1), checked.clone()] {
            let mut stage = succeeded(settings);
            let event = row.happening(&mut stage);
            if about(&event).is_some() {
                let before = Before::of(&stage);
                stage.feed(event);
                assert_eq!(before.dropped(&mut stage), Ok(()), "{}", row.name());
            }
        }
    }
}

#[test]
fn nothing_about_a_process_that_never_was_changes_anything() {
    for row in table() {
        let mut stage = Stage::new(calm(1));
        let event = row.happening(&mut stage);
        if about(&event).is_some() {
            let before = Before::of(&stage);
            stage.feed(event);
            assert_eq!(before.dropped(&mut stage), Ok(()), "{}", row.name());
        }
    }
}
