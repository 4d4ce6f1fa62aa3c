//! Places held for several calls.

use std::time::Duration;

use ostler_core::{
    Answer, Command, Event, Exit, LeaseEnd, LeaseId, Refusal, Settings, Status, Target,
};

use crate::support::*;

fn place(lease: u64, index: u32) -> Target {
    Target::Lease(LeaseId(lease), index)
}

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

#[test]
fn one_place_is_granted_at_once_and_is_closed_to_others() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    assert_eq!(stage.take(), [grant(1, &[p(1, 1)])]);
    stage.arrive(1);
    assert_eq!(stage.take(), []);
    stage.arrive_for(2, place(1, 0));
    assert_eq!(stage.take(), [assign(2, p(1, 1))]);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2)]);
    stage.release(1);
    assert_eq!(stage.take(), [end_lease(1, LeaseEnd::Released), assign(1, p(1, 1))]);
}

#[test]
fn several_places_are_on_workers_of_their_own() {
    let mut stage = Stage::ready(Settings { capacity: 4, ..calm(3) });
    stage.ask_lease(1, 3);
    assert_eq!(stage.take(), [grant(1, &[p(1, 1), p(2, 1), p(3, 1)])]);
    stage.arrive_for(1, place(1, 2));
    assert_eq!(stage.take(), [assign(1, p(3, 1))]);
}

#[test]
fn a_lease_that_cannot_be_had_keeps_nobody_from_being_served() {
    let mut stage = Stage::ready(Settings { gang_patience: secs(1), ..no_prefetch(2) });
    stage.pause(1);
    stage.ask_lease(1, 2);
    stage.advance(secs(2));
    stage.forget();
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(2, 1))], "one worker is paused: it would wait for ever");
    stage.complete(1, p(2, 1));
    stage.forget();
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), grant(1, &[p(2, 1), p(1, 1)])]);
}

#[test]
fn what_was_kept_for_a_lease_is_given_back_when_it_cannot_be_had_any_more() {
    let mut stage = Stage::ready(Settings { gang_patience: secs(1), ..no_prefetch(2) });
    stage.arrive(1);
    stage.ask_lease(1, 2);
    stage.advance(secs(2));
    stage.arrive(2);
    stage.forget();
    assert_eq!(stage.take(), [], "the free one is kept for the lease");
    stage.pause(1);
    let deeds = stage.take();
    assert!(deeds.contains(&assign(2, p(2, 1))), "{deeds:?}");
}

#[test]
fn a_smaller_lease_does_not_wait_behind_one_that_cannot_be_had() {
    let mut stage = Stage::ready(Settings { gang_patience: secs(1), ..no_prefetch(3) });
    for request in 1..=3 {
        stage.arrive(request);
    }
    stage.pause(3);
    stage.ask_lease(1, 3);
    stage.ask_lease(2, 2);
    stage.advance(secs(2));
    stage.forget();
    stage.complete(1, p(1, 1));
    stage.arrive(4);
    stage.complete(2, p(2, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&grant(2, &[p(1, 1), p(2, 1)])), "{deeds:?}");
}

#[test]
fn several_places_are_granted_all_at_once_or_not_at_all() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.forget();
    stage.ask_lease(1, 2);
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(2, p(2, 1))], "what is not granted is not held");
    stage.advance(secs(1));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    stage.arrive(3);
    assert_eq!(stage.take(), [assign(3, p(1, 1))]);
    stage.complete(3, p(1, 1));
    stage.advance(secs(1));
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(3), answered(2), grant(1, &[p(2, 1), p(1, 1)])]);
}

#[test]
fn after_its_patience_a_lease_is_given_every_place_that_comes_free() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.arrive(2);
    stage.ask_lease(1, 2);
    stage.advance(secs(4));
    stage.arrive(3);
    stage.arrive(4);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), assign(3, p(1, 1))], "not yet");
    stage.advance(secs(1));
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2)], "reserved, not half granted");
    stage.complete(3, p(1, 1));
    assert_eq!(stage.take(), [answered(3), grant(1, &[p(2, 1), p(1, 1)])]);
    stage.release(1);
    assert_eq!(stage.take()[0], end_lease(1, LeaseEnd::Released));
}

#[test]
fn the_oldest_waiting_lease_gets_the_reservations() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.arrive(2);
    stage.ask_lease(1, 2);
    stage.ask_lease(2, 1);
    stage.advance(secs(5));
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), grant(1, &[p(1, 1), p(2, 1)])]);
}

/// Worker 1 is reserved for lease 1, worker 2 runs request 2, and request 3 waits.
fn half_reserved() -> Stage {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.arrive(2);
    let by = stage.now.after(secs(8));
    stage.ask_lease_until(1, 2, by);
    stage.advance(secs(5));
    stage.complete(1, p(1, 1));
    stage.arrive(3);
    stage.forget();
    stage
}

