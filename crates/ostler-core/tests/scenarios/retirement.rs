//! Workers that go though they did nothing wrong: too old, too much used, too large.

use std::collections::BTreeSet;

use ostler_core::{
    Answer, Command, Event, Exit, LossReason, Notice, Outcome, Refusal, Reply, Retirement,
    Settings, Started, Status, StopReason, Target, Time, WorkerId,
};

use crate::support::*;

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

/// Processes that serve for 100 s, to the moment.
fn aging(size: u32) -> Settings {
    Settings { ttl: Some(secs(100)), ttl_jitter: 0.0, ..no_prefetch(size) }
}

fn used_up_after(requests: u64, size: u32) -> Settings {
    Settings { max_requests: Some(requests), ..no_prefetch(size) }
}

fn limited(size: u32) -> Settings {
    Settings { max_memory: Some(1_000), max_memory_hard: Some(2_000), ..no_prefetch(size) }
}

fn measure(stage: &mut Stage, worker: u64, bytes: u64) {
    stage.feed(Event::MemoryMeasured { process: p(worker, 1), bytes });
}

fn retiring(worker: u64, reason: Retirement) -> Notice {
    Notice::Retiring { worker: WorkerId(worker), reason }
}

/// Plays the workers until nothing is left to do: those who are spawned become ready, those who
/// are asked to go leave.
fn play(stage: &mut Stage) {
    loop {
        let deeds = stage.take();
        if deeds.is_empty() {
            return;
        }
        for deed in deeds {
            match deed {
                Command::Spawn { process, .. } => stage.become_ready(process),
                Command::AskShutdown { process } | Command::Terminate { process } => {
                    stage.leave(process);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_process_that_served_long_enough_is_replaced() {
    let mut stage = Stage::ready(aging(1));
    stage.advance(secs(100) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
    assert_eq!(stage.told(&retiring(1, Retirement::Ttl)), 1);
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))], "it serves until its successor is ready");
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), []);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    let reason = StopReason::Retired(Retirement::Ttl);
    assert_eq!(stage.told(&Notice::Stopping { process: p(1, 1), reason }), 1);
    let stored = stage.records().into_iter().map(|(_, change)| change);
    let ended: Vec<_> = stored.filter(|change| change.to == Status::Completed).collect();
    assert!(matches!(ended[..], [change] if change.retirement == Some(Retirement::Ttl)));
}

/// When the first process of a pool of one is to be replaced.
fn end_of(seed: u64) -> Time {
    let ttl_jitter = 0.1;
    let mut stage = Stage::ready(Settings { seed, ttl_jitter, ..aging(1) });
    while stage.take().is_empty() {
        let due = stage.pool.next_deadline().expect("a process has its time");
        stage.advance(due.since(stage.now));
    }
    stage.now
}

#[test]
fn the_time_of_a_process_varies_within_its_bounds() {
    let ends: BTreeSet<Time> = (0..100).map(end_of).collect();
    let (first, last) = (ends.first().expect("some"), ends.last().expect("some"));
    assert!(*first >= Time::ZERO.after(secs(90)), "{first:?}");
    assert!(*last <= Time::ZERO.after(secs(110)), "{last:?}");
    assert!(ends.len() > 90, "those who came together do not go together");
    assert!(*first < Time::ZERO.after(secs(93)) && *last > Time::ZERO.after(secs(107)));
}

#[test]
fn the_next_process_of_a_worker_has_its_own_time() {
    let mut stage = Stage::ready(aging(1));
    stage.advance(secs(60));
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.forget();
    stage.advance(secs(99));
    assert_eq!(stage.take(), []);
    stage.advance(secs(1));
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
}

