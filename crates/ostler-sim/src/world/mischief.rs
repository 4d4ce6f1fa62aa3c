//! Faults that come out of nowhere, and messages that mean nothing any more.

use std::time::Duration;

use ostler_core::{
    Answer, Event, Exit, LeaseId, ProcessId, Ready, RecordId, Recording, RequestId, SpawnFailure,
    WorkerId,
};

use super::process::Life;
use super::{Happening, World};
use crate::profile::Mischief;
use crate::violation::Verdict;

impl World {
    pub(super) fn plan_mischief(&mut self) {
        if !self.profile.faults.mischief.is_empty() {
            let wait = self.prng.wait(self.profile.faults.mischief_gap);
            self.plan_in(wait, Happening::Mischief);
        }
    }

    pub(super) fn make_mischief(&mut self) -> Verdict {
        let Some(mischief) = self.prng.pick(&self.profile.faults.mischief) else { return Ok(()) };
        self.plan_mischief();
        let one = self.some_process();
        self.trace.line(self.now, "!", &(mischief, one));
        match (mischief, one) {
            (Mischief::Stall, _) => {
                self.now = self.now.after(self.stall());
            }
            (Mischief::StoreOutage, _) => {
                self.store.out = true;
                let span = self.prng.span(Duration::from_millis(1), Duration::from_secs(1));
                self.plan_in(span, Happening::StoreIsBack);
            }
            (Mischief::Stale, _) => return self.say_something_stale(),
            (Mischief::KillAll, _) => {
                // Rarely: a pool that loses all it has every few moments shows nothing else.
                if self.prng.chance(0.1) {
                    return self.kill_all();
                }
            }
            (_, None) => {}
            (Mischief::KillOne, Some(id)) => return self.die(id, Exit::Signal(9)),
            (Mischief::StopOne, Some(id)) => self.stop_for_a_while(id),
            (Mischief::ContinueOne, Some(id)) => self.set_stopped(id, false),
            (Mischief::CloseStream, Some(id)) => self.close_stream(id),
            (Mischief::Violate, Some(id)) => {
                self.report(id, Event::ProtocolViolated { process: id });
            }
            (Mischief::AskRetire, Some(id)) if self.processes[&id].moves() => {
                self.report(id, Event::RetireAsked { process: id });
            }
            (Mischief::AskRetire, _) => {}
            (Mischief::Taint, Some(id)) if self.processes[&id].moves() => {
                self.report(id, Event::ProcessTainted { process: id });
            }
            (Mischief::Taint, _) => {}
            (Mischief::OutOfMemory, Some(id)) => return self.die(id, Exit::OutOfMemory),
        }
        Ok(())
    }

    /// Some are let go before anybody has noticed, some before it is too late, some never.
    fn stop_for_a_while(&mut self, id: ProcessId) {
        self.set_stopped(id, true);
        if self.prng.chance(0.5) {
            let wait = self.prng.span(Duration::from_millis(20), Duration::from_secs(1));
            self.plan_in(wait, Happening::Continued(id));
        }
    }

    /// Too short to matter, or long enough for the core to notice that it was asleep itself.
    fn stall(&mut self) -> Duration {
        let (low, high) = if self.prng.chance(0.5) { (1, 20) } else { (1_500, 5_000) };
        self.prng.span(Duration::from_millis(low), Duration::from_millis(high))
    }

    fn living(&self) -> Vec<ProcessId> {
        let living = self.processes.values().filter(|process| process.life != Life::Dead);
        let mut living: Vec<_> = living.map(|process| process.id).collect();
        living.sort();
        living
    }

    fn some_process(&mut self) -> Option<ProcessId> {
        let living = self.living();
        self.prng.pick(&living)
    }

    fn kill_all(&mut self) -> Verdict {
        for id in self.living() {
            self.die(id, Exit::Signal(9))?;
        }
        Ok(())
    }

    pub(super) fn close_stream(&mut self, id: ProcessId) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        if process.life == Life::Up && !process.stream_closed {
            process.stream_closed = true;
            self.ledger.silence(id);
            self.report(id, Event::StreamClosed { process: id });
        }
    }

    fn say_something_stale(&mut self) -> Verdict {
        let process = self.some_stale_process();
        let request = RequestId(self.prng.below(self.next_request + 2));
        let record = RecordId { worker: process.worker, seq: 1_000_000 };
        let lease = LeaseId(self.next_lease + 1_000_000);
        let event = match self.prng.below(18) {
            0 => Event::ProcessReady {
                process,
                ready: Ready {
                    capacity: Some(9),
                    heartbeat: false,
                    gives_back: true,
                    saves_sessions: true,
                },
            },
            1 => Event::ProcessHeard { process },
            2 => Event::RetireAsked { process },
            3 => Event::StreamClosed { process },
            4 => Event::ProtocolViolated { process },
            5 => Event::ProcessExited { process, exit: Exit::Code(3), streamed: vec![request] },
            6 => Event::ProcessCleared { process },
            7 => Event::SpawnFailed { process, cause: SpawnFailure::Exhausted },
            8 => Event::Recorded { record, result: Recording::Stored },
            9 => Event::LeaseReleased { lease, discard: true },
            10 => Event::LeaseRenewed { lease, ttl: Duration::from_secs(9) },
            11 => Event::CancelRequested { request: RequestId(self.next_request + 1_000_000) },
            12 => Event::ProcessTainted { process },
            13 => Event::HealthReported { process, well: false },
            14 => return self.say_unasked(),
            _ => match self.false_answer(process) {
                Some(event) => event,
                None => return Ok(()),
            },
        };
        self.deliver(event)
    }

    /// The answer to a question that nobody asked, or that was given up.
    fn say_unasked(&mut self) -> Verdict {
        let Some(process) = self.some_process() else { return Ok(()) };
        let well = self.prng.chance(0.5);
        self.deliver(Event::HealthReported { process, well })
    }

    /// A process that is gone for good or never was.
    fn some_stale_process(&mut self) -> ProcessId {
        let worker = self.some_worker().unwrap_or(WorkerId(1_000_000));
        let current = self.ledger.generation(worker);
        let generation = match (self.prng.below(3), current) {
            (0, _) | (_, 0 | 1) => current + 7,
            _ => 1 + self.prng.below(u64::from(current) - 1) as u32,
        };
        ProcessId { worker, generation }
    }

    /// An answer for a request that this process does not hold, or not as this attempt.
    fn false_answer(&mut self, stale: ProcessId) -> Option<Event> {
        let answers = [
            Answer::Completed,
            Answer::Failed { retryable: true },
            Answer::Cancelled { started: true },
            Answer::Cancelled { started: false },
            Answer::NotSent,
        ];
        let answer = answers[self.prng.below(5) as usize];
        let held = self.ledger.held();
        let (holder, request, attempt) = self.prng.pick(&held)?;
        let other = self.some_process().filter(|other| *other != holder);
        let (process, attempt) = match self.prng.below(3) {
            0 => (holder, if self.prng.chance(0.5) { attempt + 1 } else { attempt - 1 }),
            1 => (other?, attempt),
            _ => (stale, attempt),
        };
        Some(Event::Answered { process, request, attempt, answer, streamed: false })
    }
}
