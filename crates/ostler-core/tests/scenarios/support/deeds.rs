//! Short names for the orders that scenarios expect.

use ostler_core::{
    Command, Exit, LeaseEnd, LeaseId, LossReason, OrderId, Outcome, ProcessId, Refusal, Reply,
    RequestId, Started, Status, StopReason, Time, Waiting, WorkerId,
};

use super::FAR;

/// A first assignment, to a free place.
pub fn assign(request: u64, process: ProcessId) -> Command {
    assign_again(request, 1, 0, process)
}

/// A later assignment, after `tries` executions that may have begun.
pub fn assign_again(request: u64, attempt: u32, tries: u32, process: ProcessId) -> Command {
    let (request, deadline) = (RequestId(request), FAR);
    Command::Assign { request, attempt, process, deadline, tries, prefetched: false }
}

/// A first assignment, behind another request.
pub fn assign_behind(request: u64, process: ProcessId) -> Command {
    let (request, deadline) = (RequestId(request), FAR);
    Command::Assign { request, attempt: 1, process, deadline, tries: 0, prefetched: true }
}

/// The same order for a request with that deadline.
pub fn due(order: Command, by: Time) -> Command {
    match order {
        Command::Assign { request, attempt, process, tries, prefetched, .. } => {
            Command::Assign { request, attempt, process, deadline: by, tries, prefetched }
        }
        other => panic!("{other:?} has no deadline"),
    }
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

pub fn spawn(process: ProcessId) -> Command {
    Command::Spawn { process }
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