#[test]
fn a_storm_of_old_workers_passes_a_few_at_a_time() {
    for retire_max in [1, 2, 3] {
        let mut stage = Stage::ready(Settings { retire_max, start_batch: 8, ..aging(8) });
        stage.advance(secs(100));
        let mut rounds = 0;
        loop {
            let deeds = stage.take();
            if deeds.is_empty() {
                break;
            }
            rounds += 1;
            let known = stage.pool.workers().count();
            assert!(known <= 8 + retire_max as usize, "{retire_max}: {known}");
            let leaving = stage.pool.workers().filter(|worker| worker.retiring).count();
            assert!(leaving <= retire_max as usize, "{retire_max}: {leaving} leave");
            let serving = stage.pool.workers().filter(|worker| {
                !worker.retiring && worker.phase == Some(ostler_core::Phase::Ready)
            });
            assert!(serving.count() >= 8, "{retire_max}: nobody leaves before another one came");
            for deed in deeds {
                match deed {
                    Command::Spawn { process, .. } => stage.become_ready(process),
                    Command::AskShutdown { process } => stage.leave(process),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(rounds > 2, "{rounds}");
        let ids: Vec<_> = stage.pool.workers().map(|worker| worker.id.0).collect();
        assert_eq!(ids, (9..=16).collect::<Vec<_>>(), "{retire_max}");
    }
}

#[test]
fn a_process_that_answered_often_enough_is_replaced() {
    let mut stage = Stage::ready(used_up_after(3, 1));
    for id in 1..=2 {
        stage.arrive(id);
        stage.complete(id, p(1, 1));
    }
    stage.forget();
    stage.arrive(3);
    assert_eq!(stage.take(), [assign(3, p(1, 1))]);
    stage.complete(3, p(1, 1));
    assert_eq!(stage.take(), [answered(3), spawn(p(2, 1))]);
    assert_eq!(stage.told(&retiring(1, Retirement::MaxRequests)), 1);
    assert_eq!(stage.view(1).served, 3);
    stage.arrive(4);
    stage.complete(4, p(1, 1));
    assert_eq!(stage.take(), [assign(4, p(1, 1)), answered(4)], "nobody waits for the successor");
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
}

#[test]
fn every_outcome_counts() {
    type End = fn(&mut Stage);
    let ends: [(&str, End); 6] = [
        ("completed", |stage| stage.complete(1, p(1, 1))),
        ("failed", |stage| stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: false })),
        ("failed for now", |stage| {
            stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
        }),
        ("after chunks", |stage| stage.answer_after_chunks(1, p(1, 1), Answer::Completed)),
        ("cancelled", |stage| {
            stage.cancel(1);
            stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: true });
        }),
        ("out of time", |stage| {
            stage.advance(secs(5));
            stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: true });
        }),
    ];
    for (name, end) in ends {
        let mut stage = Stage::ready(used_up_after(1, 1));
        let by = stage.now.after(secs(5));
        stage.arrive_as(1, |spec| spec.deadline = by);
        stage.forget();
        end(&mut stage);
        assert!(stage.take().contains(&spawn(p(2, 1))), "{name}");
    }
}

#[test]
fn one_that_was_cancelled_counts_when_its_worker_has_let_go_of_it() {
    let mut stage = Stage::ready(used_up_after(1, 1));
    stage.arrive(1);
    stage.forget();
    stage.cancel(1);
    assert_eq!(stage.take(), [cancel(1, p(1, 1)), cancelled(1, Started::Yes)]);
    stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: true });
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
}

#[test]
fn the_next_process_counts_anew() {
    let mut stage = Stage::ready(used_up_after(2, 1));
    stage.arrive(1);
    stage.complete(1, p(1, 1));
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.forget();
    stage.arrive(2);
    stage.complete(2, p(1, 2));
    assert_eq!(stage.take(), [assign(2, p(1, 2)), answered(2)]);
}

#[test]
fn a_pool_that_is_used_up_all_the_time_loses_nobody() {
    let settings = Settings { queue_timeout: secs(600), ..used_up_after(10, 2) };
    let mut stage = Stage::ready(settings);
    let mut ended = 0;
    let mut next = 9;
    (1..=8).for_each(|id| stage.arrive(id));
    while ended < 100 {
        let deeds = stage.take();
        assert!(!deeds.is_empty(), "it goes on: {ended}");
        for deed in deeds {
            match deed {
                Command::Spawn { process, .. } => stage.become_ready(process),
                Command::AskShutdown { process } => stage.leave(process),
                Command::Assign { request, attempt, process, .. } => {
                    stage.advance(ms(1));
                    stage.answer(request.0, attempt, process, Answer::Completed);
                }
                Command::Resolve { outcome, .. } => {
                    assert_eq!(outcome, Outcome::Answered);
                    ended += 1;
                    stage.arrive(next);
                    next += 1;
                }
                other => panic!("{other:?}"),
            }
            assert!(stage.pool.workers().count() <= 3, "one too many at a time");
        }
    }
    let youngest = stage.pool.workers().last().expect("there are workers").id.0;
    assert!(youngest >= 9, "about ten have come: {youngest}");
}

#[test]
fn a_process_that_grew_too_large_is_replaced_after_its_request() {
    let mut stage = Stage::ready(limited(1));
    stage.arrive(1);
    stage.forget();
    measure(&mut stage, 1, 999);
    assert_eq!((stage.take(), stage.view(1).memory), (vec![], 999));
    measure(&mut stage, 1, 1_000);
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
    assert_eq!(stage.told(&retiring(1, Retirement::Memory)), 1);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), []);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    stage.leave(p(1, 1));
    assert_eq!(stage.counters().restarts_unplanned, 0);
}

