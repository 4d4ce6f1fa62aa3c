use std::fmt::Write as _;

use ostler_core::{Exit, Retirement};

use super::*;

fn draft(kind: EventKind) -> EventDraft {
    EventDraft::new(kind, &"py".into())
}

fn log(kept: usize) -> Arc<EventLog> {
    Arc::new(EventLog::new(kept))
}

fn seqs(follower: &mut Follower) -> Vec<u64> {
    let events = std::iter::from_fn(|| match follower.try_next()? {
        Followed::Event(event) => Some(event.seq),
        other => panic!("{other:?}"),
    });
    events.collect()
}

#[test]
fn a_follower_sees_what_comes_after_it_or_after_a_number() {
    let log = log(10);
    let mut early = log.follow(None);
    for _ in 0..3 {
        log.publish(draft(EventKind::WorkerReady));
    }
    assert_eq!(seqs(&mut early), [1, 2, 3]);
    assert_eq!(seqs(&mut log.follow(None)), Vec::<u64>::new());
    assert_eq!(seqs(&mut log.follow(Some(0))), [1, 2, 3]);
    assert_eq!(seqs(&mut log.follow(Some(2))), [3]);
    assert_eq!(seqs(&mut log.follow(Some(3))), Vec::<u64>::new());
}

#[test]
fn a_number_of_another_life_means_all_that_is_kept() {
    let log = log(10);
    log.publish(draft(EventKind::PoolReady));
    assert_eq!(seqs(&mut log.follow(Some(77))), [1]);
}

#[test]
fn one_that_falls_behind_is_told_how_far_and_ends() {
    let log = log(4);
    let mut slow = log.follow(None);
    for _ in 0..7 {
        log.publish(draft(EventKind::WorkerReady));
    }
    assert_eq!(slow.try_next(), Some(Followed::Lagged { missed: 3, resume: 3 }));
    assert_eq!(slow.try_next(), Some(Followed::Ended));
    assert_eq!(seqs(&mut log.follow(Some(3))), [4, 5, 6, 7], "it resumes where the log begins");
}

#[test]
fn a_number_that_is_no_longer_kept_is_a_lag() {
    let log = log(2);
    for _ in 0..5 {
        log.publish(draft(EventKind::WorkerReady));
    }
    let followed = log.follow(Some(1)).try_next();
    assert!(matches!(followed, Some(Followed::Lagged { resume: 3, .. })), "{followed:?}");
    assert_eq!(seqs(&mut log.follow(Some(0))), [4, 5], "after 0 means whatever is kept");
}

#[test]
fn frequent_events_exist_only_while_somebody_follows_them() {
    let log = log(10);
    let mut plain = log.follow(None);
    log.publish(draft(EventKind::RequestCompleted));
    assert!(!log.wants_requests());
    let mut all = log.follow_all(None);
    assert!(log.wants_requests());
    log.publish(draft(EventKind::RequestCompleted));
    log.publish(draft(EventKind::WorkerReady));
    log.publish(draft(EventKind::WorkerBusy));
    assert_eq!(seqs(&mut all), [1, 2, 3], "in one order");
    assert_eq!(seqs(&mut plain), [2]);
    drop(all);
    assert!(!log.wants_requests());
}

#[test]
fn frequent_events_never_push_out_rare_ones() {
    let log = log(4);
    let mut plain = log.follow(None);
    let mut all = log.follow_all(None);
    log.publish(draft(EventKind::WorkerReady));
    for _ in 0..10 {
        log.publish(draft(EventKind::RequestCompleted));
    }
    assert_eq!(seqs(&mut plain), [1]);
    assert_eq!(all.try_next(), Some(Followed::Lagged { missed: 6, resume: 7 }));
    assert_eq!(seqs(&mut log.follow_all(Some(7))), [8, 9, 10, 11]);
}

#[test]
fn a_closed_log_is_read_to_its_end() {
    let log = log(4);
    let mut follower = log.follow(None);
    log.publish(draft(EventKind::PoolStopped));
    log.close();
    assert!(matches!(follower.try_next(), Some(Followed::Event(_))));
    assert_eq!(follower.try_next(), Some(Followed::Ended));
}

