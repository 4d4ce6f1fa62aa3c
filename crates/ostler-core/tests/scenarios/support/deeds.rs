//! Short names for the orders that scenarios expect.

use ostler_core::{
    Command, Continuity, Exit, LeaseEnd, LeaseId, LossReason, OrderId, Outcome, ProcessId, Refusal,
    Reply, RequestId, SessionId, Started, Status, StopReason, Time, Waiting, WorkerId,
};

use super::FAR;

/// A first assignment, to a free place.
pub fn assign(request: u64, process: ProcessId) -> Command {
    assign_again(request, 1, 0, process)
}

/// A later assignment, after `tries` executions that may have begun.
pub fn assign_again(request: u64, attempt: u32, tries: u32, process: ProcessId) -> Command {
    let (request, deadline) = (RequestId(request), FAR);
    let (prefetched, continuity) = (false, None);
    Command::Assign { request, attempt, process, deadline, tries, prefetched, continuity }
}

/// A first assignment, behind another request.
pub fn assign_behind(request: u64, process: ProcessId) -> Command {
    let (request, deadline) = (RequestId(request), FAR);
    let (attempt, tries, prefetched, continuity) = (1, 0, true, None);
    Command::Assign { request, attempt, process, deadline, tries, prefetched, continuity }
}

/// The same order for a request with that deadline.
pub fn due(mut order: Command, by: Time) -> Command {
    match &mut order {
        Command::Assign { deadline, .. } => *deadline = by,
        other => panic!("{other:?} has no deadline"),
    }
    order
}

/// The same order for a request of a session that finds this.
pub fn finding(what: Continuity, mut order: Command) -> Command {
    match &mut order {
        Command::Assign { continuity, .. } => *continuity = Some(what),
        other => panic!("{other:?} is not of a session"),
    }
    order
}

/// The worker is to let go of a first attempt.
pub fn cancel(request: u64, process: ProcessId) -> Command {
    Command::Cancel { request: RequestId(request), attempt: 1, process, withdraw: false }
}

/// The worker is to give a first attempt back, unless it has begun it.
pub fn withdraw(request: u64, process: ProcessId) -> Command {
    Command::Cancel { request: RequestId(request), attempt: 1, process, withdraw: true }
}

/// The one behind has moved up.
pub fn begin(request: u64, process: ProcessId) -> Command {
    Command::Begin { request: RequestId(request), process }
}

pub fn resolve(request: u64, outcome: Outcome) -> Command {
    Command::Resolve { request: RequestId(request), outcome }
}

pub fn answered(request: u64) -> Command {
    resolve(request, Outcome::Answered)
}

pub fn cancelled(request: u64, started: Started) -> Command {
    resolve(request, Outcome::Cancelled { started })
}

pub fn timed_out(request: u64, phase: Waiting, started: Started) -> Command {
    resolve(request, Outcome::TimedOut { phase, started })
}

pub fn crashed(request: u64, exit: Exit) -> Command {
    let reason = LossReason::Crashed;
    resolve(request, Outcome::Lost { exit, reason, started: Started::Unknown })
}

pub fn stopped(request: u64, exit: Exit, reason: StopReason) -> Command {
    let reason = LossReason::Stopped(reason);
    resolve(request, Outcome::Lost { exit, reason, started: Started::Unknown })
}

pub fn refuse(request: u64, refusal: Refusal) -> Command {
    Command::Refuse { request: RequestId(request), refusal }
}

/// A process of the first kind that the pool had.
pub fn spawn(process: ProcessId) -> Command {
    spawn_of(1, process)
}

pub fn spawn_of(edition: u32, process: ProcessId) -> Command {
    Command::Spawn { process, edition }
}

pub fn save(session: u64, process: ProcessId) -> Command {
    Command::SaveSession { process, session: SessionId(session) }
}

pub fn ask(process: ProcessId) -> Command {
    Command::AskShutdown { process }
}

pub fn term(process: ProcessId) -> Command {
    Command::Terminate { process }
}

pub fn kill(process: ProcessId) -> Command {
    Command::Kill { process }
}

pub fn ping(process: ProcessId) -> Command {
    Command::Ping { process }
}

pub fn check_health(process: ProcessId) -> Command {
    Command::CheckHealth { process }
}

pub fn grant(lease: u64, places: &[ProcessId]) -> Command {
    Command::Grant { lease: LeaseId(lease), places: places.to_vec() }
}

pub fn refuse_lease(lease: u64, refusal: Refusal) -> Command {
    Command::RefuseLease { lease: LeaseId(lease), refusal }
}

pub fn lose_place(lease: u64, place: u32) -> Command {
    Command::LosePlace { lease: LeaseId(lease), place }
}

pub fn end_lease(lease: u64, reason: LeaseEnd) -> Command {
    Command::EndLease { lease: LeaseId(lease), reason }
}

pub fn reply(order: OrderId, reply: Reply) -> Command {
    Command::Reply { order, reply }
}

pub fn done(order: OrderId, worker: u64, status: Status) -> Command {
    reply(order, Reply::Done { worker: WorkerId(worker), status })
}