#[test]
fn a_process_far_too_large_is_killed_at_once() {
    let mut stage = Stage::ready(limited(1));
    stage.arrive(1);
    stage.forget();
    measure(&mut stage, 1, 2_000);
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.crash(p(1, 1));
    let reason = LossReason::Stopped(StopReason::MemoryExceeded);
    let exit = Exit::Signal(11);
    let lost = Outcome::Lost { exit, reason, started: Started::Unknown };
    assert_eq!(stage.take(), [resolve(1, lost), spawn(p(1, 2))]);
    assert_eq!(stage.counters().restarts_unplanned, 1);
}

#[test]
fn one_that_is_being_replaced_for_its_size_may_still_be_killed_for_it() {
    let mut stage = Stage::ready(limited(1));
    measure(&mut stage, 1, 1_500);
    stage.forget();
    measure(&mut stage, 1, 2_500);
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.crash(p(1, 1));
    stage.become_ready(p(2, 1));
    play(&mut stage);
    assert_eq!(stage.pool.workers().count(), 1);
}

#[test]
fn without_a_limit_any_size_will_do() {
    let mut stage = Stage::ready(no_prefetch(1));
    measure(&mut stage, 1, u64::MAX);
    assert_eq!(stage.take(), []);
}

#[test]
fn a_size_of_an_older_process_is_dropped_and_counted() {
    let mut stage = Stage::ready(limited(1));
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.forget();
    let stale = stage.stale();
    measure(&mut stage, 1, 5_000);
    assert_eq!((stage.take(), stage.stale()), (vec![], stale + 1));
}

#[test]
fn the_first_reason_to_go_is_the_one_that_is_told() {
    let settings = Settings { max_memory: Some(1_000), max_requests: Some(1), ..aging(1) };
    let mut stage = Stage::ready(settings);
    measure(&mut stage, 1, 1_000);
    stage.arrive(1);
    stage.complete(1, p(1, 1));
    stage.advance(secs(200));
    let told = stage
        .notices()
        .into_iter()
        .filter(|notice| matches!(notice, Notice::Retiring { worker: WorkerId(1), .. }));
    assert_eq!(told.collect::<Vec<_>>(), [retiring(1, Retirement::Memory)]);
}

#[test]
fn one_whose_turn_has_not_come_is_not_replaced_after_a_crash() {
    let mut stage = Stage::ready(Settings { start_batch: 2, ..limited(2) });
    measure(&mut stage, 1, 1_000);
    measure(&mut stage, 2, 1_000);
    stage.crash(p(2, 1));
    stage.become_ready(p(2, 2));
    stage.become_ready(p(3, 1));
    stage.leave(p(1, 1));
    stage.forget();
    stage.advance(secs(60));
    assert_eq!(stage.take(), [], "the new process is as good as a new worker");
    let view = stage.view(2);
    assert_eq!((view.generation, view.retirement), (2, None));
}

#[test]
fn under_an_open_breaker_nobody_is_replaced_and_afterwards_all_are() {
    let mut stage = Stage::ready(Settings { restart_max: 0, ..limited(2) });
    stage.crash(p(2, 1));
    stage.forget();
    measure(&mut stage, 1, 1_000);
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    stage.complete(1, p(1, 1));
    stage.advance(secs(30));
    assert_eq!(stage.take(), [answered(1), spawn(p(3, 1))], "the probe");
    stage.become_ready(p(3, 1));
    play(&mut stage);
    assert_eq!(stage.status(1), Status::Completed);
    assert_eq!(stage.pool.workers().count(), 2);
}

#[test]
fn a_successor_that_came_to_nothing_is_tried_again_when_there_is_a_reason_again() {
    let mut stage = Stage::ready(used_up_after(1, 1));
    stage.arrive(1);
    stage.complete(1, p(1, 1));
    stage.terminate(2);
    stage.crash(p(2, 1));
    stage.forget();
    stage.arrive(2);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [assign(2, p(1, 1)), answered(2), spawn(p(3, 1))]);
}

#[test]
fn one_whose_successor_came_to_nothing_has_its_time_again() {
    let mut stage = Stage::ready(aging(1));
    stage.advance(secs(100));
    stage.terminate(2);
    stage.crash(p(2, 1));
    stage.forget();
    stage.advance(secs(99));
    assert_eq!(stage.take(), []);
    stage.advance(secs(1));
    assert_eq!(stage.take(), [spawn(p(3, 1))]);
}

