use ostler_runtime::{Directory, EventLog};
use ostler_store::Content;
use ostler_store::ledger::job::NewJob;
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::{Ledger, LedgerSettings};
use serde_json::json;

use super::*;
use crate::office::JobSettings;

fn completed_with(text: &'static str) -> Outcome {
    Outcome::Completed(Body::json(text))
}

fn failed(code: &str) -> Outcome {
    Outcome::failed(AttemptFailure::Error, code, "it failed")
}

fn unbegun() -> Outcome {
    Outcome::Unbegun { error: json!({ "code": "lease_not_found" }) }
}

const STOPPED: Outcome = Outcome::Stopped { began: true };
const NEVER: Outcome = Outcome::Stopped { began: false };

fn end_of(outcomes: Vec<(u32, Outcome)>) -> AttemptEnd {
    let count = outcomes.len() as u32;
    combined(outcomes, false, count)
}

#[test]
fn one_shard_is_its_own_result_and_several_are_a_list_by_shard() {
    let AttemptEnd::Completed(one) = end_of(vec![(0, completed_with("7"))]) else { panic!() };
    assert_eq!(&one.bytes[..], b"7");
    let two = end_of(vec![(1, completed_with("\"b\"")), (0, completed_with("\"a\""))]);
    let AttemptEnd::Completed(two) = two else { panic!("{two:?}") };
    assert_eq!(&two.bytes[..], br#"["a","b"]"#);
}

#[test]
fn the_first_failure_is_the_attempts() {
    let end = end_of(vec![(1, failed("first")), (0, STOPPED), (2, failed("second"))]);
    let AttemptEnd::Failed { failure, error } = end else { panic!("{end:?}") };
    assert_eq!((failure, &error["code"]), (AttemptFailure::Error, &json!("first")));
}

#[test]
fn a_shard_that_never_began_counts_only_if_another_did() {
    assert_eq!(end_of(vec![(0, unbegun()), (1, NEVER)]), AttemptEnd::Released);
    let end = end_of(vec![(0, unbegun()), (1, STOPPED)]);
    let AttemptEnd::Failed { failure, .. } = end else { panic!("{end:?}") };
    assert_eq!(failure, AttemptFailure::Crashed);
    let end = end_of(vec![(0, completed_with("1")), (1, unbegun())]);
    let AttemptEnd::Failed { failure, .. } = end else { panic!("{end:?}") };
    assert_eq!(failure, AttemptFailure::Crashed);
}

#[test]
fn what_the_end_of_the_server_stopped_is_lost_unless_it_never_began() {
    let end = combined(vec![(0, STOPPED)], true, 1);
    let AttemptEnd::Failed { failure, .. } = end else { panic!("{end:?}") };
    assert_eq!(failure, AttemptFailure::Lost);
    assert_eq!(combined(vec![(0, NEVER)], true, 1), AttemptEnd::Released);
}

#[test]
fn whatever_a_function_makes_of_the_end_of_the_server_its_attempt_is_lost() {
    let end = combined(vec![(0, failed("interrupted"))], true, 1);
    let AttemptEnd::Failed { failure, .. } = end else { panic!("{end:?}") };
    assert_eq!(failure, AttemptFailure::Lost);
    let end = combined(vec![(0, completed_with("7"))], true, 1);
    assert!(matches!(end, AttemptEnd::Completed(_)), "{end:?}");
}

#[test]
fn one_that_began_as_patience_ended_is_tried_again() {
    let late = ended_after(Some(Stop::Impatient), STOPPED);
    assert!(matches!(late, Outcome::Failed { failure: AttemptFailure::Crashed, .. }), "{late:?}");
    assert_eq!(ended_after(Some(Stop::Impatient), NEVER), NEVER);
    assert_eq!(ended_after(Some(Stop::Told), STOPPED), STOPPED);
}

#[test]
fn a_request_that_somebody_cancelled_fails_its_job() {
    let end = end_of(vec![(0, STOPPED)]);
    let AttemptEnd::Failed { failure, error } = end else { panic!("{end:?}") };
    assert_eq!((failure, &error["code"]), (AttemptFailure::Error, &json!("cancelled")));
}

#[test]
fn calls_have_a_deadline_a_little_behind_the_jobs() {
    assert_eq!(time_left(None), FAR);
    let past = Timestamp::now() - Duration::from_secs(60);
    assert_eq!(time_left(Some(past)), SLACK);
    let soon = Timestamp::now() + Duration::from_secs(60);
    let left = time_left(Some(soon));
    assert!(left > Duration::from_secs(60) && left <= Duration::from_secs(60) + SLACK, "{left:?}");
}

/// A job of an office, claimed.
async fn charge() -> (Arc<Office>, Charge) {
    let ledger = Ledger::in_memory(LedgerSettings::default());
    let job = NewJob::new("py", "f", Content::new("application/json", ""));
    ledger.submit(vec![job], Asked::default()).await.expect("it is taken");
    let claimed = ledger.claim("py", 1).await.expect("it is there").remove(0);
    let log = Arc::new(EventLog::new(1));
    let office = Office::open(ledger, Directory::new(), log, JobSettings::default());
    let charge = office.roll.claiming().take(claimed);
    (office, charge)
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it ends")
}

#[tokio::test]
async fn what_comes_before_the_call_does_not_keep_a_job_from_being_cancelled() {
    let (office, charge) = charge().await;
    assert_eq!(unless_given_up(&charge, &office, async { 7 }).await, Ok(7));
    let endless = unless_given_up(&charge, &office, std::future::pending::<()>());
    let cancel = async { office.roll.call_off(charge.id(), charge.fence()) };
    let (end, ()) = within(async { tokio::join!(endless, cancel) }).await;
    assert_eq!(end, Err(AttemptEnd::Canceled));
    let late = unless_given_up(&charge, &office, async { 7 }).await;
    assert_eq!(late, Err(AttemptEnd::Canceled));
}

#[tokio::test]
async fn what_comes_before_the_call_does_not_keep_the_server_from_its_end() {
    let (office, charge) = charge().await;
    let endless = unless_given_up(&charge, &office, std::future::pending::<()>());
    let hurry = async {
        office.stage.send_replace(Stage::Hurrying);
    };
    let (end, ()) = within(async { tokio::join!(endless, hurry) }).await;
    assert_eq!(end, Err(AttemptEnd::Released));
}
