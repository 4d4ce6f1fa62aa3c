//! Where one check after the other is made over one transport: it keeps a worker for as long as
//! it is of use, and starts another when it is not.

use std::num::NonZeroU32;

use bytes::Bytes;
use ostler_proto::{Body, Function, Query, Ready, Wire};

use super::check::Check;
use super::finding::{Fault, Finding, Judged};
use super::launcher::{BOTH_WIRES, Launcher, Unready};
use super::subject::Subject;
use super::{CannotTest, Plan, Target, checks, schema};

/// What became of the first process.
#[derive(Debug)]
enum Opening {
    NotTried,
    Opened,
    /// Whether its `ready` came, though it was not a good one.
    Failed {
        bad_ready: bool,
        why: String,
    },
}

#[derive(Debug)]
pub(super) struct Bench<'a> {
    pub plan: &'a Plan,
    launcher: Launcher<'a>,
    subject: Option<Subject>,
    opening: Opening,
    /// Processes started so far.
    started: u32,
    /// No check that needs an answer is worth its wait.
    mute: bool,
}

impl<'a> Bench<'a> {
    pub fn new(plan: &'a Plan, launcher: Launcher<'a>) -> Self {
        let opening = Opening::NotTried;
        Bench { plan, launcher, subject: None, opening, started: 0, mute: false }
    }

    /// Makes one check. What the worker did wrong beside what was asked counts against it too.
    pub async fn judge(&mut self, check: Check) -> Result<Finding, CannotTest> {
        if let Opening::NotTried = self.opening {
            self.open().await?;
        }
        let judged = match self.may_try(check) {
            Ok(()) => self.perform(check).await,
            Err(fault) => Err(fault),
        };
        Ok(Finding::new(self.launcher.transport(), check, judged))
    }

    async fn perform(&mut self, check: Check) -> Judged {
        let judged = checks::perform(check, self).await;
        let offence = self.subject.as_mut().and_then(|subject| subject.ledger.take_offence());
        if let Err(Fault::Failed { broken: true, .. }) = judged {
            self.clear().await;
            self.mute |= check == Check::AnsweredOnce;
        }
        match (judged, offence) {
            (Ok(_) | Err(Fault::Skipped(_)), Some(offence)) => Err(offence),
            (judged, _) => judged,
        }
    }

    async fn open(&mut self) -> Result<(), CannotTest> {
        self.opening = match self.start(BOTH_WIRES).await {
            Ok(subject) => {
                self.subject = Some(subject);
                Opening::Opened
            }
            Err(Unready::Spawn(why)) => return Err(CannotTest::Spawn(why)),
            Err(unready) => {
                let bad_ready = matches!(unready, Unready::BadReady(_));
                Opening::Failed { bad_ready, why: unready.why() }
            }
        };
        Ok(())
    }

    /// Without a worker that opens, only the first two checks say something.
    fn may_try(&self, check: Check) -> Result<(), Fault> {
        let Opening::Failed { bad_ready, why } = &self.opening else { return Ok(()) };
        match (check, bad_ready) {
            (Check::ReadyFirst, true) => Ok(()),
            (Check::ReadyFirst, false) | (Check::ReadyValid, true) => Err(Fault::failed(why)),
            _ => Err(Fault::skipped("it never became ready")),
        }
    }

    /// A process of its own, for a check that changes how it is started.
    pub async fn start(&mut self, wires: &str) -> Result<Subject, Unready> {
        self.started += 1;
        self.launcher.start(self.started, wires, self.plan.timeout).await
    }

    /// The worker, a new one if the last is gone.
    pub async fn subject(&mut self) -> Result<&mut Subject, Fault> {
        if self.subject.is_none() {
            let started = self.start(BOTH_WIRES).await;
            self.subject = Some(started.map_err(|unready| {
                Fault::failed(format!("it did not start again: {}", unready.why()))
            })?);
        }
        Ok(self.subject.as_mut().expect("just made sure"))
    }

    /// The worker, for a check that needs calls to be answered.
    pub async fn caller(&mut self) -> Result<&mut Subject, Fault> {
        match self.mute {
            true => Err(Fault::skipped("calls are not answered")),
            false => self.subject().await,
        }
    }

    /// The worker, for a check after which it is not the same.
    pub async fn take_subject(&mut self) -> Result<Subject, Fault> {
        self.subject().await?;
        Ok(self.subject.take().expect("just made sure"))
    }

    /// Ends the worker, if there is one, and waits until it is gone.
    pub async fn clear(&mut self) {
        if let Some(subject) = self.subject.take() {
            subject.clear().await;
        }
    }

    /// An ordinary call that is answered in its turn: what the worker wrote before it has come.
    pub async fn fence(&mut self) -> Result<(), Fault> {
        let plan = self.plan;
        let subject = self.caller().await?;
        let query = query(plan, subject, &plan.call);
        subject.call(query).await?;
        Ok(())
    }

    /// The call that yields chunks, if there is one.
    pub fn streaming(&self, ready: &Ready) -> Result<Target, Fault> {
        let announced = ready.functions.iter().find(|function| function.streaming);
        let function = announced.map(|function| function.name.clone());
        match (&self.plan.stream, function) {
            (Some(target), _) if target.function.is_some() => Ok(target.clone()),
            (Some(target), function) => {
                let function = function.or_else(|| self.plan.call.function.clone());
                Ok(Target { function, payload: target.payload.clone() })
            }
            (None, Some(function)) => Ok(Target { function: Some(function), payload: None }),
            (None, None) => Err(Fault::skipped("no function streams; name one: --stream-function")),
        }
    }
}

/// The query that a target means to this worker, with the next id.
pub(super) fn query(plan: &Plan, subject: &mut Subject, target: &Target) -> Query {
    let id = subject.ledger.open();
    query_of(plan, &subject.ready, id, target)
}

pub(super) fn query_of(plan: &Plan, ready: &Ready, id: u64, target: &Target) -> Query {
    let name = target.function.clone().or_else(|| Some(ready.functions.first()?.name.clone()));
    let body = payload(ready, name.as_deref(), target).map_or_else(Body::empty, Body::json);
    let left = u32::try_from(plan.timeout.as_millis()).unwrap_or(u32::MAX);
    let function = function(ready, name);
    Query { deadline_ms: NonZeroU32::new(left), ..Query::new(id, function, body) }
}

fn function(ready: &Ready, name: Option<String>) -> Function {
    let Some(name) = name else { return Function::Unnamed };
    let index = ready.functions.iter().position(|function| function.name == name);
    match index.and_then(|index| u16::try_from(index).ok()) {
        Some(index) if ready.wire == Wire::Binary => Function::Index(index),
        _ => Function::Named(name),
    }
}

/// What was given, or what the function's schema needs.
pub(super) fn payload(ready: &Ready, name: Option<&str>, target: &Target) -> Option<Bytes> {
    let announced = ready.functions.iter().find(|function| Some(&*function.name) == name);
    let parameters = announced.and_then(|function| function.parameters.as_ref());
    target.payload.clone().or_else(|| schema::fitting(parameters?.as_str()))
}
