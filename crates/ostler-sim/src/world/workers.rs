//! How the world's processes come, work and go.
//!
//! Two rules of real workers are kept even by the worst of them: what was written is read before
//! the exit is seen, and the answer of one request is written before the next begins.

use std::time::Duration;

use ostler_core::{
    Answer, CapacityFrom, Event, Exit, ProcessId, Ready, RequestId, SpawnFailure, Time,
};

use super::process::{End, Inner, Life, Process, Step, Vices, Work};
use super::{Happening, World};
use crate::violation::Verdict;

impl World {
    pub(super) fn spawn(&mut self, id: ProcessId) {
        let faults = &self.profile.faults;
        let cause = if self.prng.chance(faults.spawn_exhausted) {
            Some(SpawnFailure::Exhausted)
        } else if self.prng.chance(faults.spawn_broken) {
            Some(SpawnFailure::Broken)
        } else {
            None
        };
        if let Some(cause) = cause {
            let wait = self.latency();
            return self
                .plan_in(wait, Happening::Report(Event::SpawnFailed { process: id, cause }));
        }
        let step = self.start();
        self.come_up(id, step);
    }

    /// There is a process now. `step`: what it does when it has come up, if it ever does.
    pub(super) fn come_up(&mut self, id: ProcessId, step: Option<Step>) {
        let vices = self.vices();
        let capacity = self.profile.settings.capacity as usize;
        self.processes.insert(id, Process::new(id, capacity, vices));
        let wait = self.prng.span(Duration::from_millis(1), Duration::from_millis(50));
        if let Some(step) = step {
            self.plan_in(wait, Happening::Step(id, step));
        }
    }

    fn vices(&mut self) -> Vices {
        let faults = &self.profile.faults;
        Vices {
            ignores_cancel: self.prng.chance(faults.ignores_cancel),
            ignores_term: self.prng.chance(faults.ignores_term),
            ignores_shutdown: self.prng.chance(faults.ignores_shutdown),
        }
    }

    fn start(&mut self) -> Option<Step> {
        if self.prng.chance(self.profile.faults.never_ready) {
            return None;
        }
        let dies = self.prng.chance(self.profile.faults.dies_starting);
        Some(if dies { Step::Die } else { Step::BecomeReady })
    }

    pub(super) fn assign(&mut self, id: ProcessId, request: RequestId, attempt: u32) {
        let not_sent = self.prng.chance(self.profile.faults.not_sent);
        let (coin, wait) = (self.prng.chance(0.5), self.latency());
        let Some(process) = self.processes.get_mut(&id) else { return };
        let broken = process.life == Life::Dead || process.stream_closed;
        if not_sent || (broken && coin) {
            let answer = Answer::NotSent;
            self.report(
                id,
                Event::Answered { process: id, request, attempt, answer, streamed: false },
            );
            // A stream that cannot be written to is about to be seen closed.
            self.close_stream(id);
        } else if !broken {
            process.stream.push_back(Work::sent(request, attempt));
            self.plan_in(wait, Happening::Step(id, Step::PickUp));
        }
    }

    /// Something is sent to a process, or done to it by signal.
    pub(super) fn reach(&mut self, id: ProcessId, step: Step) {
        let wait = self.latency();
        self.plan_in(wait, Happening::Step(id, step));
    }

    pub(super) fn step(&mut self, id: ProcessId, step: Step) -> Verdict {
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        if process.life == Life::Dead {
            return Ok(());
        }
        if !process.moves() {
            process.deferred.push(step);
            return Ok(());
        }
        match step {
            Step::BecomeReady => self.become_ready(id),
            Step::PickUp => return self.pick_up(id),
            Step::CallOut { request, attempt } => self.call_out(id, request, attempt),
            Step::Finish { request, attempt } => return self.finish(id, request, attempt),
            Step::SeeCancel { request, attempt, withdraw } => {
                return self.see_cancel(id, (request, attempt), withdraw);
            }
            Step::SeePing => self.see_ping(id),
            Step::SeeCheck => self.see_check(id),
            Step::SeeSave { session } => return self.see_save(id, session),
            Step::Saved { session, saved } => self.saved(id, session, saved),
            Step::SeeShutdown => return self.see_shutdown(id),
            Step::SeeTerm if process.vices.ignores_term => {}
            Step::SeeTerm => return self.die(id, Exit::Signal(15)),
            Step::Die => {
                let exit = self.own_end();
                return self.die(id, exit);
            }
        }
        Ok(())
    }

