//! State of a request x event.

use ostler_core::{
    Action, Answer, Command, Event, Exit, KeyId, LeaseId, LeaseSpec, OrderId, Outcome, ProcessId,
    RecordId, Recording, RequestId, RequestSpec, SessionId, Settings, SpawnFailure, WorkerId,
};

use super::{Before, Row, assert_as_drawn, expect, refused_aloud, rows};
use crate::support::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Queued,
    /// Between two attempts.
    Waiting,
    Running,
    /// In the worker's stream, behind another one.
    Behind,
    /// The same, asked back.
    CalledBack,
    /// It has its outcome, and its worker has not let go of it.
    Abandoned,
    Ended,
}

const STATES: [State; 7] = [
    State::Queued,
    State::Waiting,
    State::Running,
    State::Behind,
    State::CalledBack,
    State::Abandoned,
    State::Ended,
];

/// The request in question, and the one in front of it where there is one.
const SUBJECT: u64 = 7;
const FIRST: u64 = 1;

impl State {
    /// A pool of one, five seconds before the subject's deadline and three before its time in
    /// the queue is over.
    fn stage(self) -> Stage {
        let checkup = Settings::of_size(1).checkup;
        let mut stage = Stage::ready(Settings { queue_timeout: secs(3), checkup, ..calm(1) });
        match self {
            State::Queued => stage.arrive(FIRST),
            State::Behind | State::CalledBack => {
                stage.arrive(1_000);
                stage.complete(1_000, p(1, 1));
                stage.arrive(FIRST);
            }
            State::Waiting | State::Running | State::Abandoned | State::Ended => {}
        }
        let by = stage.now.after(secs(5));
        stage.arrive_as(SUBJECT, |spec| (spec.deadline, spec.idempotent) = (by, true));
        match self {
            State::Queued | State::Running | State::Behind => {}
            State::Waiting => stage.answer(SUBJECT, 1, p(1, 1), Answer::Failed { retryable: true }),
            State::CalledBack => {
                stage.pause(1);
            }
            State::Abandoned => stage.cancel(SUBJECT),
            State::Ended => stage.complete(SUBJECT, p(1, 1)),
        }
        stage.forget();
        assert_eq!(State::of(&stage), self);
        stage
    }

    fn over(self) -> bool {
        matches!(self, State::Abandoned | State::Ended)
    }

    /// Where the subject is, as far as the pool shows it.
    fn of(stage: &Stage) -> State {
        let worker = stage.pool.workers().next().expect("the pool has its worker");
        let position = worker.held.iter().position(|held| held.0 == SUBJECT);
        match stage.pool.request(RequestId(SUBJECT)) {
            None if worker.load > worker.held.len() as u32 => State::Abandoned,
            None => State::Ended,
            Some((None, _)) if stage.pool.view(stage.now).queued > 0 => State::Queued,
            Some((None, _)) => State::Waiting,
            Some((Some(_), _)) => match position {
                Some(at) if at < worker.capacity as usize => State::Running,
                Some(_) => State::Behind,
                None => State::CalledBack,
            },
        }
    }
}

const PROCESS: ProcessId = ProcessId { worker: WorkerId(1), generation: 1 };

fn answer(answer: Answer) -> Event {
    answer_to(1, answer, false)
}

fn answer_to(attempt: u32, answer: Answer, streamed: bool) -> Event {
    let (process, request) = (PROCESS, RequestId(SUBJECT));
    Event::Answered { process, request, attempt, answer, streamed }
}

fn exited(exit: Exit, streamed: &[u64]) -> Event {
    Event::ProcessExited { process: PROCESS, exit, streamed: ids(streamed) }
}

fn ordered(action: Action) -> Event {
    Event::Ordered { order: OrderId(99), action }
}

/// That much time passes; the event is the last of it.
fn passing(stage: &mut Stage, span: std::time::Duration) -> Event {
    stage.advance(span - ms(1));
    stage.now = stage.now.after(ms(1));
    Event::DeadlineReached
}

