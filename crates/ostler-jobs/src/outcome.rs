//! What the end of one call means for the attempt that it was part of. The one place that maps
//! them; every way in which a call can end is named here.

use ostler_core::{AttemptFailure, LossReason, Refusal, Started, StopReason, Waiting};
use ostler_proto::WorkerError;
use ostler_runtime::{Body, CallError, Failure, Refused};
use ostler_store::SessionError;
use serde_json::{Value, json};

/// How a call of a job ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Completed(Body),
    Failed {
        failure: AttemptFailure,
        error: Value,
    },
    /// Nothing ran: it may be given to somebody else as if nothing had been.
    Unbegun {
        error: Value,
    },
    /// It was told to stop, and did.
    Stopped {
        began: bool,
    },
}

impl Outcome {
    pub fn of(end: Result<Body, CallError>) -> Outcome {
        let error = match end {
            Ok(body) => return Outcome::Completed(body),
            Err(error) => error,
        };
        let meaning = match &error {
            CallError::Refused(refused) => of_refused(refused),
            CallError::Failed(failure) => of_failure(failure),
        };
        match meaning {
            Meaning::Unbegun => Outcome::Unbegun { error: told(&error) },
            Meaning::Failed(failure) => Outcome::Failed { failure, error: told(&error) },
            Meaning::Stopped { began } => Outcome::Stopped { began },
        }
    }

    pub fn completed(&self) -> bool {
        matches!(self, Outcome::Completed(_))
    }

    pub fn failed_itself(&self) -> bool {
        matches!(self, Outcome::Failed { .. })
    }

    /// The function may have been entered.
    pub fn began(&self) -> bool {
        match self {
            Outcome::Completed(_) | Outcome::Failed { .. } => true,
            Outcome::Stopped { began } => *began,
            Outcome::Unbegun { .. } => false,
        }
    }

    pub fn failed(failure: AttemptFailure, code: &str, message: &str) -> Outcome {
        Outcome::Failed { failure, error: json!({ "code": code, "message": message }) }
    }
}

/// The error as the job shows it.
fn told(error: &CallError) -> Value {
    let known = error.known();
    let mut told = error.details(true);
    told.insert("code".to_owned(), known.code.into());
    told.insert("message".to_owned(), error.to_string().into());
    Value::Object(told)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Unbegun,
    Failed(AttemptFailure),
    Stopped { began: bool },
}

const INVALID: Meaning = Meaning::Failed(AttemptFailure::Invalid);

fn of_refused(refused: &Refused) -> Meaning {
    match refused {
        Refused::FunctionNotFound { .. }
        | Refused::Unsendable { .. }
        | Refused::NestedTooDeep { .. }
        | Refused::SessionRequired
        | Refused::OperationNotFound { .. } => INVALID,
        Refused::Arguments(error) if error.code == WorkerError::THREAD_UNSAFE => Meaning::Unbegun,
        Refused::Arguments(_) => INVALID,
        Refused::PoolNotFound { .. } | Refused::PoolFailed { .. } => Meaning::Unbegun,
        Refused::Session(error) => of_session(error),
        Refused::Pool(refusal) => of_refusal(refusal),
    }
}

fn of_session(error: &SessionError) -> Meaning {
    match error {
        SessionError::VersionConflict { .. }
        | SessionError::Quota { .. }
        | SessionError::StoreFull { .. }
        | SessionError::StoreUnavailable { .. } => Meaning::Unbegun,
        SessionError::NotFound { .. }
        | SessionError::Exists { .. }
        | SessionError::Invalid(_)
        | SessionError::ProgramNotFound { .. }
        | SessionError::ProgramQuota { .. }
        | SessionError::MetadataTooLarge { .. } => INVALID,
    }
}

fn of_refusal(refusal: &Refusal) -> Meaning {
    match refusal {
        Refusal::Saturated { .. }
        | Refusal::QueueTimeout
        | Refusal::DeadlineUnreachable { .. }
        | Refusal::PoolDraining
        | Refusal::ShuttingDown
        | Refusal::PoolFailed
        | Refusal::LeaseTimeout
        | Refusal::NoSuchLease
        | Refusal::NoSuchWorker
        | Refusal::WorkerNotServing
        | Refusal::WorkerBusy
        | Refusal::NotInKeyedPool => Meaning::Unbegun,
        // It was the end of two processes: what keeps others safe from it is an end of its own.
        Refusal::Quarantined { .. } => Meaning::Failed(AttemptFailure::Crashed),
        // The session is told once that its process is gone; the job's trail shows it.
        Refusal::SessionWorkerLost => Meaning::Failed(AttemptFailure::Retryable),
        Refusal::KeyRequired | Refusal::TooManyWorkers | Refusal::NestedDeadlock => INVALID,
    }
}