    fn become_ready(&mut self, id: ProcessId) {
        let said = self.prng.chance(0.2).then(|| self.prng.between(1, 4));
        let capacity = self.capacity(said) as usize;
        let (heartbeat, gives_back) = (self.prng.chance(0.9), self.prng.chance(0.8));
        let saves_sessions = self.prng.chance(self.profile.state.hooks);
        let process = self.processes.get_mut(&id).expect("the step found it");
        process.life = Life::Up;
        process.answers_pings = heartbeat;
        process.capacity = capacity;
        let ready = Ready { capacity: said, heartbeat, gives_back, saves_sessions };
        self.report(id, Event::ProcessReady { process: id, ready });
    }

    /// As many as both sides agree on, by the pool's setting.
    fn capacity(&self, said: Option<u32>) -> u32 {
        let settings = &self.profile.settings;
        let pools = settings.capacity;
        match settings.capacity_from {
            CapacityFrom::Pool => pools,
            CapacityFrom::Worker => said.unwrap_or(pools),
            CapacityFrom::Min => said.unwrap_or(pools).min(pools),
        }
    }

    /// How a program ends that nobody stopped.
    pub(super) fn own_end(&mut self) -> Exit {
        let ends = [
            Exit::Code(1),
            Exit::Signal(11),
            Exit::Code(0),
            Exit::Code(143),
            Exit::OutOfMemory,
            Exit::Unknown,
        ];
        ends[self.prng.below(6) as usize]
    }

    fn pick_up(&mut self, id: ProcessId) -> Verdict {
        loop {
            let process = self.processes.get_mut(&id).expect("the step found it");
            // Who cannot write an answer does not go on to the next request.
            if process.stream_closed || process.running.len() >= process.capacity {
                return Ok(());
            }
            let Some(work) = process.stream.pop_front() else { return Ok(()) };
            self.begin(id, work)?;
        }
    }

    fn begin(&mut self, id: ProcessId, mut work: Work) -> Verdict {
        let (request, attempt) = (work.request, work.attempt);
        self.trace.line(self.now, "  *", &("begins", id, request, attempt));
        self.ledger.began(id, request)?;
        work.end = if self.is_poison(request) { End::Die } else { self.end() };
        work.streamed = self.prng.chance(self.profile.load.streams);
        let wait = self.prng.wait(self.profile.load.service);
        if work.end == End::Never {
            self.ledger.silence(id);
        } else if self.calls_out(request) {
            work.inner = Some(Inner::ToCome);
            self.plan_in(wait / 2, Happening::Step(id, Step::CallOut { request, attempt }));
        } else {
            self.plan_in(wait, Happening::Step(id, Step::Finish { request, attempt }));
        }
        if work.streamed {
            self.ledger.streamed(request);
        }
        self.processes.get_mut(&id).expect("the step found it").running.push(work);
        Ok(())
    }

    fn end(&mut self) -> End {
        let faults = self.profile.faults.clone();
        let answer = if self.prng.chance(faults.fails) {
            Answer::Failed { retryable: false }
        } else if self.prng.chance(faults.fails_retryable) {
            Answer::Failed { retryable: true }
        } else if self.prng.chance(faults.gives_up) {
            Answer::Cancelled { started: true }
        } else {
            Answer::Completed
        };
        if self.prng.chance(faults.never_ends) {
            End::Never
        } else if self.prng.chance(faults.dies_running) || self.prng.chance(faults.loses_answer) {
            End::Die
        } else if self.prng.chance(faults.dies_after_answer) {
            End::AnswerAndDie(answer)
        } else if self.prng.chance(faults.answers_twice) {
            End::Twice(answer)
        } else {
            End::Answer(answer)
        }
    }

    fn finish(&mut self, id: ProcessId, request: RequestId, attempt: u32) -> Verdict {
        let process = self.processes.get_mut(&id).expect("the step found it");
        if process.stream_closed {
            return Ok(());
        }
        let Some(work) = process.take_running(request, attempt) else { return Ok(()) };
        self.abandon_inner(work);
        match work.end {
            End::Answer(answer) => self.write(id, work, answer),
            End::Twice(answer) => {
                self.write(id, work, answer);
                self.write(id, work, answer);
            }
            End::AnswerAndDie(answer) => {
                self.write(id, work, answer);
                return self.die(id, Exit::Signal(11));
            }
            End::Die | End::Never => {
                let process = self.processes.get_mut(&id).expect("the step found it");
                process.running.push(work);
                let exit = self.own_end();
                return self.die(id, exit);
            }
        }
        self.pick_up(id)
    }

