//! Requests that lie in a worker's stream behind another one: not begun, so they may still expire,
//! be cancelled, or move.

use ostler_core::{
    Answer, Command, Event, Exit, Ready, RequestId, Settings, Started, Target, Waiting, WorkerId,
};

use crate::support::*;

/// A pool that has seen a short call, so that it prefetches.
fn brisk(settings: Settings) -> Stage {
    let mut stage = Stage::ready(settings);
    stage.arrive(1_000);
    stage.complete(1_000, p(1, 1));
    stage.forget();
    stage
}

/// One worker that runs request 1 with request 2 behind it.
fn one_behind_another() -> Stage {
    let mut stage = brisk(calm(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage
}

const NOT_BEGUN: Answer = Answer::Cancelled { started: false };

#[test]
fn nothing_is_prefetched_before_calls_have_shown_to_be_short() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
}

#[test]
fn behind_short_calls_one_more_lies_ready() {
    let mut stage = brisk(calm(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.arrive(3);
    assert_eq!(stage.take(), [assign(1, p(1, 1)), assign_behind(2, p(1, 1))]);
    stage.complete(1, p(1, 1));
    let expected = [begin(2, p(1, 1)), answered(1), assign_behind(3, p(1, 1))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn one_long_call_ends_the_prefetching() {
    let mut stage = brisk(calm(1));
    stage.arrive(1);
    stage.advance(secs(1));
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.arrive(2);
    stage.arrive(3);
    assert_eq!(stage.take(), [assign(2, p(1, 1))]);
}

#[test]
fn a_free_worker_comes_before_a_place_behind_another_request() {
    let mut stage = brisk(calm(2));
    stage.arrive(1);
    stage.arrive(2);
    stage.arrive(3);
    let expected = [assign(1, p(1, 1)), assign(2, p(2, 1)), assign_behind(3, p(1, 1))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_prefetched_request_that_moved_up_is_a_running_one() {
    let mut stage = one_behind_another();
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.cancel(2);
    assert_eq!(stage.take(), [cancel(2, p(1, 1)), cancelled(2, Started::Yes)]);
}

#[test]
fn a_prefetched_request_expires_without_a_claim_that_it_began() {
    let mut stage = brisk(calm(1));
    stage.arrive(1);
    let by = stage.now.after(secs(1));
    stage.arrive_as(2, |spec| spec.deadline = by);
    stage.forget();
    stage.advance(secs(1));
    let expected = [cancel(2, p(1, 1)), timed_out(2, Waiting::Worker, Started::Unknown)];
    assert_eq!(stage.take(), expected);
    stage.answer(2, 1, p(1, 1), NOT_BEGUN);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn a_prefetched_request_is_cancelled_without_harm_to_the_one_before_it() {
    let mut stage = one_behind_another();
    stage.cancel(2);
    assert_eq!(stage.take(), [cancel(2, p(1, 1)), cancelled(2, Started::Unknown)]);
    stage.advance(secs(22));
    assert_eq!(stage.take(), [], "it holds nobody up, so nobody is forced");
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    stage.advance(secs(5) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [term(p(1, 1))], "its grace began when it moved up");
}

#[test]
fn a_prefetched_request_that_lets_go_does_not_prolong_the_grace_of_the_running_one() {
    let mut stage = one_behind_another();
    stage.cancel(1);
    stage.advance(secs(3));
    stage.cancel(2);
    stage.answer(2, 1, p(1, 1), NOT_BEGUN);
    stage.forget();
    stage.advance(secs(2));
    assert_eq!(stage.take(), [term(p(1, 1))]);
}

#[test]
fn a_prefetched_request_moves_when_its_worker_dies() {
    let mut stage = one_behind_another();
    stage.exit(p(1, 1), Exit::Signal(11));
    assert_eq!(stage.take(), [crashed(1, Exit::Signal(11))]);
    stage.clear(p(1, 1));
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [spawn(p(1, 2)), assign_again(2, 2, 0, p(1, 2))]);
}

/// Two workers; request 3 lies behind request 1 on the first, the second is free.
fn one_behind_another_beside_an_idle_worker() -> Stage {
    let mut stage = brisk(calm(2));
    for id in 1..=3 {
        stage.arrive(id);
    }
    stage.complete(2, p(2, 1));
    stage.forget();
    stage
}

#[test]
fn a_prefetched_request_moves_after_a_while_when_another_worker_is_idle() {
    let mut stage = one_behind_another_beside_an_idle_worker();
    stage.advance(ms(5) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [withdraw(3, p(1, 1))]);
    stage.answer(3, 1, p(1, 1), NOT_BEGUN);
    assert_eq!(stage.take(), [assign_again(3, 2, 0, p(2, 1))]);
    stage.answer(3, 2, p(2, 1), Answer::Completed);
    assert_eq!(stage.take(), [answered(3)]);
    assert_eq!(stage.pool.view(stage.now).counters.moved, 1);
}

#[test]
fn a_prefetched_request_that_began_before_it_was_called_back_stays() {
    let mut stage = one_behind_another_beside_an_idle_worker();
    stage.advance(ms(5));
    stage.forget();
    stage.complete(1, p(1, 1));
    stage.complete(3, p(1, 1));
    assert_eq!(stage.take(), [begin(3, p(1, 1)), answered(1), answered(3)]);
}

#[test]
fn a_prefetched_request_can_be_cancelled_while_it_is_called_back() {
    let mut stage = one_behind_another_beside_an_idle_worker();
    stage.advance(ms(5));
    stage.forget();
    stage.cancel(3);
    let deeds = stage.take();
    assert_eq!(deeds, [cancel(3, p(1, 1)), cancelled(3, Started::Unknown)], "also if it has begun");
    stage.answer(3, 1, p(1, 1), NOT_BEGUN);
    assert_eq!(stage.take(), [], "what was cancelled does not move");
}

#[test]
fn a_prefetched_request_stays_while_no_other_worker_is_idle() {
    let mut stage = brisk(calm(2));
    for id in 1..=3 {
        stage.arrive(id);
    }
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), []);
}

#[test]
fn nothing_is_prefetched_on_a_process_that_does_not_give_back() {
    let mut stage = Stage::started(calm(1));
    let ready = Ready { gives_back: false, ..READY };
    stage.feed(Event::ProcessReady { process: p(1, 1), ready });
    stage.arrive(1_000);
    stage.complete(1_000, p(1, 1));
    stage.forget();
    stage.arrive(1);
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
}

#[test]
fn each_prefetched_request_waits_its_own_while_before_it_moves() {
    let mut stage = brisk(Settings { prefetch_below: ms(50), ..calm(2) });
    for id in 1..=3 {
        stage.arrive(id);
    }
    stage.advance(ms(3));
    stage.complete(1, p(1, 1));
    stage.arrive(4);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.pool.request(RequestId(4)), Some((Some(p(1, 1)), 1)), "behind request 3");
    stage.forget();
    stage.advance(ms(4));
    assert_eq!(stage.take(), [], "request 3 was sent seven milliseconds ago, request 4 only four");
    stage.advance(ms(6));
    assert_eq!(stage.take(), [withdraw(4, p(1, 1))]);
}

#[test]
fn nothing_is_prefetched_on_a_worker_with_a_leased_place() {
    let mut stage = brisk(Settings { capacity: 2, ..calm(1) });
    stage.ask_lease(1, 1);
    stage.arrive(1);
    stage.arrive(2);
    assert_eq!(stage.take(), [grant(1, &[p(1, 1)]), assign(1, p(1, 1))]);
}

#[test]
fn later_requests_are_not_prefetched_past_one_that_waits_for_this_worker() {
    let mut stage = brisk(calm(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.arrive_for(3, Target::Worker(WorkerId(1)));
    for id in 4..=6 {
        stage.arrive(id);
    }
    stage.forget();
    stage.complete(1, p(1, 1));
    stage.complete(2, p(1, 1));
    let deeds = stage.take();
    let begun =
        deeds.iter().any(|deed| matches!(deed, Command::Assign { request: RequestId(3), .. }));
    assert!(begun, "both that came before it are done: {deeds:?}");
}

#[test]
fn a_closed_stream_moves_what_was_not_begun() {
    let mut stage = one_behind_another();
    stage.feed(Event::StreamClosed { process: p(1, 1) });
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.crash(p(1, 1));
    stage.forget();
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [assign_again(2, 2, 0, p(1, 2))]);
}

#[test]
fn one_that_moved_up_may_begin_and_is_told_so_once() {
    let mut stage = brisk(Settings { prefetch: 2, ..calm(1) });
    for id in 1..=3 {
        stage.arrive(id);
    }
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [begin(2, p(1, 1)), answered(1)]);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [begin(3, p(1, 1)), answered(2)]);
    stage.complete(3, p(1, 1));
    assert_eq!(stage.take(), [answered(3)], "nobody is left to begin");
}

#[test]
fn on_a_larger_process_the_first_behind_begins_whoever_is_done() {
    for done in [1, 2] {
        let mut stage = brisk(Settings { capacity: 2, ..calm(1) });
        for id in 1..=3 {
            stage.arrive(id);
        }
        stage.forget();
        stage.complete(done, p(1, 1));
        assert_eq!(stage.take(), [begin(3, p(1, 1)), answered(done)]);
    }
}

#[test]
fn one_that_had_a_free_place_from_the_start_is_not_told_to_begin() {
    let mut stage = brisk(Settings { capacity: 2, ..calm(1) });
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn one_that_nobody_waits_for_any_more_is_not_told_to_begin() {
    let mut stage = one_behind_another();
    stage.cancel(2);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn one_behind_that_is_given_back_lets_nobody_begin() {
    let mut stage = brisk(Settings { prefetch: 2, ..calm(1) });
    for id in 1..=3 {
        stage.arrive(id);
    }
    stage.cancel(2);
    stage.forget();
    stage.answer(2, 1, p(1, 1), NOT_BEGUN);
    assert_eq!(stage.take(), [], "the first still runs");
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [begin(3, p(1, 1)), answered(1)]);
}

#[test]
fn a_cancelled_one_that_lets_go_lets_the_next_begin() {
    let mut stage = one_behind_another();
    stage.cancel(1);
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: true });
    assert_eq!(stage.take(), [begin(2, p(1, 1))]);
}
