//! What became of each request: who ran it, what its caller was told.

use std::collections::BTreeSet;

use ostler_core::{
    Answer, Bond, Exit, Outcome, ProcessId, Refusal, RequestId, RequestSpec, SessionId, Settings,
    Started, Target, Time, Waiting,
};

use super::line::Line;
use crate::violation::{Verdict, require};

#[derive(Debug)]
pub(super) struct Requests {
    rows: Vec<Row>,
    pub line: Line,
    /// Deadlines of all that have no outcome.
    deadlines: BTreeSet<(Time, RequestId)>,
    /// Ends of the wait of those that were never sent anywhere.
    patience: BTreeSet<(Time, RequestId)>,
    /// Those of them that were made by one that waits for them.
    nested: BTreeSet<RequestId>,
    /// Those without an outcome that some process holds.
    held: usize,
    pub executions: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub spec: RequestSpec,
    pub arrived: Time,
    pub end: Option<End>,
    /// Where it was sent and not yet let go of, with the attempt.
    pub holder: Option<(ProcessId, u32)>,
    /// Its session ended before it did: it belongs to nobody any more.
    unbound: bool,
    /// Where it was sent last.
    pub last: Option<ProcessId>,
    pub attempts: u32,
    pub executions: u32,
    /// The caller has seen part of an answer.
    pub streamed: bool,
    pub cancel_asked: bool,
    /// What workers truly wrote about their attempts at it.
    pub written: Vec<(ProcessId, u32, Answer)>,
    /// How attempts that may have begun ended, as the core was told: the last answer, and the
    /// exits of the processes that held it.
    pub told: Option<(ProcessId, u32, Answer)>,
    /// Until when it may pause before the next attempt.
    pauses_until: Time,
    pub lost: Vec<Exit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Resolved(Outcome),
    Refused(Refusal),
}

impl End {
    /// The caller was told that nothing ran.
    fn says_nothing_ran(self) -> bool {
        match self {
            End::Refused(_) => true,
            End::Resolved(Outcome::Answered) => false,
            End::Resolved(
                Outcome::Cancelled { started }
                | Outcome::TimedOut { started, .. }
                | Outcome::Lost { started, .. },
            ) => started == Started::No,
        }
    }
}

impl Requests {
    pub fn new() -> Self {
        Requests {
            rows: Vec::new(),
            line: Line::default(),
            deadlines: BTreeSet::new(),
            patience: BTreeSet::new(),
            nested: BTreeSet::new(),
            held: 0,
            executions: 0,
        }
    }

    pub fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    pub fn get(&self, request: RequestId) -> Option<&Row> {
        self.rows.get((request.0 as usize).wrapping_sub(1))
    }

    fn get_mut(&mut self, request: RequestId) -> Option<&mut Row> {
        self.rows.get_mut((request.0 as usize).wrapping_sub(1))
    }

    pub fn arrive(&mut self, now: Time, id: RequestId, spec: &RequestSpec, settings: &Settings) {
        assert_eq!(id.0, self.rows.len() as u64 + 1, "the world gives ids without gaps");
        self.line.join(id, spec);
        self.deadlines.insert((spec.deadline, id));
        if !spec.ancestors.is_empty() {
            self.nested.insert(id);
        }
        self.patience.insert((now.after(settings.queue_timeout), id));
        self.rows.push(Row {
            spec: spec.clone(),
            arrived: now,
            end: None,
            holder: None,
            unbound: false,
            last: None,
            attempts: 0,
            executions: 0,
            streamed: false,
            cancel_asked: false,
            written: Vec::new(),
            told: None,
            pauses_until: Time::ZERO,
            lost: Vec::new(),
        });
    }

    pub fn cancel(&mut self, id: RequestId) {
        if let Some(row) = self.get_mut(id) {
            row.cancel_asked = true;
        }
    }

    pub fn streamed(&mut self, id: RequestId) {
        self.get_mut(id).expect("only what arrived is run").streamed = true;
    }

    pub fn wrote(&mut self, id: RequestId, written: (ProcessId, u32, Answer)) {
        self.get_mut(id).expect("only what arrived is answered").written.push(written);
    }

    pub fn answered(
        &mut self,
        now: Time,
        id: RequestId,
        told: (ProcessId, u32, Answer),
        settings: &Settings,
    ) {
        let row = self.let_go(id);
        if !matches!(told.2, Answer::NotSent | Answer::Cancelled { started: false }) {
            row.told = Some(told);
            let doublings = row.attempts.saturating_sub(1).min(16);
            row.pauses_until = now.after(settings.retry_delay * (1 << doublings));
        }
    }

    pub fn lost(&mut self, id: RequestId, exit: Exit) {
        self.let_go(id).lost.push(exit);
    }

