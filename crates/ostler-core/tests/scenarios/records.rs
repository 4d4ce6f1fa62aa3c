//! What is stored before it takes effect, and a store that refuses, hesitates or stays silent.

use ostler_core::{
    Action, Change, Command, Event, Exit, RecordId, Recording, Reply, Settings, Status, StopReason,
    Trigger, WorkerId,
};

use crate::support::*;

fn record(worker: u64, seq: u64) -> RecordId {
    RecordId { worker: WorkerId(worker), seq }
}

fn settle(stage: &mut Stage, record: RecordId, result: Recording) {
    stage.feed(Event::Recorded { record, result });
}

/// A pool of one whose store will not answer by itself from now on.
fn before_a_silent_store(settings: Settings) -> Stage {
    let mut stage = Stage::ready(settings);
    stage.store = Store::Silent;
    stage
}

#[test]
fn a_pool_worker_is_stored_twice_before_its_process_is_spawned() {
    let mut stage = Stage::new(calm(1));
    stage.store = Store::Silent;
    stage.feed(Event::PoolStarted);
    let create = Change {
        from: None,
        to: Status::Idle,
        trigger: Trigger::Create,
        retirement: None,
        order: None,
    };
    assert_eq!(stage.records(), [(record(1, 1), create)]);
    settle(&mut stage, record(1, 1), Recording::Stored);
    let start = Change {
        from: Some(Status::Idle),
        to: Status::Running,
        trigger: Trigger::Start,
        retirement: None,
        order: None,
    };
    assert_eq!(stage.records(), [(record(1, 2), start)]);
    assert_eq!(stage.take(), []);
    settle(&mut stage, record(1, 2), Recording::Stored);
    assert_eq!(stage.take(), [spawn(p(1, 1))]);
}

#[test]
fn no_order_takes_effect_before_it_is_stored() {
    let w = WorkerId(1);
    let cases = [
        (Action::Pause { worker: w, freeze: true }, vec![Command::Freeze { process: p(1, 1) }]),
        (Action::Complete(w), vec![ask(p(1, 1))]),
        (Action::Terminate(w), vec![kill(p(1, 1))]),
    ];
    for (action, effect) in cases {
        let mut stage = before_a_silent_store(calm(1));
        stage.order(action);
        assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Running), "{action:?}");
        settle(&mut stage, record(1, 3), Recording::Stored);
        let deeds: Vec<_> = stage
            .take()
            .into_iter()
            .filter(|deed| !matches!(deed, Command::Reply { .. }))
            .collect();
        assert_eq!(deeds, effect, "{action:?}");
    }
}

#[test]
fn a_worker_that_may_be_paused_already_is_given_nothing() {
    let mut stage = before_a_silent_store(calm(1));
    stage.pause(1);
    stage.arrive(1);
    assert_eq!(stage.take(), []);
}

#[test]
fn a_refused_change_changes_nothing_and_is_replied() {
    let w = WorkerId(1);
    for action in
        [Action::Pause { worker: w, freeze: true }, Action::Complete(w), Action::Terminate(w)]
    {
        let mut stage = before_a_silent_store(calm(1));
        let before = stage.view(1);
        let order = stage.order(action);
        settle(&mut stage, record(1, 3), Recording::Refused);
        assert_eq!(stage.take(), [reply(order, Reply::StoreRefused)], "{action:?}");
        assert_eq!(stage.view(1), before, "{action:?}");
        stage.arrive(1);
        assert_eq!(stage.take(), [assign(1, p(1, 1))], "{action:?}");
        stage.advance(secs(60));
        assert_eq!(stage.take(), [], "{action:?} left a timer behind");
    }
}

#[test]
fn a_refused_creation_leaves_no_worker() {
    let mut stage = before_a_silent_store(calm(1));
    let order = stage.order(Action::Create);
    settle(&mut stage, record(2, 1), Recording::Refused);
    assert_eq!(stage.take(), [reply(order, Reply::StoreRefused)]);
    assert_eq!(stage.pool.worker(WorkerId(2)), None);
}

#[test]
fn what_was_queued_for_a_worker_runs_when_its_pause_is_refused() {
    let mut stage = before_a_silent_store(calm(1));
    let order = stage.pause(1);
    stage.arrive(1);
    settle(&mut stage, record(1, 3), Recording::Refused);
    assert_eq!(stage.take(), [reply(order, Reply::StoreRefused), assign(1, p(1, 1))]);
}