/// Cells: the state after (`q`ueued, wai`t`ing, `r`unning, `b`ehind, called back `w`), the end
/// (`A`nswered, `C`ancelled, `T`imed out, `L`ost, `R`efused), `.` for no change, `-` for dropped
/// and counted, `!` for impossible.
#[rustfmt::skip]
fn table() -> Vec<Row<Event>> {
    const W: WorkerId = WorkerId(1);
    rows! { Event;
        //                                                       Waiting Behind Abandoned
        //                                                  Queued | Running | CalledBack | Ended
        PoolStarted {
            "again" |_| Event::PoolStarted                    => "! ! ! ! ! ! !",
        }
        DeadlineReached {
            "the wait between attempts is over" |s| passing(s, ms(50))
                                                              => ". r . . . . .",
            "its time in the queue is over" |s| passing(s, secs(3))
                                                              => "R r . . . . .",
            "its deadline came while nobody looked" |s| {
                s.oversleep(secs(5));
                Event::DeadlineReached
            }                                                 => "T T T T T . .",
        }
        ShutdownRequested {
            "" |_| Event::ShutdownRequested { now: false }    => "R A . w . . .",
            "now" |_| Event::ShutdownRequested { now: true }  => "R A . . . . .",
        }
        RequestArrived {
            "another one" |_| Event::RequestArrived {
                request: RequestId(8),
                spec: RequestSpec::until(FAR),
            }                                                 => ". . . . . . .",
        }
        CancelRequested {
            "" |_| Event::CancelRequested { request: RequestId(SUBJECT) }
                                                              => "C C C C C . .",
            "another one" |_| Event::CancelRequested { request: RequestId(99) }
                                                              => ". . . . . . .",
        }
        SpawnFailed {
            "" |_| Event::SpawnFailed {
                process: PROCESS,
                cause: SpawnFailure::Broken,
            }                                                 => "- - - - - - -",
        }
        ProcessReady {
            "again" |_| Event::ProcessReady {
                process: PROCESS,
                ready: READY,
            }                                                 => "- - - - - - -",
        }
        Answered {
            "completed" |_| answer(Answer::Completed)         => "- - A A A . -",
            "failed" |_| answer(Answer::Failed { retryable: false })
                                                              => "- - A A A . -",
            "failed for now" |_| answer(Answer::Failed { retryable: true })
                                                              => "- - t t t . -",
            "failed for now, after chunks" |_| {
                answer_to(1, Answer::Failed { retryable: true }, true)
            }                                                 => "- - A A A . -",
            "interrupted" |_| answer(Answer::Cancelled { started: true })
                                                              => "- - A A A . -",
            "given back" |_| answer(Answer::Cancelled { started: false })
                                                              => "- - A A q . -",
            "not sent" |_| answer(Answer::NotSent)            => "- - q q q . -",
            "another attempt" |_| answer_to(9, Answer::Completed, false)
                                                              => "- - - - - - -",
        }
        HealthReported {
            "unasked" |_| Event::HealthReported {
                process: PROCESS,
                well: false,
            }                                                 => "- - - - - - -",
        }
        ProcessHeard {
            "" |_| Event::ProcessHeard { process: PROCESS }   => ". . . . . . .",
        }
        RetireAsked {
            "" |_| Event::RetireAsked { process: PROCESS }    => ". . . w . . .",
        }
        MemoryMeasured {
            "" |_| Event::MemoryMeasured { process: PROCESS, bytes: 1_000 }
                                                              => ". . . . . . .",
        }
        PressureChanged {
            "" |_| Event::PressureChanged { high: true }      => ". . . . . . .",
        }
        SessionSaved {
            "unasked" |_| Event::SessionSaved {
                process: PROCESS,
                session: SessionId(1),
                saved: true,
            }                                                 => "- - - - - - -",
        }
        SessionEnded {
            "of others" |_| Event::SessionEnded { session: SessionId(1) }
                                                              => ". . . . . . .",
        }
        KeyEnded {
            "of others" |_| Event::KeyEnded { key: KeyId(1) } => ". . . . . . .",
        }
        ProcessTainted {
            "" |_| Event::ProcessTainted { process: PROCESS } => ". . . w . . .",
        }
        StreamClosed {
            "" |_| Event::StreamClosed { process: PROCESS }   => ". . . . . . .",
        }
        ProtocolViolated {
            "" |_| Event::ProtocolViolated { process: PROCESS }
                                                              => ". . . . . . .",
        }
        ProcessExited {
            "" |_| exited(Exit::Signal(9), &[])               => ". . q q q . .",
            "after chunks" |_| exited(Exit::Signal(9), &[SUBJECT])
                                                              => ". . L q q . .",
        }
        ProcessCleared {
            "" |_| Event::ProcessCleared { process: PROCESS } => "- - - - - - -",
        }
        LeaseRequested {
            "" |_| Event::LeaseRequested {
                lease: LeaseId(1),
                spec: LeaseSpec { workers: 1, ttl: secs(60), deadline: FAR },
            }                                                 => ". . . . . . .",
        }
        LeaseRenewed {
            "of nobody" |_| Event::LeaseRenewed {
                lease: LeaseId(1),
                ttl: secs(60),
            }                                                 => ". . . . . . .",
        }
        LeaseReleased {
            "of nobody" |_| Event::LeaseReleased {
                lease: LeaseId(1),
                discard: true,
            }                                                 => ". . . . . . .",
        }
        Ordered {
            "create" |_| ordered(Action::Create)              => ". . . . . . .",
            "start" |_| ordered(Action::Start(W))             => ". . . . . . .",
            "pause" |_| ordered(Action::Pause { worker: W, freeze: false })
                                                              => ". . . w . . .",
            "freeze" |_| ordered(Action::Pause { worker: W, freeze: true })
                                                              => ". . . w . . .",
            "resume" |_| ordered(Action::Resume(W))           => ". . . . . . .",
            "complete" |_| ordered(Action::Complete(W))       => ". . . w . . .",
            "terminate" |_| ordered(Action::Terminate(W))     => ". . . . . . .",
            "recycle" |_| ordered(Action::Recycle(W))         => ". . . . . . .",
            "recycle all" |_| ordered(Action::RecyclePool)    => ". . . . . . .",
            "pause all" |_| ordered(Action::PausePool)        => ". . . w . . .",
            "resume all" |_| ordered(Action::ResumePool)      => ". . . . . . .",
            "drain" |_| ordered(Action::DrainPool)            => ". . . . . . .",
            "scale up" |_| ordered(Action::Scale { min: 2, max: 2 })
                                                              => ". . . . . . .",
            "bind" |_| ordered(Action::Bind { session: SessionId(1), worker: W })
                                                              => ". . . . . . .",
            "unbind" |_| ordered(Action::Unbind(SessionId(1)))
                                                              => ". . . . . . .",
        }
        ReloadOrdered {
            "" |_| Event::ReloadOrdered {
                order: OrderId(99),
                settings: Box::new(calm(1)),
            }                                                 => ". . . . . . .",
        }
        Recorded {
            "again" |_| Event::Recorded {
                record: RecordId { worker: W, seq: 1 },
                result: Recording::Stored,
            }                                                 => "- - - - - - -",
        }
    }
}