#[test]
fn a_process_on_its_way_out_grows_neither_too_old_nor_too_large() {
    let mut stage = Stage::ready(Settings { max_memory: Some(1_000), ..aging(1) });
    stage.arrive(1);
    stage.advance(secs(90));
    stage.taint(p(1, 1));
    stage.forget();
    measure(&mut stage, 1, 5_000);
    stage.advance(secs(15));
    assert_eq!((stage.take(), stage.view(1).retirement), (vec![], None));
}

#[test]
fn a_dedicated_worker_gets_its_next_process_instead_of_a_successor() {
    let mut stage = Stage::ready(aging(1));
    let own = stage.add_dedicated();
    stage.arrive_for(1, Target::Worker(WorkerId(own)));
    stage.forget();
    stage.advance(secs(100));
    assert_eq!(stage.take(), [spawn(p(3, 1))], "that is for the other one");
    stage.arrive_for(2, Target::Worker(WorkerId(own)));
    stage.complete(1, p(own, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(own, 1))]);
    stage.become_ready(p(3, 1));
    stage.leave(p(own, 1));
    stage.become_ready(p(own, 2));
    assert!(stage.take().contains(&assign(2, p(own, 2))), "whoever waited is served");
    assert_eq!(stage.status(own), Status::Running);
}

#[test]
fn a_dedicated_worker_that_is_too_old_finishes_its_long_request_first() {
    let mut stage = Stage::ready(aging(1));
    let own = stage.add_dedicated();
    stage.arrive_for(1, Target::Worker(WorkerId(own)));
    stage.forget();
    stage.advance(secs(1_000));
    let deeds = stage.take();
    assert!(!deeds.contains(&ask(p(own, 1))) && !deeds.contains(&term(p(own, 1))), "{deeds:?}");
    stage.complete(1, p(own, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(own, 1))]);
}

#[test]
fn a_request_longer_than_any_drain_keeps_its_worker() {
    let mut stage = Stage::ready(aging(1));
    stage.arrive(1);
    stage.forget();
    stage.advance(secs(100));
    stage.become_ready(p(2, 1));
    stage.advance(secs(95));
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
}

#[test]
fn one_that_leaves_and_is_to_complete_by_order_finishes_first() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.recycle(1);
    stage.become_ready(p(2, 1));
    stage.forget();
    let order = stage.complete_worker(1);
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Running));
    stage.complete(1, p(1, 1));
    let expected = [answered(1), done(order, 1, Status::Completed), ask(p(1, 1))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_pool_that_ends_replaces_nobody() {
    let settings = Settings { max_memory: Some(1_000), max_requests: Some(1), ..aging(1) };
    let mut stage = Stage::ready(settings);
    stage.advance(secs(80));
    stage.arrive(1);
    stage.shut_down();
    stage.forget();
    measure(&mut stage, 1, 5_000);
    stage.advance(secs(25));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    let retired = |notice: &Notice| matches!(notice, Notice::Retiring { .. });
    assert!(!stage.notices().iter().any(retired));
}

#[test]
fn the_end_of_the_pool_in_the_middle_of_a_replacement_leaves_nobody() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.recycle(1);
    stage.arrive(2);
    stage.forget();
    stage.shut_down();
    assert_eq!(stage.take(), [refuse(2, Refusal::ShuttingDown), term(p(2, 1))]);
    stage.leave(p(2, 1));
    stage.complete(1, p(1, 1));
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1)), Command::Stopped]);
    let order = stage.recycle_all();
    assert_eq!(stage.take(), [reply(order, Reply::ShuttingDown)]);
}

#[test]
fn one_that_is_paused_when_its_successor_comes_leaves_when_it_is_resumed() {
    let mut stage = Stage::ready(aging(1));
    stage.advance(secs(100));
    stage.pause(1);
    stage.become_ready(p(2, 1));
    stage.forget();
    stage.advance(secs(30));
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Paused));
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), ask(p(1, 1))]);
}

#[test]
fn a_store_that_is_silent_delays_an_end_and_loses_nobody() {
    let mut stage = Stage::ready(aging(1));
    stage.advance(secs(100));
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [spawn(p(2, 1)), ask(p(1, 1))]);
    stage.leave(p(1, 1));
    stage.store = Store::Silent;
    stage.advance(secs(100));
    assert_eq!(stage.take(), [], "the next one is not stored yet");
    stage.arrive(1);
    stage.complete(1, p(2, 1));
    assert_eq!(stage.take(), [assign(1, p(2, 1)), answered(1)]);
}