#[test]
fn a_lease_that_is_not_granted_in_time_is_refused_and_gives_its_reservations_back() {
    let mut stage = half_reserved();
    stage.advance(secs(3) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [refuse_lease(1, Refusal::LeaseTimeout), assign(3, p(1, 1))]);
}

#[test]
fn a_lease_that_is_no_longer_wanted_gives_its_reservations_back() {
    let mut stage = half_reserved();
    stage.release(1);
    assert_eq!(stage.take(), [end_lease(1, LeaseEnd::Released), assign(3, p(1, 1))]);
}

#[test]
fn a_reserved_worker_is_not_discarded_with_a_lease_that_never_had_it() {
    let mut stage = half_reserved();
    stage.discard(1);
    assert_eq!(stage.take(), [end_lease(1, LeaseEnd::Released), assign(3, p(1, 1))]);
}

#[test]
fn a_reservation_goes_with_its_process() {
    let mut stage = half_reserved();
    stage.crash(p(1, 1));
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2)), answered(2)]);
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [grant(1, &[p(2, 1), p(1, 2)])]);
}

#[test]
fn no_place_is_granted_on_a_worker_that_was_paused_after_it_was_reserved() {
    let mut stage = half_reserved();
    stage.pause(1);
    stage.forget();
    stage.complete(2, p(2, 1));
    let granted = stage.take().into_iter().any(|deed| matches!(deed, Command::Grant { .. }));
    assert!(!granted, "only one of two workers is in service");
}

#[test]
fn no_place_is_granted_on_a_process_that_asked_to_retire_after_it_was_reserved() {
    let mut stage = half_reserved();
    stage.feed(Event::RetireAsked { process: p(1, 1) });
    stage.forget();
    stage.complete(2, p(2, 1));
    let granted = stage.take().into_iter().any(|deed| matches!(deed, Command::Grant { .. }));
    assert!(!granted, "only one of two workers takes new work");
}

#[test]
fn a_stream_of_short_calls_does_not_starve_a_waiting_lease() {
    let mut stage = Stage::ready(Settings { gang_patience: ms(2), ..calm(1) });
    stage.arrive(1);
    stage.complete(1, p(1, 1));
    for id in 2..=4 {
        stage.arrive(id);
    }
    stage.ask_lease(1, 1);
    stage.forget();
    for id in 5..=100 {
        stage.advance(Duration::from_micros(100));
        stage.arrive(id);
        let Some(first) = stage.view(1).held.first().copied() else { break };
        stage.complete(first.0, p(1, 1));
    }
    let granted = stage.take().into_iter().any(|deed| matches!(deed, Command::Grant { .. }));
    assert!(granted, "its patience was over long ago");
}

#[test]
fn more_workers_than_the_pool_has_are_refused_and_so_are_none() {
    for workers in [0, 3] {
        let mut stage = Stage::ready(calm(2));
        stage.ask_lease(1, workers);
        assert_eq!(stage.take(), [refuse_lease(1, Refusal::TooManyWorkers)]);
    }
}

#[test]
fn leases_are_bounded() {
    let mut stage = Stage::ready(Settings { leases_max: 1, ..calm(2) });
    stage.ask_lease(1, 1);
    stage.forget();
    stage.ask_lease(2, 1);
    assert!(matches!(
        stage.take()[..],
        [Command::RefuseLease { lease: LeaseId(2), refusal: Refusal::Saturated { .. } }]
    ));
    stage.release(1);
    stage.forget();
    stage.ask_lease(3, 1);
    assert!(matches!(stage.take()[..], [Command::Grant { lease: LeaseId(3), .. }]));
}

#[test]
fn an_expired_lease_comes_back_and_what_runs_there_goes_on() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.ask_lease(1, 1);
    stage.advance(secs(55));
    stage.arrive_for(1, place(1, 0));
    stage.arrive_for(2, place(1, 0));
    stage.arrive(3);
    stage.forget();
    stage.advance(secs(5) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [refuse(2, Refusal::NoSuchLease), end_lease(1, LeaseEnd::Expired)]);
    stage.arrive_for(4, place(1, 0));
    assert_eq!(stage.take(), [refuse(4, Refusal::NoSuchLease)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), assign(3, p(1, 1))]);
}

#[test]
fn a_renewed_lease_lives_for_its_new_time() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.advance(secs(59));
    stage.feed(Event::LeaseRenewed { lease: LeaseId(1), ttl: secs(60) });
    stage.forget();
    stage.advance(secs(60) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [end_lease(1, LeaseEnd::Expired)]);
    stage.feed(Event::LeaseRenewed { lease: LeaseId(1), ttl: secs(60) });
    stage.release(1);
    assert_eq!(stage.take(), [], "what is over cannot be renewed or released");
}