#[test]
fn a_refused_record_leaves_no_gap_in_the_sequence() {
    let mut stage = before_a_silent_store(calm(1));
    stage.pause(1);
    settle(&mut stage, record(1, 3), Recording::Refused);
    stage.pause(1);
    let numbers: Vec<_> = stage.records().into_iter().map(|(record, _)| record.seq).collect();
    assert_eq!(numbers, [3, 3]);
    settle(&mut stage, record(1, 3), Recording::Stored);
    stage.resume(1);
    assert_eq!(stage.records()[0].0, record(1, 4));
}

#[test]
fn an_unconfirmed_record_is_sent_again_unchanged_until_the_store_is_sure() {
    let mut stage = before_a_silent_store(calm(1));
    let order = stage.pause(1);
    let sent = stage.records();
    for _ in 0..3 {
        settle(&mut stage, record(1, 3), Recording::Unknown);
        stage.advance(ms(200) - ms(1));
        assert_eq!(stage.records(), []);
        stage.advance(ms(1));
        assert_eq!(stage.records(), sent);
    }
    assert_eq!(stage.take(), []);
    settle(&mut stage, record(1, 3), Recording::Stored);
    assert_eq!(stage.take(), [done(order, 1, Status::Paused)]);
    stage.advance(secs(60));
    assert_eq!((stage.records(), stage.take()), (vec![], vec![]));
}

#[test]
fn a_record_that_may_be_stored_is_not_taken_back_by_a_later_refusal() {
    let mut stage = before_a_silent_store(calm(1));
    let order = stage.pause(1);
    let sent = stage.records();
    settle(&mut stage, record(1, 3), Recording::Unknown);
    stage.advance(ms(200));
    assert_eq!(stage.records(), sent);
    settle(&mut stage, record(1, 3), Recording::Refused);
    assert_eq!(stage.take(), [], "only this sending was refused");
    stage.advance(ms(200));
    assert_eq!(stage.records(), sent);
    settle(&mut stage, record(1, 3), Recording::Stored);
    assert_eq!(stage.take(), [done(order, 1, Status::Paused)]);
}

#[test]
fn a_change_that_the_core_wants_is_sent_again_when_it_is_refused() {
    let mut stage = Stage::new(calm(1));
    stage.store = Store::Answers(Recording::Refused);
    stage.feed(Event::PoolStarted);
    let sent = stage.records();
    stage.advance(ms(200));
    assert_eq!(stage.records(), sent);
    stage.store = Store::Answers(Recording::Stored);
    stage.advance(ms(200));
    assert_eq!(stage.take(), [spawn(p(1, 1))]);
}

#[test]
fn a_confirmation_that_comes_twice_is_dropped_and_counted() {
    let mut stage = Stage::ready(calm(1));
    let before = stage.view(1);
    settle(&mut stage, record(1, 2), Recording::Stored);
    settle(&mut stage, record(1, 3), Recording::Refused);
    settle(&mut stage, record(99, 1), Recording::Stored);
    assert_eq!((stage.take(), stage.records()), (vec![], vec![]));
    assert_eq!(stage.view(1), before);
    assert_eq!(stage.stale(), 2);
}

#[test]
fn while_one_change_is_being_stored_no_other_is_taken() {
    let mut stage = before_a_silent_store(calm(1));
    stage.pause(1);
    stage.forget();
    let w = WorkerId(1);
    for action in [Action::Resume(w), Action::Complete(w), Action::Terminate(w), Action::Recycle(w)]
    {
        let order = stage.order(action);
        assert_eq!(stage.take(), [reply(order, Reply::InTransition)], "{action:?}");
    }
    assert_eq!(stage.records(), []);
}

#[test]
fn a_worker_whose_creation_is_being_stored_cannot_be_recycled() {
    let mut stage = Stage::new(calm(1));
    stage.store = Store::Silent;
    stage.feed(Event::PoolStarted);
    let order = stage.recycle(1);
    assert_eq!(stage.take(), [reply(order, Reply::InTransition)]);
}

#[test]
fn a_process_that_dies_while_a_pause_is_being_stored_is_not_forgotten() {
    let mut stage = before_a_silent_store(calm(1));
    stage.pause(1);
    stage.crash(p(1, 1));
    settle(&mut stage, record(1, 3), Recording::Refused);
    let deeds = stage.take();
    assert!(deeds.contains(&spawn(p(1, 2))), "{deeds:?}");
}

