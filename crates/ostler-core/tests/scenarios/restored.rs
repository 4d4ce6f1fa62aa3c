//! Workers that were there before the server.

use ostler_core::{Action, Event, RecordId, Reply, Restored, Settings, Status, Target, WorkerId};

use crate::support::*;

fn known(worker: u64, seq: u64, status: Status) -> Restored {
    Restored { worker: WorkerId(worker), seq, status }
}

/// A pool of one worker with a past.
fn after(next_worker: u64, restored: &[Restored]) -> Stage {
    let mut stage = Stage::new(Settings { start_batch: 8, ..calm(1) });
    stage.pool.restore(next_worker, restored);
    stage.feed(Event::PoolStarted);
    stage
}

#[test]
fn numbers_are_never_given_twice() {
    let mut stage = after(8, &[]);
    assert_eq!(stage.take(), [spawn(p(8, 1))]);
    let mut stage = after(2, &[known(11, 2, Status::Idle)]);
    assert_eq!(stage.take(), [spawn(p(12, 1))]);
}

#[test]
fn one_that_was_running_gets_a_process_and_serves_whoever_names_it() {
    let mut stage = after(5, &[known(4, 2, Status::Running)]);
    assert_eq!(stage.take(), [spawn(p(4, 1)), spawn(p(5, 1))]);
    stage.become_ready(p(4, 1));
    stage.forget();
    stage.arrive_for(1, Target::Worker(WorkerId(4)));
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(1, p(4, 1))], "nobody else is served by it");
}

#[test]
fn one_that_was_paused_stays_so_until_somebody_resumes_it() {
    let mut stage = after(5, &[known(4, 3, Status::Paused)]);
    assert_eq!(stage.take(), [spawn(p(5, 1))]);
    let order = stage.resume(4);
    assert_eq!(stage.take(), [done(order, 4, Status::Running), spawn(p(4, 1))]);
}

#[test]
fn one_that_was_idle_waits_for_its_start_and_its_trail_goes_on() {
    let mut stage = after(5, &[known(4, 7, Status::Idle)]);
    stage.forget();
    let order = stage.order(Action::Start(WorkerId(4)));
    assert_eq!(stage.take(), [done(order, 4, Status::Running), spawn(p(4, 1))]);
    let records: Vec<RecordId> = stage.records().iter().map(|(record, _)| *record).collect();
    assert_eq!(records.last(), Some(&RecordId { worker: WorkerId(4), seq: 8 }));
}

#[test]
fn those_that_have_ended_do_not_come_back() {
    let ended = [Status::Completed, Status::Failed, Status::Terminated];
    let restored: Vec<Restored> = (1..).zip(ended).map(|(n, status)| known(n, 3, status)).collect();
    let mut stage = after(9, &restored);
    assert_eq!(stage.take(), [spawn(p(9, 1))]);
    assert_eq!(stage.pool.workers().count(), 1);
}

#[test]
fn those_that_came_back_count_against_what_may_be_ordered() {
    let mut stage = Stage::new(Settings { dedicated_max: 1, ..calm(1) });
    stage.pool.restore(5, &[known(4, 1, Status::Idle)]);
    stage.feed(Event::PoolStarted);
    stage.forget();
    let order = stage.order(Action::Create);
    assert_eq!(stage.take(), [reply(order, Reply::DedicatedFull)]);
}