#[test]
fn a_discarded_lease_takes_its_worker_s_process_with_it() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.forget();
    stage.discard(1);
    stage.arrive(1);
    assert_eq!(stage.take(), [end_lease(1, LeaseEnd::Released), ask(p(1, 1))]);
    stage.leave(p(1, 1));
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [spawn(p(1, 2)), assign(1, p(1, 2))]);
    assert_eq!(stage.pool.view(stage.now).counters.restarts_unplanned, 0);
}

#[test]
fn requests_on_one_place_run_one_at_a_time_in_their_order() {
    let mut stage = Stage::ready(Settings { capacity: 4, ..calm(1) });
    stage.ask_lease(1, 1);
    stage.forget();
    for id in 1..=3 {
        stage.arrive_for(id, place(1, 0));
    }
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    for (id, next) in [(1, 2), (2, 3)] {
        stage.complete(id, p(1, 1));
        let deeds = stage.take();
        assert_eq!(deeds.len(), 2, "{deeds:?}");
        assert!(deeds.contains(&answered(id)) && deeds.contains(&assign(next, p(1, 1))));
    }
}

#[test]
fn a_cancelled_request_keeps_its_place_until_the_worker_lets_go() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.arrive_for(1, place(1, 0));
    stage.arrive_for(2, place(1, 0));
    stage.cancel(1);
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), []);
    stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: true });
    assert_eq!(stage.take(), [assign(2, p(1, 1))]);
}

#[test]
fn the_other_places_of_a_leased_worker_are_open_to_all() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.ask_lease(1, 1);
    stage.arrive(1);
    stage.arrive(2);
    assert_eq!(stage.take(), [grant(1, &[p(1, 1)]), assign(1, p(1, 1))]);
}

#[test]
fn a_place_that_is_not_there_is_refused() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.forget();
    stage.arrive_for(1, place(1, 1));
    stage.arrive_for(2, place(9, 0));
    assert_eq!(stage.take(), [1, 2].map(|id| refuse(id, Refusal::NoSuchLease)));
}

#[test]
fn a_place_goes_with_its_process_and_the_lease_with_its_last_place() {
    let mut stage = Stage::ready(calm(2));
    stage.ask_lease(1, 2);
    stage.arrive_for(1, place(1, 1));
    stage.arrive_for(2, place(1, 1));
    stage.forget();
    stage.exit(p(2, 1), Exit::Signal(9));
    let expected = [lose_place(1, 1), refuse(2, Refusal::NoSuchLease), crashed(1, Exit::Signal(9))];
    assert_eq!(stage.take(), expected);
    stage.arrive_for(3, place(1, 1));
    stage.arrive_for(4, place(1, 0));
    assert_eq!(stage.take(), [refuse(3, Refusal::NoSuchLease), assign(4, p(1, 1))]);
    stage.complete(4, p(1, 1));
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), [lose_place(1, 0), end_lease(1, LeaseEnd::Lost)]);
}

#[test]
fn the_next_process_of_a_leased_worker_is_nobody_s() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.forget();
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 2))]);
}

#[test]
fn an_idempotent_request_that_lost_its_place_is_told_of_the_crash() {
    let mut stage = Stage::ready(calm(2));
    stage.ask_lease(1, 1);
    stage.arrive_as(1, |spec| (spec.idempotent, spec.target) = (true, place(1, 0)));
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(6));
    let deeds = stage.take();
    assert!(deeds.contains(&crashed(1, Exit::Signal(6))), "{deeds:?}");
}

#[test]
fn a_retried_request_runs_again_on_its_place() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.arrive_as(1, |spec| (spec.idempotent, spec.target) = (true, place(1, 0)));
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    stage.advance(ms(50));
    assert_eq!(stage.take(), [assign_again(1, 2, 1, p(1, 1))]);
}

#[test]
fn a_retried_request_whose_lease_ended_is_answered_with_its_error() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.arrive_as(1, |spec| (spec.idempotent, spec.target) = (true, place(1, 0)));
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    stage.release(1);
    stage.advance(ms(50));
    assert!(stage.take().contains(&answered(1)), "nobody cancelled it");
}

#[test]
fn requests_on_a_paused_place_wait_until_it_is_resumed() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.pause(1);
    stage.forget();
    stage.arrive_for(1, place(1, 0));
    assert_eq!(stage.take(), []);
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), assign(1, p(1, 1))]);
}

#[test]
fn a_resumed_place_that_is_still_busy_is_given_nothing_more() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.arrive_for(1, place(1, 0));
    stage.arrive_for(2, place(1, 0));
    stage.pause(1);
    stage.forget();
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running)]);
    stage.complete(1, p(1, 1));
    assert!(stage.take().contains(&assign(2, p(1, 1))));
}

#[test]
fn a_lease_asked_for_during_the_start_is_granted_when_its_workers_are_ready() {
    let mut stage = Stage::started(calm(2));
    stage.ask_lease(1, 2);
    stage.forget();
    stage.become_ready(p(1, 1));
    assert_eq!(stage.take(), []);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [grant(1, &[p(1, 1), p(2, 1)])]);
}