#[test]
fn a_refused_pause_does_not_shorten_a_backoff() {
    let mut stage = Stage::ready(calm(1));
    stage.crash(p(1, 1));
    stage.crash(p(1, 2));
    stage.store = Store::Silent;
    let order = stage.pause(1);
    stage.forget();
    settle(&mut stage, record(1, 3), Recording::Refused);
    stage.advance(ms(200) - ms(1));
    assert_eq!(stage.take(), [reply(order, Reply::StoreRefused)]);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [spawn(p(1, 3))]);
}

#[test]
fn a_refused_completion_does_not_strand_a_worker_in_its_backoff() {
    let mut stage = Stage::ready(calm(1));
    stage.crash(p(1, 1));
    stage.crash(p(1, 2));
    stage.store = Store::Silent;
    stage.complete_worker(1);
    settle(&mut stage, record(1, 3), Recording::Refused);
    stage.advance(secs(1));
    assert_eq!(stage.phase(1), Some(ostler_core::Phase::Starting));
}

#[test]
fn a_process_that_asks_to_retire_during_a_pause_that_is_refused_is_replaced() {
    let mut stage = before_a_silent_store(calm(1));
    stage.pause(1);
    stage.feed(Event::RetireAsked { process: p(1, 1) });
    stage.forget();
    settle(&mut stage, record(1, 3), Recording::Refused);
    let made = stage.records().into_iter().any(|(record, _)| record.worker == WorkerId(2));
    assert!(made, "it takes no new work, so it needs a successor");
}

#[test]
fn a_completion_that_takes_too_long_ends_in_termination() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.forget();
    let order = stage.complete_worker(1);
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [reply(order, Reply::TimedOut), kill(p(1, 1))]);
    assert_eq!(stage.status(1), Status::Terminated);
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), [stopped(1, Exit::Signal(9), StopReason::Terminated)]);
}

#[test]
fn a_start_that_takes_too_long_ends_in_termination() {
    let mut stage = Stage::ready(Settings { start_timeout: secs(60), ..calm(1) });
    stage.order(Action::Create);
    stage.order(Action::Start(WorkerId(2)));
    stage.forget();
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!((stage.take(), stage.status(2)), (vec![kill(p(2, 1))], Status::Terminated));
}

#[test]
fn a_start_that_succeeds_in_time_is_not_terminated_later() {
    let mut stage = Stage::ready(calm(1));
    let own = stage.add_dedicated();
    stage.advance(secs(60));
    assert_eq!((stage.take(), stage.status(own)), (vec![], Status::Running));
}

#[test]
fn a_pause_that_the_store_never_confirms_is_answered_and_ends_in_termination() {
    let mut stage = Stage::ready(calm(1));
    stage.store = Store::Answers(Recording::Unknown);
    let order = stage.pause(1);
    stage.advance(secs(29));
    assert_eq!(stage.take(), []);
    stage.advance(secs(2));
    assert_eq!(stage.take(), [reply(order, Reply::TimedOut)]);
    stage.store = Store::Answers(Recording::Stored);
    stage.advance(secs(1));
    assert_eq!((stage.take(), stage.status(1)), (vec![kill(p(1, 1))], Status::Terminated));
}

#[test]
fn a_completion_that_the_store_never_confirms_is_answered_once() {
    let mut stage = Stage::ready(Settings { record_retry: ms(190), ..calm(1) });
    stage.store = Store::Answers(Recording::Unknown);
    let order = stage.complete_worker(1);
    stage.advance(ms(29_700));
    assert_eq!(stage.take(), []);
    // The next try of the record and the end of the order's time are noticed together.
    stage.oversleep(ms(400));
    stage.feed(Event::DeadlineReached);
    stage.advance(secs(10));
    assert_eq!(stage.take(), [reply(order, Reply::TimedOut)]);
    stage.store = Store::Answers(Recording::Stored);
    stage.advance(secs(1));
    let again = stage.take().into_iter().any(|deed| matches!(deed, Command::Reply { .. }));
    assert!(!again, "nobody waits for it any more");
    assert!(stage.status(1).terminal());
}

#[test]
fn a_pause_to_which_the_store_says_nothing_at_all_is_answered_in_time() {
    let mut stage = before_a_silent_store(calm(1));
    let order = stage.pause(1);
    stage.advance(secs(31));
    assert_eq!(stage.take(), [reply(order, Reply::TimedOut)]);
}

#[test]
fn a_silent_store_is_not_asked_again_before_it_has_answered() {
    let mut stage = before_a_silent_store(calm(1));
    stage.pause(1);
    stage.forget();
    stage.advance(secs(120));
    assert_eq!(
        stage.records(),
        [],
        "of two answers the second would be taken for another change's"
    );
}
