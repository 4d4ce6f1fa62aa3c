//! Second attempts: only of what the caller marked idempotent, only before a chunk was seen, only
//! within the deadline.

use ostler_core::{Answer, Event, Exit, Notice, RequestId, Settings, Started, Waiting};

use crate::support::*;

const RETRYABLE: Answer = Answer::Failed { retryable: true };

#[test]
fn a_crash_during_an_idempotent_request_is_retried_on_another_worker_at_once() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive_idempotent(1);
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(11));
    assert_eq!(stage.take(), [assign_again(1, 2, 1, p(2, 1))]);
    stage.answer(1, 2, p(2, 1), Answer::Completed);
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn retryable_errors_are_retried_after_50_100_and_200_ms() {
    let mut stage = Stage::ready(Settings { attempts_max: 4, ..calm(1) });
    stage.arrive_idempotent(1);
    stage.forget();
    for (attempt, delay) in [(1, 50), (2, 100), (3, 200)] {
        stage.answer(1, attempt, p(1, 1), RETRYABLE);
        stage.advance(ms(delay) - ms(1));
        assert_eq!(stage.take(), []);
        stage.advance(ms(1));
        assert_eq!(stage.take(), [assign_again(1, attempt + 1, attempt, p(1, 1))]);
    }
    stage.answer(1, 4, p(1, 1), RETRYABLE);
    assert_eq!(stage.take(), [answered(1)], "the fourth error is the answer");
}

#[test]
fn a_request_is_executed_three_times_at_most() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_idempotent(1);
    for attempt in [1, 2] {
        stage.answer(1, attempt, p(1, 1), RETRYABLE);
        stage.advance(secs(1));
    }
    stage.forget();
    stage.answer(1, 3, p(1, 1), RETRYABLE);
    stage.advance(secs(1));
    assert_eq!(stage.take(), [answered(1)]);
    assert_eq!(stage.pool.view(stage.now).counters.retried, 2);
}

#[test]
fn crashes_and_errors_use_up_the_same_attempts() {
    let mut stage = Stage::ready(calm(3));
    stage.arrive_idempotent(1);
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    stage.advance(ms(50));
    stage.exit(p(1, 1), Exit::Signal(6));
    stage.forget();
    stage.exit(p(2, 1), Exit::Signal(6));
    assert_eq!(stage.take(), [crashed(1, Exit::Signal(6))]);
}

#[test]
fn the_worker_is_free_for_others_between_two_attempts() {
    let mut stage = Stage::ready(Settings { prefetch: 0, ..calm(1) });
    stage.arrive_idempotent(1);
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    stage.forget();
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(2, p(1, 1))]);
    stage.advance(ms(50));
    assert_eq!(stage.take(), []);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), assign_again(1, 2, 1, p(1, 1))]);
}

#[test]
fn nothing_is_retried_after_a_chunk_was_delivered() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive_idempotent(1);
    stage.forget();
    stage.answer_after_chunks(1, p(1, 1), RETRYABLE);
    assert_eq!(stage.take(), [answered(1)]);

    stage.arrive_idempotent(2);
    stage.forget();
    let streamed = vec![RequestId(2)];
    stage.feed(Event::ProcessExited { process: p(1, 1), exit: Exit::Code(3), streamed });
    assert_eq!(stage.take(), [crashed(2, Exit::Code(3))]);
}

#[test]
fn what_is_not_idempotent_is_never_retried() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive(1);
    stage.forget();
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    assert_eq!(stage.take(), [answered(1)]);
    stage.arrive(2);
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(9));
    stage.advance(secs(30));
    assert_eq!(stage.take(), [crashed(2, Exit::Signal(9))]);
}

#[test]
fn an_error_that_is_not_retryable_is_the_answer() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_idempotent(1);
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: false });
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn an_error_whose_retry_would_come_after_the_deadline_is_the_answer() {
    let mut stage = Stage::ready(calm(1));
    let by = stage.now.after(ms(50));
    stage.arrive_as(1, |spec| (spec.idempotent, spec.deadline) = (true, by));
    stage.forget();
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn a_deadline_between_two_attempts_says_that_it_ran() {
    let mut stage = Stage::ready(calm(1));
    let by = stage.now.after(ms(60));
    stage.arrive_as(1, |spec| (spec.idempotent, spec.deadline) = (true, by));
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    stage.forget();
    stage.oversleep(ms(60));
    stage.feed(Event::DeadlineReached);
    assert_eq!(stage.take(), [timed_out(1, Waiting::Retry, Started::Yes)]);
}

#[test]
fn a_deadline_in_the_queue_after_a_first_attempt_says_that_it_ran() {
    let mut stage = Stage::ready(calm(1));
    let by = stage.now.after(secs(20));
    stage.arrive_as(1, |spec| (spec.idempotent, spec.deadline) = (true, by));
    stage.exit(p(1, 1), Exit::Signal(9));
    stage.forget();
    stage.advance(secs(20) - ms(1));
    assert_eq!(stage.take(), [], "the queue timeout is for those that never ran");
    stage.advance(ms(1));
    assert_eq!(stage.take(), [timed_out(1, Waiting::Queue, Started::Yes)]);
}

#[test]
fn a_deadline_during_the_second_attempt_asks_that_worker_to_let_go() {
    let mut stage = Stage::ready(calm(1));
    let by = stage.now.after(secs(20));
    stage.arrive_as(1, |spec| (spec.idempotent, spec.deadline) = (true, by));
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    stage.advance(ms(50));
    stage.forget();
    stage.advance(secs(20) - ms(50));
    let let_go = ostler_core::Command::Cancel {
        request: RequestId(1),
        attempt: 2,
        process: p(1, 1),
        withdraw: false,
    };
    assert_eq!(stage.take(), [let_go, timed_out(1, Waiting::Worker, Started::Yes)]);
}

#[test]
fn a_cancel_between_two_attempts_prevents_the_second() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_idempotent(1);
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    stage.forget();
    stage.cancel(1);
    stage.advance(secs(1));
    assert_eq!(stage.take(), [cancelled(1, Started::Yes)]);
}

#[test]
fn a_cancel_before_the_second_attempt_began_says_that_the_first_ran() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_idempotent(1);
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    stage.arrive(2);
    stage.advance(ms(50));
    assert_eq!(stage.pool.request(RequestId(1)), Some((Some(p(1, 1)), 2)), "behind request 2");
    stage.forget();
    stage.cancel(1);
    assert_eq!(stage.take().last(), Some(&cancelled(1, Started::Yes)));
}

#[test]
fn a_late_answer_of_the_first_attempt_does_not_end_the_second() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_idempotent(1);
    stage.answer(1, 1, p(1, 1), RETRYABLE);
    stage.advance(ms(50));
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::Completed);
    assert_eq!(stage.take(), []);
    assert_eq!(stage.notices(), [Notice::StaleDropped { process: p(1, 1) }]);
    assert_eq!(stage.stale(), 1);
    assert_eq!(stage.pool.request(RequestId(1)), Some((Some(p(1, 1)), 2)));
}