    fn see_cancel(
        &mut self,
        id: ProcessId,
        (request, attempt): (RequestId, u32),
        withdraw: bool,
    ) -> Verdict {
        let wait = self.prng.wait(self.profile.load.service / 4);
        let process = self.processes.get_mut(&id).expect("the step found it");
        if process.stream_closed {
            return Ok(());
        }
        if let Some(work) = process.take_unstarted(request, attempt) {
            self.write(id, work, Answer::Cancelled { started: false });
            return Ok(());
        }
        if withdraw || process.vices.ignores_cancel || !process.runs(request, attempt) {
            return Ok(());
        }
        for work in &mut process.running {
            if work.request == request && work.attempt == attempt {
                work.end = End::Answer(Answer::Cancelled { started: true });
            }
        }
        self.plan_in(wait, Happening::Step(id, Step::Finish { request, attempt }));
        Ok(())
    }

    /// A handler that never ends holds the interpreter's lock, and with it the answer to pings.
    fn see_ping(&mut self, id: ProcessId) {
        let process = &self.processes[&id];
        let busy_for_ever = process.running.iter().any(|work| work.end == End::Never);
        if process.answers_pings && !busy_for_ever && !process.stream_closed {
            self.report(id, Event::ProcessHeard { process: id });
        }
    }

    fn see_shutdown(&mut self, id: ProcessId) -> Verdict {
        let process = &self.processes[&id];
        if process.vices.ignores_shutdown || process.running.iter().any(|w| w.end == End::Never) {
            return Ok(());
        }
        if process.running.is_empty() {
            return self.die(id, Exit::Code(0));
        }
        let wait = self.profile.load.service;
        self.plan_in(wait, Happening::Step(id, Step::SeeShutdown));
        Ok(())
    }

    fn write(&mut self, id: ProcessId, work: Work, answer: Answer) {
        let (request, attempt, streamed) = (work.request, work.attempt, work.streamed);
        self.ledger.wrote(id, request, attempt, answer);
        self.report(id, Event::Answered { process: id, request, attempt, answer, streamed });
    }

    pub(super) fn die(&mut self, id: ProcessId, exit: Exit) -> Verdict {
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        if process.life == Life::Dead {
            return Ok(());
        }
        process.life = Life::Dead;
        let running = process.running.clone();
        let streamed = running.iter().filter(|work| work.streamed);
        let streamed = streamed.map(|work| work.request).collect();
        for work in running {
            self.abandon_inner(work);
        }
        self.report(id, Event::ProcessExited { process: id, exit, streamed });
        self.report(id, Event::ProcessCleared { process: id });
        Ok(())
    }

    /// Reports of one process arrive in the order in which it caused them.
    pub(super) fn report(&mut self, id: ProcessId, event: Event) {
        let at = self.report_time(id);
        self.agenda.plan(at, Happening::Report(event));
    }

    pub(super) fn report_time(&mut self, id: ProcessId) -> Time {
        let at = self.now.after(self.latency());
        match self.processes.get_mut(&id) {
            Some(process) => {
                process.reported_until = process.reported_until.max(at);
                process.reported_until
            }
            None => at,
        }
    }

    pub(super) fn set_frozen(&mut self, id: ProcessId, frozen: bool) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.frozen = frozen;
            self.ledger.silence(id);
        }
        self.resume_steps(id);
    }

    pub(super) fn set_stopped(&mut self, id: ProcessId, stopped: bool) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.stopped = stopped;
            self.ledger.silence(id);
        }
        self.resume_steps(id);
    }

    fn resume_steps(&mut self, id: ProcessId) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        if process.moves() {
            for step in std::mem::take(&mut process.deferred) {
                self.agenda.plan(self.now, Happening::Step(id, step));
            }
        }
    }

    /// A stopped process that heartbeats can find stays stopped: finding it is the pool's work.
    pub(super) fn cure_processes(&mut self) {
        let watched = self.profile.settings.heartbeat.is_some_and(|beat| !beat.independent);
        for process in self.processes.values_mut() {
            process.unwell_until = self.now;
            process.deaf_until = self.now;
        }
        let mut stopped: Vec<_> = self.processes.values().filter(|p| p.stopped).collect();
        stopped.sort_by_key(|process| process.id);
        let cured: Vec<_> = stopped
            .into_iter()
            .filter(|process| !(watched && process.answers_pings && process.life == Life::Up))
            .map(|process| process.id)
            .collect();
        for id in cured {
            self.set_stopped(id, false);
        }
        if watched && self.prng.chance(0.5) {
            self.stop_one_more();
        }
    }

    /// The last fault of all, for the pool to find.
    fn stop_one_more(&mut self) {
        let found = |process: &&Process| process.answers_pings && process.life == Life::Up;
        let mut up: Vec<_> = self.processes.values().filter(found).map(|p| p.id).collect();
        up.sort();
        if let Some(id) = self.prng.pick(&up) {
            self.set_stopped(id, true);
        }
    }
}