fn of_failure(failure: &Failure) -> Meaning {
    match failure {
        Failure::Application(error) if error.retryable => {
            Meaning::Failed(AttemptFailure::Retryable)
        }
        Failure::Application(_) | Failure::ResultTooLarge { .. } => {
            Meaning::Failed(AttemptFailure::Error)
        }
        Failure::Cancelled { started } => Meaning::Stopped { began: *started != Started::No },
        Failure::TimedOut { phase: Waiting::Queue, started: Started::No, .. } => Meaning::Unbegun,
        Failure::TimedOut { .. } => Meaning::Failed(AttemptFailure::Error),
        Failure::Crashed { started: Started::No, .. } => Meaning::Unbegun,
        Failure::Crashed { reason: LossReason::Stopped(StopReason::Shutdown), .. } => {
            Meaning::Failed(AttemptFailure::Lost)
        }
        Failure::Crashed { .. } => Meaning::Failed(AttemptFailure::Crashed),
    }
}

#[cfg(test)]
mod tests {
    use ostler_core::Exit;

    use super::*;

    fn crashed(reason: LossReason, started: Started) -> CallError {
        CallError::Failed(Failure::Crashed {
            worker: "py-1".to_owned(),
            exit: Exit::Code(1),
            reason,
            started,
            stderr: Vec::new(),
            chunks: 0,
            condition: None,
        })
    }

    fn failure(end: CallError) -> Option<AttemptFailure> {
        match Outcome::of(Err(end)) {
            Outcome::Failed { failure, .. } => Some(failure),
            Outcome::Completed(_) | Outcome::Unbegun { .. } | Outcome::Stopped { .. } => None,
        }
    }

    fn raised(retryable: bool) -> CallError {
        let error = WorkerError { retryable, message: "no".to_owned(), ..WorkerError::default() };
        Failure::Application(error).into()
    }

    #[test]
    fn an_exception_fails_the_attempt_and_says_whether_another_one_may_help() {
        assert_eq!(failure(raised(false)), Some(AttemptFailure::Error));
        assert_eq!(failure(raised(true)), Some(AttemptFailure::Retryable));
        let Outcome::Failed { error, .. } = Outcome::of(Err(raised(false))) else { panic!() };
        assert_eq!(error["code"], "application_error");
        assert_eq!(error["message"], "no");
    }

    #[test]
    fn a_worker_that_ends_uses_an_attempt_unless_it_had_not_begun() {
        for started in [Started::Yes, Started::Unknown] {
            let end = crashed(LossReason::Crashed, started);
            assert_eq!(failure(end), Some(AttemptFailure::Crashed));
            let end = crashed(LossReason::Stopped(StopReason::Shutdown), started);
            assert_eq!(failure(end), Some(AttemptFailure::Lost));
        }
        let end = Outcome::of(Err(crashed(LossReason::Crashed, Started::No)));
        assert!(matches!(end, Outcome::Unbegun { .. }), "{end:?}");
    }

    #[test]
    fn where_nothing_ran_nothing_is_counted() {
        for refusal in [Refusal::ShuttingDown, Refusal::QueueTimeout, Refusal::NoSuchLease] {
            let end = Outcome::of(Err(Refused::Pool(refusal).into()));
            assert!(matches!(end, Outcome::Unbegun { .. }), "{end:?}");
        }
    }

    #[test]
    fn what_no_worker_can_run_is_invalid() {
        let missing = Refused::FunctionNotFound {
            pool: "py".to_owned(),
            function: "nowhere".to_owned(),
            known: vec!["here".to_owned()],
        };
        assert_eq!(failure(missing.into()), Some(AttemptFailure::Invalid));
        let unfit = WorkerError { code: "invalid_arguments".to_owned(), ..WorkerError::default() };
        assert_eq!(failure(Refused::Arguments(unfit).into()), Some(AttemptFailure::Invalid));
    }

    #[test]
    fn a_function_that_is_busy_elsewhere_was_not_entered() {
        let busy =
            WorkerError { code: WorkerError::THREAD_UNSAFE.to_owned(), ..WorkerError::default() };
        let end = Outcome::of(Err(Refused::Arguments(busy).into()));
        assert!(matches!(end, Outcome::Unbegun { .. }), "{end:?}");
    }
}
