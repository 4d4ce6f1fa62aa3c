//! Orders about the whole pool: pause, resume, drain, recycle.

use ostler_core::{
    Answer, Command, Exit, LeaseId, Lifecycle, Notice, Refusal, Reply, Settings, Started, Status,
    Target, Waiting, WorkerId,
};

use crate::support::*;

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

fn pool_done(order: ostler_core::OrderId) -> Command {
    reply(order, Reply::PoolDone)
}

/// A paused pool of one, with request 1 running.
fn paused() -> Stage {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.pause_all();
    stage.forget();
    stage
}

/// A pool of one that lets nobody in, with request 1 running.
fn draining() -> Stage {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.drain();
    stage.forget();
    stage
}

#[test]
fn in_a_paused_pool_what_runs_goes_on_and_what_comes_waits() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.forget();
    let order = stage.pause_all();
    assert_eq!(stage.take(), [pool_done(order)]);
    assert_eq!(stage.told(&Notice::PoolPaused), 1);
    assert!(stage.pool.view(stage.now).paused);
    stage.arrive(2);
    stage.arrive_in(3, 1, STRICT);
    stage.arrive_for(4, Target::Worker(WorkerId(2)));
    assert_eq!(stage.take(), []);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn a_resumed_pool_serves_those_who_wait_in_their_order() {
    let mut stage = paused();
    stage.arrive(2);
    stage.arrive(3);
    stage.arrive_as(4, |spec| spec.priority = 1);
    stage.complete(1, p(1, 1));
    stage.forget();
    let order = stage.resume_all();
    assert_eq!(stage.take(), [pool_done(order), assign(4, p(1, 1))]);
    assert_eq!(stage.told(&Notice::PoolResumed), 1);
    stage.complete(4, p(1, 1));
    assert_eq!(stage.take(), [answered(4), assign(2, p(1, 1))]);
}

#[test]
fn a_pool_that_is_paused_twice_is_paused_once() {
    let mut stage = paused();
    let order = stage.pause_all();
    assert_eq!((stage.take(), stage.notices()), (vec![pool_done(order)], vec![]));
    stage.resume_all();
    stage.forget();
    let order = stage.resume_all();
    assert_eq!((stage.take(), stage.notices()), (vec![pool_done(order)], vec![]));
}

#[test]
fn what_was_laid_behind_another_comes_back_when_the_pool_is_paused() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1_000);
    stage.complete(1_000, p(1, 1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    let order = stage.pause_all();
    assert_eq!(stage.take(), [withdraw(2, p(1, 1)), pool_done(order)]);
    stage.answer(2, 1, p(1, 1), Answer::Cancelled { started: false });
    assert_eq!(stage.take(), []);
    stage.complete(1, p(1, 1));
    stage.resume_all();
    assert!(stage.take().contains(&assign_again(2, 2, 0, p(1, 1))));
}

#[test]
fn those_who_wait_in_a_paused_pool_run_out_of_time_like_others() {
    let mut stage = paused();
    let by = stage.now.after(secs(3));
    stage.arrive_as(2, |spec| spec.deadline = by);
    stage.arrive(3);
    stage.advance(secs(3));
    assert_eq!(stage.take(), [timed_out(2, Waiting::Queue, Started::No)]);
    stage.advance(secs(7));
    assert_eq!(stage.take(), [refuse(3, Refusal::QueueTimeout)]);
    stage.arrive(4);
    stage.cancel(4);
    assert_eq!(stage.take(), [cancelled(4, Started::No)]);
}

#[test]
fn calls_on_a_lease_wait_too() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.ask_lease(1, 1);
    stage.pause_all();
    stage.forget();
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    assert_eq!(stage.take(), []);
    let order = stage.resume_all();
    assert_eq!(stage.take(), [assign(1, p(1, 1)), pool_done(order)]);
    stage.pause_all();
    stage.arrive_for(2, Target::Lease(LeaseId(1), 0));
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)], "the place is free, and stays free");
}

#[test]
fn a_lease_that_is_asked_for_while_the_pool_is_paused_is_granted_afterwards() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.pause_all();
    stage.ask_lease(1, 1);
    stage.forget();
    let order = stage.resume_all();
    assert_eq!(stage.take(), [pool_done(order), grant(1, &[p(1, 1)])]);
}

#[test]
fn a_second_attempt_waits_for_the_end_of_the_pause() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive_idempotent(1);
    stage.pause_all();
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), []);
    stage.resume_all();
    assert!(stage.take().contains(&assign_again(1, 2, 1, p(1, 1))));
}