#[test]
fn every_event_in_every_state_of_a_request_leads_where_the_table_says() {
    assert_as_drawn(table(), &STATES, check);
}

fn check(row: &Row<Event>, state: State, cell: char) -> Result<(), String> {
    let mut stage = state.stage();
    let event = row.happening(&mut stage);
    if cell == '!' {
        return refused_aloud(stage, event);
    }
    let before = Before::of(&stage);
    stage.feed(event);
    if cell == '-' {
        return before.dropped(&mut stage);
    }
    expect(before.was_late(&stage), false)?;
    let end = end_of_subject(&stage.take());
    expect(end, Some(cell).filter(|cell| cell.is_uppercase()))?;
    match (cell, State::of(&stage)) {
        // What has its outcome may be let go of at any time.
        ('.', State::Ended) => expect(state.over(), true),
        ('.', is) => expect(is, state),
        (_, is) if end.is_some() => expect(is.over(), true),
        (letter, is) => expect(is, named(letter)),
    }
}

/// How the subject ended, by its letter; never twice.
fn end_of_subject(deeds: &[Command]) -> Option<char> {
    let ends: Vec<char> = deeds
        .iter()
        .filter_map(|deed| match deed {
            Command::Refuse { request: RequestId(SUBJECT), .. } => Some('R'),
            Command::Resolve { request: RequestId(SUBJECT), outcome } => Some(match outcome {
                Outcome::Answered => 'A',
                Outcome::Cancelled { .. } => 'C',
                Outcome::TimedOut { .. } => 'T',
                Outcome::Lost { .. } => 'L',
            }),
            _ => None,
        })
        .collect();
    assert!(ends.len() <= 1, "one outcome: {ends:?}");
    ends.first().copied()
}

fn named(letter: char) -> State {
    match letter {
        'q' => State::Queued,
        't' => State::Waiting,
        'r' => State::Running,
        'b' => State::Behind,
        'w' => State::CalledBack,
        other => panic!("no state is called {other}"),
    }
}
