//! After a crash: again at once, later, or not before the breaker allows it.

use ostler_core::{
    Command, Event, Exit, Lifecycle, Notice, Refusal, Settings, SpawnFailure, Status, Target,
    WorkerId,
};

use crate::support::*;

/// The first crash spends the budget.
fn without_budget(size: u32) -> Settings {
    Settings { restart_max: 0, prefetch: 0, ..calm(size) }
}

/// A pool whose workers have all failed, at the time zero.
fn failed(size: u32) -> Stage {
    let mut stage = Stage::ready(without_budget(size));
    for worker in 1..=u64::from(size) {
        stage.crash(p(worker, 1));
    }
    stage.forget();
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Failed);
    stage
}

fn running(stage: &Stage) -> usize {
    stage.pool.workers().filter(|w| !w.dedicated && w.status == Status::Running).count()
}

#[test]
fn the_first_restart_is_at_once_and_each_further_one_waits_twice_as_long() {
    let mut stage = Stage::ready(calm(1));
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    for (generation, delay) in [(2, 200), (3, 400), (4, 800), (5, 1_600)] {
        stage.notices();
        stage.crash(p(1, generation));
        let told = Notice::RestartDelayed { worker: WorkerId(1), delay: ms(delay) };
        assert!(stage.notices().contains(&told));
        stage.advance(ms(delay) - ms(1));
        assert_eq!(stage.take(), []);
        stage.advance(ms(1));
        assert_eq!(stage.take(), [spawn(p(1, generation + 1))]);
    }
}

#[test]
fn the_wait_never_exceeds_its_maximum() {
    let mut stage = Stage::ready(Settings { restart_max: 1_000, ..calm(1) });
    stage.crash(p(1, 1));
    for generation in 2..20 {
        stage.crash(p(1, generation));
        stage.advance(secs(30));
        assert_eq!(stage.view(1).generation, generation + 1);
    }
}

#[test]
fn an_answer_in_between_makes_the_next_crash_the_first_again() {
    let mut stage = Stage::ready(calm(1));
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.arrive(1);
    stage.complete(1, p(1, 2));
    stage.forget();
    stage.crash(p(1, 2));
    assert_eq!(stage.take(), [spawn(p(1, 3))]);
}

#[test]
fn a_crash_is_reported_and_a_planned_exit_is_not() {
    let mut stage = Stage::ready(calm(2));
    stage.exit(p(1, 1), Exit::Code(3));
    let crash = Notice::Crashed { process: p(1, 1), exit: Exit::Code(3) };
    assert!(stage.notices().contains(&crash));
    stage.complete_worker(2);
    stage.exit(p(2, 1), Exit::Code(3));
    let blamed = stage.notices().into_iter().any(|n| matches!(n, Notice::Crashed { .. }));
    assert!(!blamed);
}

#[test]
fn the_breaker_opens_with_the_first_restart_beyond_the_budget() {
    let mut stage = Stage::ready(calm(1));
    for generation in 1..=5 {
        stage.crash(p(1, generation));
        stage.advance(ms(1_600));
        assert_eq!(stage.phase(1), Some(ostler_core::Phase::Starting), "crash {generation}");
    }
    stage.forget();
    stage.crash(p(1, 6));
    let until = stage.now.after(secs(30));
    assert!(stage.notices().contains(&Notice::BreakerOpened { until }));
    assert_eq!(stage.status(1), Status::Failed);
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
}

#[test]
fn crashes_spread_over_time_never_open_the_breaker() {
    let mut stage = Stage::ready(calm(1));
    for generation in 1..=20 {
        stage.crash(p(1, generation));
        stage.advance(secs(30));
        stage.advance(secs(1));
        assert_eq!(stage.view(1).generation, generation + 1);
    }
    assert_eq!(stage.status(1), Status::Running);
}

#[test]
fn under_an_open_breaker_those_that_live_serve_on() {
    let mut stage = Stage::ready(without_budget(2));
    stage.crash(p(1, 1));
    assert_eq!((stage.status(1), stage.status(2)), (Status::Failed, Status::Running));
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Running);
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(2, 1))]);
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), [], "the failed one is not made up for before the cooldown");
}

#[test]
fn when_the_last_one_fails_those_who_wait_are_refused_at_once() {
    let mut stage = Stage::ready(without_budget(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.arrive_idempotent(3);
    stage.ask_lease(1, 1);
    stage.forget();
    stage.crash(p(1, 1));
    let expected = [
        crashed(1, Exit::Signal(11)),
        refuse(2, Refusal::PoolFailed),
        refuse(3, Refusal::PoolFailed),
        refuse_lease(1, Refusal::PoolFailed),
    ];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_failed_pool_refuses_at_once() {
    let mut stage = failed(1);
    stage.arrive(1);
    stage.ask_lease(1, 1);
    let expected = [refuse(1, Refusal::PoolFailed), refuse_lease(1, Refusal::PoolFailed)];
    assert_eq!(stage.take(), expected);
}

#[test]
fn after_the_cooldown_one_worker_is_made_and_when_it_is_ready_the_rest() {
    let mut stage = failed(3);
    stage.advance(secs(30));
    assert_eq!(stage.take(), [spawn(p(4, 1))]);
    stage.arrive(1);
    assert_eq!(stage.take(), [refuse(1, Refusal::PoolFailed)], "not before it is ready");
    stage.become_ready(p(4, 1));
    assert_eq!(stage.take(), [spawn(p(5, 1)), spawn(p(6, 1))]);
    assert!(stage.notices().contains(&Notice::BreakerClosed));
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Running);
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(2, p(4, 1))]);
}