#[test]
fn a_paused_pool_does_not_grow() {
    let mut stage = Stage::ready(Settings { min: 0, ..no_prefetch(2) });
    stage.pause_all();
    stage.arrive(1);
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), []);
    stage.resume_all();
    assert!(stage.take().contains(&spawn(p(1, 1))));
}

#[test]
fn a_paused_pool_makes_up_for_what_dies_and_replaces_what_is_to_go() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.pause_all();
    stage.forget();
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    stage.become_ready(p(1, 2));
    stage.recycle(2);
    stage.forget();
    stage.become_ready(p(3, 1));
    assert_eq!(stage.take(), [ask(p(2, 1))]);
}

#[test]
fn a_worker_that_is_resumed_in_a_paused_pool_gets_nothing() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.pause(1);
    stage.pause_all();
    stage.arrive(1);
    stage.arrive_for(2, Target::Worker(WorkerId(1)));
    stage.forget();
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running)]);
}

#[test]
fn a_paused_pool_ends_like_any_other() {
    let mut stage = paused();
    stage.arrive(2);
    stage.forget();
    stage.shut_down();
    assert_eq!(stage.take(), [refuse(2, Refusal::ShuttingDown)]);
    stage.complete(1, p(1, 1));
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1)), Command::Stopped]);
}

#[test]
fn a_draining_pool_lets_nobody_in_and_serves_those_inside() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    let order = stage.drain();
    assert_eq!(stage.take(), [pool_done(order)]);
    assert_eq!(stage.told(&Notice::PoolDraining), 1);
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Draining);
    stage.arrive(3);
    stage.arrive_for(4, Target::Worker(WorkerId(1)));
    let refused = |id| refuse(id, Refusal::PoolDraining);
    assert_eq!(stage.take(), [refused(3), refused(4)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), assign(2, p(1, 1))]);
    assert_eq!(stage.told(&Notice::PoolDrained), 0);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.told(&Notice::PoolDrained), 1);
    assert!(stage.pool.view(stage.now).drained);
    stage.advance(secs(120));
    assert_eq!(stage.told(&Notice::PoolDrained), 1, "that is said once");
}

#[test]
fn an_empty_pool_is_drained_at_once() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.drain();
    assert_eq!(stage.told(&Notice::PoolDrained), 1);
    stage.drain();
    assert_eq!((stage.told(&Notice::PoolDraining), stage.told(&Notice::PoolDrained)), (1, 1));
}

#[test]
fn calls_that_those_inside_wait_for_are_let_in() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.drain();
    stage.forget();
    stage.arrive_from(2, &[1]);
    assert_eq!(stage.take(), [assign(2, p(2, 1))]);
}

#[test]
fn calls_on_leases_are_let_in_and_new_leases_are_not() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.ask_lease(1, 1);
    stage.drain();
    assert_eq!(stage.told(&Notice::PoolDrained), 0, "its holder is inside");
    stage.forget();
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [assign(1, p(1, 1)), answered(1)]);
    stage.ask_lease(2, 1);
    assert_eq!(stage.take(), [refuse_lease(2, Refusal::PoolDraining)]);
    stage.release(1);
    assert_eq!(stage.told(&Notice::PoolDrained), 1);
}

#[test]
fn a_request_between_two_attempts_is_inside() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive_idempotent(1);
    stage.drain();
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    assert_eq!(stage.told(&Notice::PoolDrained), 0);
    stage.advance(ms(50));
    stage.answer(1, 2, p(1, 1), Answer::Completed);
    assert_eq!(stage.told(&Notice::PoolDrained), 1);
}

#[test]
fn a_request_that_its_worker_has_not_let_go_of_is_inside() {
    let mut stage = draining();
    stage.cancel(1);
    assert_eq!(stage.told(&Notice::PoolDrained), 0);
    stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: true });
    assert_eq!(stage.told(&Notice::PoolDrained), 1);
}

#[test]
fn a_drained_pool_that_is_resumed_lets_everybody_in() {
    let mut stage = draining();
    stage.complete(1, p(1, 1));
    stage.forget();
    let order = stage.resume_all();
    assert_eq!(stage.take(), [pool_done(order)]);
    assert_eq!(stage.told(&Notice::PoolResumed), 1);
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Running);
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(2, p(1, 1))]);
    stage.drain();
    stage.complete(2, p(1, 1));
    assert_eq!(stage.told(&Notice::PoolDrained), 1, "again, after it was filled again");
}

