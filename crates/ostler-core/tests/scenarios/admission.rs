//! Who is let into the queue when the pool looks at deadlines.

use std::time::Duration;

use ostler_core::{Admission, Command, LeaseId, Refusal, RequestId, Settings, Target, WorkerId};

use crate::support::*;

fn by_deadline(size: u32) -> Settings {
    Settings { admission: Admission::Deadline, prefetch: 0, ..calm(size) }
}

/// A pool whose places are all taken and that has seen calls of about a second.
fn full(settings: Settings) -> Stage {
    let places = u64::from(settings.max * settings.capacity);
    let mut stage = Stage::ready(settings);
    for id in 1_000..1_050 {
        stage.arrive(id);
        stage.advance(secs(1));
        let process = stage.pool.request(RequestId(id)).and_then(|(process, _)| process);
        stage.complete(id, process.expect("it is the only one"));
    }
    for id in 2_000..2_000 + places {
        stage.arrive(id);
    }
    stage.forget();
    let service = stage.pool.view(stage.now).service;
    assert!(service > ms(900) && service <= secs(1), "{service:?}");
    stage
}

fn arrive_with(stage: &mut Stage, id: u64, time: Duration) -> Option<Refusal> {
    let by = stage.now.after(time);
    stage.arrive_as(id, |spec| spec.deadline = by);
    refusal(stage)
}

fn refusal(stage: &mut Stage) -> Option<Refusal> {
    match stage.take()[..] {
        [] => None,
        [Command::Refuse { refusal, .. }] => Some(refusal),
        ref deeds => panic!("neither queued nor refused: {deeds:?}"),
    }
}

#[test]
fn one_that_would_end_too_late_is_refused_with_the_estimate() {
    let mut stage = full(by_deadline(1));
    let service = stage.pool.view(stage.now).service;
    let refused = Refusal::DeadlineUnreachable { queued: 0, estimate: service };
    assert_eq!(arrive_with(&mut stage, 1, service - ms(1)), Some(refused));
    assert_eq!(arrive_with(&mut stage, 2, service), None, "just in time is in time");
    let refused = Refusal::DeadlineUnreachable { queued: 1, estimate: 2 * service };
    assert_eq!(arrive_with(&mut stage, 3, 2 * service - ms(1)), Some(refused));
    assert_eq!(arrive_with(&mut stage, 4, 2 * service), None);
}

#[test]
fn what_was_refused_is_forgotten_and_counted() {
    let mut stage = full(by_deadline(1));
    let before = stage.counters().refused;
    arrive_with(&mut stage, 1, ms(1));
    assert_eq!(stage.counters().refused, before + 1);
    assert_eq!(stage.pool.request(RequestId(1)), None);
    assert_eq!(stage.pool.view(stage.now).queued, 0);
}

#[test]
fn more_places_make_the_wait_shorter() {
    for (size, capacity) in [(4, 1), (1, 4), (2, 2)] {
        let mut stage = full(Settings { capacity, ..by_deadline(size) });
        for id in 1..=4 {
            stage.arrive(id);
        }
        stage.forget();
        let service = stage.pool.view(stage.now).service;
        assert!(arrive_with(&mut stage, 5, 2 * service - ms(1)).is_some(), "{size} x {capacity}");
        assert_eq!(arrive_with(&mut stage, 6, 2 * service), None, "{size} x {capacity}");
    }
}

#[test]
fn only_places_that_serve_are_counted() {
    let mut stage = full(by_deadline(2));
    stage.add_dedicated();
    stage.pause(2);
    for id in 1..=4 {
        stage.arrive(id);
    }
    stage.forget();
    let service = stage.pool.view(stage.now).service;
    assert!(arrive_with(&mut stage, 5, 5 * service - ms(1)).is_some());
    assert_eq!(arrive_with(&mut stage, 6, 5 * service), None);
}

#[test]
fn those_of_a_lower_priority_do_not_count() {
    let mut stage = full(by_deadline(1));
    for id in 1..=5 {
        stage.arrive(id);
    }
    stage.forget();
    let by = stage.now.after(secs(2));
    stage.arrive_as(6, |spec| spec.deadline = by);
    assert!(matches!(refusal(&mut stage), Some(Refusal::DeadlineUnreachable { .. })));
    stage.arrive_as(7, |spec| (spec.deadline, spec.priority) = (by, 1));
    assert_eq!(refusal(&mut stage), None);
    stage.arrive_as(8, |spec| (spec.deadline, spec.priority) = (by, 2));
    assert_eq!(refusal(&mut stage), None, "the one before it has a lower priority");
}

#[test]
fn one_that_can_be_placed_at_once_is_not_estimated() {
    let mut stage = full(by_deadline(1));
    stage.complete(2_000, p(1, 1));
    stage.forget();
    let by = stage.now.after(ms(1));
    stage.arrive_as(1, |spec| spec.deadline = by);
    assert_eq!(stage.take(), [due(assign(1, p(1, 1)), by)]);
}

#[test]
fn nobody_is_refused_before_a_first_answer_was_seen() {
    let mut stage = Stage::ready(by_deadline(1));
    for id in 1..=20 {
        stage.arrive(id);
    }
    stage.forget();
    assert_eq!(arrive_with(&mut stage, 21, ms(1)), None);
}

#[test]
fn nobody_is_refused_while_nobody_serves() {
    let mut stage = full(by_deadline(1));
    stage.exit(p(1, 1), ostler_core::Exit::Code(1));
    stage.forget();
    assert_eq!(arrive_with(&mut stage, 1, ms(1)), None, "there is nothing to estimate with");
}

#[test]
fn without_the_setting_everybody_may_wait() {
    let mut stage = full(Settings { admission: Admission::Queue, ..by_deadline(1) });
    assert_eq!(Settings::of_size(1).admission, Admission::Queue);
    assert_eq!(arrive_with(&mut stage, 1, ms(1)), None);
}

#[test]
fn who_waits_for_one_worker_or_a_leased_place_is_not_estimated() {
    let mut stage = full(by_deadline(2));
    stage.complete(2_001, p(2, 1));
    stage.ask_lease(1, 1);
    stage.arrive_for(2_002, Target::Lease(LeaseId(1), 0));
    stage.forget();
    for (id, target) in [(1, Target::Worker(WorkerId(1))), (2, Target::Lease(LeaseId(1), 0))] {
        let by = stage.now.after(ms(1));
        stage.arrive_as(id, |spec| (spec.deadline, spec.target) = (by, target));
        assert_eq!(refusal(&mut stage), None, "{target:?}");
    }
}

#[test]
fn a_full_queue_is_said_to_be_full_whatever_the_deadline() {
    let mut stage = full(Settings { queue_max: 1, ..by_deadline(1) });
    stage.arrive(1);
    stage.forget();
    let refused = arrive_with(&mut stage, 2, ms(1));
    assert!(matches!(refused, Some(Refusal::Saturated { queued: 1, busy: 1, .. })), "{refused:?}");
}

#[test]
fn one_that_was_let_in_is_not_turned_away_between_attempts() {
    let mut stage = full(by_deadline(1));
    let by = stage.now.after(secs(9));
    stage.arrive_as(1, |spec| (spec.deadline, spec.idempotent) = (by, true));
    stage.complete(2_000, p(1, 1));
    for id in 2..=20 {
        stage.arrive(id);
    }
    stage.forget();
    stage.exit(p(1, 1), ostler_core::Exit::Signal(9));
    assert_eq!(stage.take(), [], "it waits again, though many wait");
}