    fn let_go(&mut self, id: RequestId) -> &mut Row {
        let open = self.get(id).is_some_and(|row| row.end.is_none());
        self.held -= usize::from(open);
        let row = self.get_mut(id).expect("only what arrived is held");
        row.holder = None;
        row
    }

    pub fn assign(
        &mut self,
        now: Time,
        (id, attempt): (RequestId, u32),
        process: ProcessId,
        deadline: Time,
        settings: &Settings,
    ) -> Verdict {
        let Some(row) = self.get(id) else {
            require!(false, "only what arrived is assigned", "{id:?} never arrived");
            return Ok(());
        };
        require!(
            row.end.is_none(),
            "nothing runs after its outcome",
            "{id:?} is sent to {process} after {:?}",
            row.end
        );
        require!(
            row.holder.is_none(),
            "one place at a time",
            "{id:?} is sent to {process} while {:?} holds it",
            row.holder
        );
        require!(
            attempt == row.attempts + 1,
            "attempts are counted",
            "{id:?} goes from attempt {} to {attempt}",
            row.attempts
        );
        require!(
            row.executions == 0 || row.spec.idempotent,
            "executed once unless idempotent",
            "{id:?} ran and is sent to {process}"
        );
        require!(
            row.executions < settings.attempts_max,
            "no more attempts than allowed",
            "{id:?} ran {} times and is sent to {process}",
            row.executions
        );
        require!(
            !row.streamed,
            "no retry after a chunk",
            "the caller of {id:?} has seen a chunk, and it is sent to {process}"
        );
        require!(
            deadline == row.spec.deadline && deadline > now,
            "one deadline",
            "{id:?} is due at {:?} and is sent with {deadline:?} at {now:?}",
            row.spec.deadline
        );
        let (spec, arrived) = (row.spec.clone(), row.arrived);
        if row.attempts == 0 {
            self.line.serve(id, &spec)?;
            self.patience.remove(&(arrived.after(settings.queue_timeout), id));
        } else {
            self.line.serve_again(&spec)?;
        }
        self.held += 1;
        let row = self.get_mut(id).expect("seen above");
        row.attempts = attempt;
        row.holder = Some((process, attempt));
        row.last = Some(process);
        Ok(())
    }

    /// A worker really begins to work on it.
    pub fn began(&mut self, id: RequestId, process: ProcessId, settings: &Settings) -> Verdict {
        self.executions += 1;
        let row = self.get_mut(id).expect("only what arrived is run");
        row.executions += 1;
        require!(
            !row.end.is_some_and(End::says_nothing_ran),
            "what was refused or ended unstarted never runs",
            "{id:?} begins on {process} after {:?}",
            row.end
        );
        let most = if row.spec.idempotent { settings.attempts_max } else { 1 };
        require!(
            row.executions <= most,
            "executed once unless idempotent",
            "{id:?} begins on {process} for the {}th time of {most}",
            row.executions
        );
        Ok(())
    }

    pub fn end(&mut self, now: Time, id: RequestId, end: End, settings: &Settings) -> Verdict {
        let Some(row) = self.get(id) else {
            require!(false, "only what arrived has an outcome", "{id:?} never arrived: {end:?}");
            return Ok(());
        };
        require!(
            row.end.is_none(),
            "one outcome per request",
            "{id:?} had {:?} and now {end:?}",
            row.end
        );
        require!(
            row.executions == 0 || !end.says_nothing_ran(),
            "started is told truly",
            "{id:?} ran {} times and ends as {end:?}",
            row.executions
        );
        match end {
            End::Resolved(outcome) => check_outcome(now, id, row, outcome)?,
            End::Refused(refusal) => self.check_refusal(now, id, row, refusal, settings)?,
        }
        self.close(id, end, settings);
        Ok(())
    }

    fn check_refusal(
        &self,
        now: Time,
        id: RequestId,
        row: &Row,
        refusal: Refusal,
        settings: &Settings,
    ) -> Verdict {
        let fits = match refusal {
            // This one is itself among those without an outcome.
            Refusal::Saturated { queued, .. } => {
                let waiting = self.deadlines.len() - self.held;
                queued >= settings.queue_max && waiting > settings.queue_max as usize
            }
            Refusal::QueueTimeout => now >= row.arrived.after(settings.queue_timeout),
            Refusal::NoSuchWorker | Refusal::WorkerNotServing => {
                matches!(row.spec.target, Target::Worker(_))
            }
            Refusal::NoSuchLease => matches!(row.spec.target, Target::Lease(..)),
            Refusal::ShuttingDown
            | Refusal::PoolFailed
            | Refusal::DeadlineUnreachable { .. }
            | Refusal::Quarantined { .. }
            | Refusal::NestedDeadlock
            | Refusal::PoolDraining
            | Refusal::SessionWorkerLost
            | Refusal::WorkerBusy => true,
            Refusal::KeyRequired => row.spec.target == Target::Any,
            Refusal::TooManyWorkers | Refusal::LeaseTimeout | Refusal::NotInKeyedPool => false,
        };
        require!(
            fits,
            "a refusal fits its request",
            "{id:?} with {} in line, {refusal:?}: {row:?}",
            self.line.len()
        );
        Ok(())
    }

