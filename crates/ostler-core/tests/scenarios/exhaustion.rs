//! Workers paused for want of resources: by the system, and resumed by it alone.

use ostler_core::{
    Event, Notice, Recording, Reply, Settings, SpawnFailure, Status, Trigger, WorkerId,
};

use crate::support::*;

/// A pool of one whose first spawn was refused by the system.
fn exhausted() -> Stage {
    let mut stage = Stage::started(calm(1));
    stage.forget();
    stage.fail_spawn(p(1, 1), SpawnFailure::Exhausted);
    assert_eq!(stage.status(1), Status::Paused);
    stage
}

#[test]
fn the_pause_and_the_resumption_are_stored_with_their_reason() {
    let mut stage = exhausted();
    stage.advance(ms(200));
    let triggers: Vec<_> = stage.records().into_iter().map(|(_, change)| change.trigger).collect();
    assert_eq!(triggers, [Trigger::PauseExhausted, Trigger::Resume]);
    assert_eq!(Trigger::PauseExhausted.name(), "resource_exhausted");
}

#[test]
fn each_further_refusal_doubles_the_wait() {
    let mut stage = exhausted();
    for (generation, delay) in [(2, 200), (3, 400), (4, 800), (5, 1_600)] {
        let told = Notice::RestartDelayed { worker: WorkerId(1), delay: ms(delay) };
        assert!(stage.notices().contains(&told), "{delay} ms");
        stage.advance(ms(delay) - ms(1));
        assert_eq!((stage.status(1), stage.take()), (Status::Paused, vec![]));
        stage.advance(ms(1));
        assert_eq!(
            (stage.status(1), stage.take()),
            (Status::Running, vec![spawn(p(1, generation))])
        );
        stage.fail_spawn(p(1, generation), SpawnFailure::Exhausted);
    }
}

#[test]
fn the_wait_is_bounded() {
    let mut stage = exhausted();
    for generation in 2..20 {
        stage.advance(secs(30));
        stage.fail_spawn(p(1, generation), SpawnFailure::Exhausted);
    }
    stage.forget();
    stage.advance(secs(30));
    assert_eq!(stage.take(), [spawn(p(1, 20))]);
}

#[test]
fn requests_wait_until_the_pressure_ends() {
    let mut stage = exhausted();
    stage.arrive(1);
    stage.advance(ms(200));
    stage.forget();
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [assign(1, p(1, 2))]);
    assert_eq!(stage.counters().restarts_unplanned, 0);
}

#[test]
fn others_serve_on_meanwhile() {
    let mut stage = Stage::started(calm(2));
    stage.become_ready(p(1, 1));
    stage.fail_spawn(p(2, 1), SpawnFailure::Exhausted);
    stage.forget();
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
}

#[test]
fn a_person_may_end_the_system_s_pause_early() {
    let mut stage = exhausted();
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), spawn(p(1, 2))]);
    stage.advance(secs(10));
    assert_eq!(stage.take(), [], "and the system does not do it again");
}

#[test]
fn a_person_s_pause_after_the_system_s_is_a_person_s() {
    let mut stage = exhausted();
    stage.resume(1);
    stage.pause(1);
    stage.fail_spawn(p(1, 2), SpawnFailure::Exhausted);
    stage.forget();
    stage.advance(secs(600));
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Paused));
}

#[test]
fn a_person_s_pause_of_a_starting_worker_is_kept_when_its_spawn_is_refused() {
    let mut stage = Stage::started(calm(1));
    stage.pause(1);
    stage.fail_spawn(p(1, 1), SpawnFailure::Exhausted);
    stage.forget();
    stage.advance(secs(600));
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Paused));
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), spawn(p(1, 2))]);
}

#[test]
fn a_person_s_pause_of_a_paused_worker_is_refused_as_any_other() {
    let mut stage = exhausted();
    let order = stage.pause(1);
    let replied = stage.take();
    let allowed = Status::Paused.allowed();
    let (from, to) = (Status::Paused, Status::Paused);
    assert_eq!(replied, [reply(order, Reply::Illegal { from, to, allowed })]);
}

#[test]
fn a_paused_worker_may_be_terminated_and_is_made_up_for() {
    let mut stage = exhausted();
    let order = stage.terminate(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Terminated), spawn(p(2, 1))]);
    stage.advance(secs(10));
    assert_eq!(stage.take(), [], "the old one's wait ended with it");
}

#[test]
fn a_spawn_refused_during_the_shutdown_pauses_nobody() {
    let mut stage = Stage::started(calm(1));
    stage.shut_down();
    stage.forget();
    stage.fail_spawn(p(1, 1), SpawnFailure::Exhausted);
    assert_eq!(stage.take(), [ostler_core::Command::Stopped]);
    assert_eq!(stage.records(), []);
}

#[test]
fn a_program_that_cannot_be_run_is_no_want_of_resources() {
    let mut stage = Stage::started(calm(1));
    stage.forget();
    stage.fail_spawn(p(1, 1), SpawnFailure::Broken);
    assert_eq!((stage.status(1), stage.take()), (Status::Running, vec![spawn(p(1, 2))]));
    assert_eq!(stage.counters().restarts_unplanned, 1);
}

#[test]
fn an_open_breaker_holds_the_resumption_back() {
    let mut stage = Stage::started(Settings { restart_max: 0, ..calm(2) });
    stage.fail_spawn(p(2, 1), SpawnFailure::Exhausted);
    stage.crash(p(1, 1));
    stage.forget();
    stage.advance(secs(29));
    assert_eq!((stage.take(), stage.status(2)), (vec![], Status::Paused));
}

#[test]
fn a_spawn_refused_while_a_pause_is_being_stored_spends_no_budget() {
    let mut stage = Stage::started(Settings { restart_max: 0, ..calm(1) });
    stage.records();
    stage.store = Store::Silent;
    stage.pause(1);
    stage.fail_spawn(p(1, 1), SpawnFailure::Exhausted);
    stage.store = Store::Answers(Recording::Stored);
    let (record, _) = stage.records()[0];
    stage.feed(Event::Recorded { record, result: Recording::Stored });
    assert_eq!(stage.status(1), Status::Paused, "as the person wished");
    assert_eq!(stage.counters().restarts_unplanned, 0);
}