#[test]
fn a_paused_pool_is_not_drained_while_somebody_waits() {
    let mut stage = paused();
    stage.arrive(2);
    stage.drain();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.told(&Notice::PoolDrained), 0);
    stage.advance(secs(10));
    assert_eq!(stage.told(&Notice::PoolDrained), 1, "nobody waits any more");
}

#[test]
fn a_draining_pool_makes_up_for_what_dies() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.drain();
    stage.forget();
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    let expected = [crashed(1, Exit::Signal(11)), spawn(p(1, 2)), assign(2, p(1, 2))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_draining_pool_that_ends_says_so_and_no_more() {
    let mut stage = draining();
    stage.shut_down();
    stage.arrive(2);
    assert_eq!(stage.take(), [refuse(2, Refusal::ShuttingDown)]);
    stage.complete(1, p(1, 1));
    stage.leave(p(1, 1));
    assert_eq!(stage.told(&Notice::PoolDrained), 0);
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Stopped);
}

#[test]
fn a_whole_pool_is_recycled_one_after_the_other() {
    let mut stage = Stage::ready(no_prefetch(3));
    let order = stage.recycle_all();
    let workers = (1..=3).map(WorkerId).collect();
    let deeds = stage.take();
    assert!(deeds.contains(&reply(order, Reply::Recycling { workers })), "{deeds:?}");
    assert!(deeds.contains(&spawn(p(4, 1))) && deeds.len() == 2, "{deeds:?}");
    for old in 1..=3 {
        stage.become_ready(p(old + 3, 1));
        assert_eq!(stage.take(), [ask(p(old, 1))]);
        stage.leave(p(old, 1));
        let next = (old < 3).then(|| spawn(p(old + 4, 1)));
        assert_eq!(stage.take(), Vec::from_iter(next));
    }
    assert_eq!(stage.pool.workers().map(|worker| worker.id.0).collect::<Vec<_>>(), [4, 5, 6]);
}

#[test]
fn a_pool_that_is_recycled_twice_at_once_is_recycled_once() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.recycle_all();
    stage.recycle_all();
    for (new, old) in [(3, 1), (4, 2)] {
        stage.become_ready(p(new, 1));
        stage.leave(p(old, 1));
    }
    stage.forget();
    stage.advance(secs(60));
    assert_eq!(stage.take(), []);
    assert_eq!(stage.pool.workers().map(|worker| worker.id.0).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn those_who_are_not_in_service_are_not_recycled() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.pause(1);
    stage.forget();
    let order = stage.recycle_all();
    let workers = vec![WorkerId(2)];
    assert!(stage.take().contains(&reply(order, Reply::Recycling { workers })));
}

#[test]
fn dedicated_workers_of_a_recycled_pool_get_their_next_process() {
    let mut stage = Stage::ready(no_prefetch(1));
    let own = stage.add_dedicated();
    let order = stage.recycle_all();
    let workers = vec![WorkerId(1), WorkerId(own)];
    let deeds = stage.take();
    assert!(deeds.contains(&reply(order, Reply::Recycling { workers })), "{deeds:?}");
    assert!(deeds.contains(&ask(p(own, 1))), "{deeds:?}");
    stage.leave(p(own, 1));
    stage.become_ready(p(3, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&spawn(p(own, 2))) && deeds.contains(&ask(p(1, 1))), "{deeds:?}");
}

#[test]
fn nobody_is_lost_while_a_pool_under_load_is_recycled() {
    let mut stage = Stage::ready(Settings { queue_timeout: secs(600), ..no_prefetch(3) });
    let mut next = 1;
    let mut served = 0;
    stage.recycle_all();
    for _ in 0..200 {
        while stage.pool.view(stage.now).queued < 2 {
            stage.arrive(next);
            next += 1;
        }
        for deed in stage.take() {
            match deed {
                Command::Spawn { process, .. } => stage.become_ready(process),
                Command::AskShutdown { process } => stage.leave(process),
                Command::Assign { request, attempt, process, .. } => {
                    stage.answer(request.0, attempt, process, Answer::Completed);
                }
                Command::Resolve { outcome, .. } => {
                    assert_eq!(outcome, ostler_core::Outcome::Answered);
                    served += 1;
                }
                Command::Reply { .. } => {}
                other => panic!("nobody asked for {other:?}"),
            }
        }
        stage.advance(ms(5));
    }
    assert!(served > 200, "{served}");
    assert_eq!(stage.pool.workers().map(|worker| worker.id.0).collect::<Vec<_>>(), [4, 5, 6]);
}