#[tokio::test]
async fn a_waiting_follower_is_woken() {
    let log = log(4);
    let mut follower = log.follow(None);
    let waiting = tokio::spawn(async move { follower.next().await });
    tokio::task::yield_now().await;
    let worker = "py-1".into();
    let event = draft(EventKind::WorkerStopping).worker(&worker).generation(3).reason("ttl");
    log.publish(event.moved(Some("ready"), "stopping").seconds(1.5).detail("planned", true));
    let Followed::Event(event) = waiting.await.unwrap() else { panic!("no event") };
    assert_eq!((event.from, event.to), (Some("ready"), Some("stopping")));
    assert_eq!(event.worker.as_deref(), Some("py-1"));
    assert_eq!(event.detail["planned"], true);
}

#[test]
#[should_panic(expected = "is not among the reasons")]
fn a_reason_outside_the_list_is_a_bug() {
    let _ = draft(EventKind::WorkerReady).reason("bored");
}

#[test]
fn a_process_ends_for_the_reasons_for_which_it_is_stopped_or_by_itself() {
    let ends = EventKind::WorkerTerminated.reasons();
    let stops = EventKind::WorkerStopping.reasons();
    assert!(ends.starts_with(stops), "the lists have drifted apart");
}

#[test]
fn whatever_is_refused_may_also_fail_later() {
    assert!(EventKind::RequestFailed.reasons().ends_with(EventKind::RequestRejected.reasons()));
}

#[test]
fn every_stop_and_every_exit_has_a_listed_reason() {
    use ostler_core::StopReason::*;
    for stop in Retirement::ALL.map(Retired) {
        assert!(EventKind::WorkerStopping.reasons().contains(&reason::of_stop(stop)), "{stop:?}");
        assert!(EventKind::WorkerRetiring.reasons().contains(&reason::of_stop(stop)), "{stop:?}");
    }
    for stop in [Shutdown, MemoryExceeded, Discarded, Terminated, Paused, ForcedCancel] {
        assert!(EventKind::WorkerStopping.reasons().contains(&reason::of_stop(stop)), "{stop:?}");
    }
    let unplanned = [
        StartTimeout,
        StreamClosed,
        ProtocolViolation,
        HeartbeatLost,
        Unhealthy,
        Tainted,
        Hung,
        GaveUp,
    ];
    for stop in unplanned {
        assert!(EventKind::WorkerStopping.reasons().contains(&reason::of_stop(stop)), "{stop:?}");
    }
    let signals = [libc::SIGSEGV, libc::SIGABRT, libc::SIGKILL, libc::SIGTERM].map(Exit::Signal);
    for exit in signals.into_iter().chain([Exit::Code(1), Exit::OutOfMemory, Exit::Unknown]) {
        assert!(EventKind::WorkerCrashed.reasons().contains(&reason::of_exit(exit)), "{exit:?}");
    }
}

#[test]
fn kinds_are_found_by_their_names() {
    for kind in EventKind::ALL.iter().copied() {
        assert_eq!(EventKind::named(kind.name()), Some(kind));
    }
    let mut names: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

/// `OSTLER_WRITE_DOCS=1 cargo test -p ostler-runtime catalogue` writes it anew.
#[test]
fn the_catalogue_in_the_documentation_is_the_one_in_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
    if std::env::var_os("OSTLER_WRITE_DOCS").is_some() {
        std::fs::write(path, catalogue()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == catalogue(), "docs/events.md is not what the code says: write it anew");
}

fn catalogue() -> String {
    let mut page = String::from(include_str!("catalogue.md"));
    for kind in EventKind::ALL {
        let often = if kind.frequent() {
            " *With every call: only for those who ask for all.*"
        } else {
            ""
        };
        let reasons: Vec<String> =
            kind.reasons().iter().map(|reason| format!("`{reason}`")).collect();
        let reasons = if reasons.is_empty() { "–".to_owned() } else { reasons.join(", ") };
        writeln!(page, "| `{}` | {}{often} | {reasons} |", kind.name(), kind.about()).unwrap();
    }
    page
}