#[test]
fn a_new_worker_that_dies_before_it_is_ready_opens_the_breaker_again() {
    let mut stage = failed(2);
    stage.advance(secs(30));
    stage.forget();
    stage.crash(p(3, 1));
    let until = stage.now.after(secs(30));
    assert!(stage.notices().contains(&Notice::BreakerOpened { until }));
    assert_eq!(stage.status(3), Status::Failed);
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [spawn(p(4, 1))]);
}

#[test]
fn a_closed_breaker_has_its_whole_budget_again() {
    let mut stage = Stage::ready(Settings { restart_max: 1, ..calm(1) });
    stage.crash(p(1, 1));
    stage.crash(p(1, 2));
    assert_eq!(stage.status(1), Status::Failed);
    stage.advance(secs(30));
    stage.become_ready(p(2, 1));
    stage.forget();
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [spawn(p(2, 2))]);
}

#[test]
fn one_that_was_starting_when_the_breaker_opened_may_still_serve() {
    let mut stage = Stage::started(without_budget(2));
    stage.crash(p(1, 1));
    stage.forget();
    stage.become_ready(p(2, 1));
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(2, 1))]);
}

#[test]
fn under_an_open_breaker_one_that_asked_to_retire_serves_on() {
    let mut stage = Stage::ready(without_budget(2));
    stage.crash(p(1, 1));
    stage.feed(Event::RetireAsked { process: p(2, 1) });
    stage.forget();
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(2, 1))], "no successor is to come for a while");
}

#[test]
fn a_request_for_a_worker_that_failed_is_refused() {
    let mut stage = Stage::ready(without_budget(2));
    stage.arrive_for(1, Target::Worker(WorkerId(1)));
    stage.arrive_for(2, Target::Worker(WorkerId(1)));
    stage.forget();
    stage.crash(p(1, 1));
    let expected = [crashed(1, Exit::Signal(11)), refuse(2, Refusal::WorkerNotServing)];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_dedicated_worker_does_not_hide_that_the_pool_failed() {
    let mut stage = Stage::ready(without_budget(1));
    let own = stage.add_dedicated();
    stage.crash(p(1, 1));
    stage.forget();
    stage.arrive(1);
    assert_eq!(stage.take(), [refuse(1, Refusal::PoolFailed)]);
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Failed);
    stage.arrive_for(2, Target::Worker(WorkerId(own)));
    assert_eq!(stage.take(), [assign(2, p(own, 1))]);
}

#[test]
fn those_who_wait_are_refused_when_the_last_living_worker_is_terminated() {
    let mut stage = Stage::ready(without_budget(2));
    stage.crash(p(1, 1));
    stage.arrive(1);
    stage.arrive(2);
    stage.terminate(2);
    stage.exit(p(2, 1), Exit::Signal(9));
    stage.clear(p(2, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&refuse(2, Refusal::PoolFailed)), "{deeds:?}");
}

#[test]
fn a_retried_request_that_finds_the_pool_failed_is_told_of_the_crash() {
    let mut stage = Stage::ready(without_budget(1));
    stage.arrive_idempotent(1);
    stage.forget();
    stage.crash(p(1, 1));
    let deeds = stage.take();
    let lost =
        matches!(deeds[..], [Command::Resolve { outcome: ostler_core::Outcome::Lost { .. }, .. }]);
    assert!(lost, "{deeds:?}");
}

#[test]
fn an_open_breaker_also_holds_back_a_worker_that_was_paused_for_want_of_resources() {
    let mut stage = Stage::started(without_budget(2));
    stage.fail_spawn(p(1, 1), SpawnFailure::Exhausted);
    stage.crash(p(2, 1));
    stage.forget();
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
}

/// Lets the cooldown pass, and every process do what it is told.
fn let_the_breaker_close(stage: &mut Stage) {
    stage.forget();
    stage.advance(secs(30));
    for _ in 0..3 {
        for deed in stage.take() {
            match deed {
                Command::Spawn { process, .. } => stage.become_ready(process),
                Command::AskShutdown { process } => stage.leave(process),
                _ => {}
            }
        }
    }
}

#[test]
fn a_failed_successor_does_not_make_the_pool_larger_after_the_cooldown() {
    let mut stage = Stage::ready(without_budget(1));
    stage.recycle(1);
    stage.crash(p(2, 1));
    assert_eq!((stage.status(1), stage.status(2)), (Status::Running, Status::Failed));
    let_the_breaker_close(&mut stage);
    assert_eq!(running(&stage), 1);
}

#[test]
fn a_failed_dedicated_worker_does_not_make_the_pool_larger_after_the_cooldown() {
    let mut stage = Stage::ready(without_budget(1));
    let own = stage.add_dedicated();
    stage.crash(p(own, 1));
    let_the_breaker_close(&mut stage);
    assert_eq!(running(&stage), 1);
    stage.crash(p(1, 1));
    assert_eq!(stage.status(1), Status::Failed, "the breaker is closed and can open again");
}