    fn close(&mut self, id: RequestId, end: End, settings: &Settings) {
        let row = self.get_mut(id).expect("seen by the caller");
        row.end = Some(end);
        let (spec, arrived) = (row.spec.clone(), row.arrived);
        let (held, waited) = (row.holder.is_some(), row.attempts == 0);
        self.held -= usize::from(held);
        self.deadlines.remove(&(spec.deadline, id));
        self.nested.remove(&id);
        if waited {
            self.line.leave(id, &spec);
            self.patience.remove(&(arrived.after(settings.queue_timeout), id));
        } else if !held {
            // It may have been at the head of its lane when it ended.
            self.line.use_turn(&spec);
        }
    }

    /// The earliest moment at which some caller must be told something.
    pub fn next_due(&self) -> Option<Time> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let patience = self.patience.first().map(|(at, _)| *at);
        deadline.into_iter().chain(patience).min()
    }

    pub fn open(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.deadlines.iter().map(|(_, id)| *id)
    }

    /// It has no outcome, and nobody holds it.
    pub fn waits(&self, id: RequestId) -> bool {
        self.get(id).is_some_and(|row| row.end.is_none() && row.holder.is_none())
    }

    /// And it does not pause between two attempts.
    pub fn waits_in_line(&self, id: RequestId) -> bool {
        self.waits(id) && self.get(id).is_some_and(|row| row.told.is_none())
    }

    /// The session is no more: those of it who wait, or come back, are served like others.
    pub fn unbind(&mut self, session: SessionId) {
        let open: Vec<RequestId> = self.open().collect();
        for id in open {
            let row = self.get_mut(id).expect("it is open");
            row.unbound |= row.spec.bond.is_some_and(|bond| bond.session == session);
        }
    }

    /// What a request belongs to that anybody may serve.
    pub fn bond(&self, id: RequestId) -> Option<Bond> {
        let row = self.get(id)?;
        row.spec.bond.filter(|_| row.spec.target == Target::Any && !row.unbound)
    }

    pub fn any_nested_waits(&self) -> bool {
        self.nested.iter().any(|id| self.waits(*id))
    }

    /// Nested ones that wait, without those that may still pause between two attempts then.
    pub fn nested_waiting(&self, then: Time) -> impl Iterator<Item = RequestId> + '_ {
        let waiting = self.nested.iter().copied().filter(|id| self.waits(*id));
        waiting.filter(move |id| self.get(*id).is_some_and(|row| row.pauses_until < then))
    }

    /// Others that wait for any worker; `unsure`: also those that may pause between two attempts.
    pub fn rivals(&self, id: RequestId, unsure: bool) -> impl Iterator<Item = &RequestSpec> + '_ {
        let waiting = self.open().filter(move |other| *other != id && self.waits(*other));
        let rows = waiting.filter_map(|other| self.get(other));
        let common = |spec: &RequestSpec| {
            spec.key.is_none() && spec.bond.is_none_or(|bond| !bond.affinity.strict())
        };
        let rows = rows.filter(move |row| unsure || (row.told.is_none() && common(&row.spec)));
        rows.map(|row| &row.spec).filter(|spec| spec.target == Target::Any)
    }

    /// Those that came as number `first` or later.
    pub fn from(&self, first: u64) -> impl Iterator<Item = &Row> + '_ {
        self.rows.iter().skip(first as usize - 1)
    }
}

fn check_outcome(now: Time, id: RequestId, row: &Row, outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Answered => require!(
            row.holder.is_none() && row.told.is_some_and(|told| row.written.contains(&told)),
            "an answer is what its worker answered",
            "{id:?} is answered: {row:?}"
        ),
        Outcome::Cancelled { .. } => require!(
            row.cancel_asked,
            "cancelled only when asked",
            "nobody cancelled {id:?}: {outcome:?}"
        ),
        Outcome::TimedOut { phase, .. } => {
            require!(
                now >= row.spec.deadline,
                "no timeout before the deadline",
                "{id:?} is due at {:?} and timed out at {now:?}",
                row.spec.deadline
            );
            require!(
                (phase == Waiting::Worker) == row.holder.is_some(),
                "a timeout names its phase",
                "{id:?} held by {:?} timed out in {phase:?}",
                row.holder
            );
        }
        Outcome::Lost { exit, .. } => require!(
            row.holder.is_none() && row.lost.contains(&exit),
            "lost only with its process",
            "{id:?} is lost by {exit:?}: {row:?}"
        ),
    }
    Ok(())
}
