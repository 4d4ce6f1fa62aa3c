//! The status of a worker, and what may be ordered in each.

use ostler_core::{
    Action, Command, Exit, OrderId, Phase, Reply, Settings, Status, Target, WorkerId,
};

use crate::support::*;

fn reply_of(order: OrderId, deeds: &[Command]) -> Option<Reply> {
    let mut replies = deeds.iter().filter_map(|deed| match deed {
        Command::Reply { order: of, reply } if *of == order => Some(reply.clone()),
        _ => None,
    });
    let first = replies.next();
    assert_eq!(replies.next(), None, "an order is answered once");
    first
}

#[test]
fn a_created_worker_waits_for_its_start() {
    let mut stage = Stage::ready(calm(1));
    let create = stage.order(Action::Create);
    assert_eq!(stage.take(), [done(create, 2, Status::Idle)]);
    stage.advance(secs(60));
    assert_eq!(stage.take(), []);
    let start = stage.order(Action::Start(WorkerId(2)));
    assert_eq!(stage.take(), [done(start, 2, Status::Running), spawn(p(2, 1))]);
}

#[test]
fn workers_made_by_order_are_bounded_and_one_that_ended_makes_room() {
    let mut stage = Stage::ready(Settings { dedicated_max: 1, ..calm(1) });
    stage.order(Action::Create);
    stage.forget();
    let second = stage.order(Action::Create);
    assert_eq!(stage.take(), [reply(second, Reply::DedicatedFull)]);
    stage.terminate(2);
    stage.forget();
    let third = stage.order(Action::Create);
    assert_eq!(stage.take(), [done(third, 3, Status::Idle)]);
}

#[test]
fn a_paused_worker_finishes_its_work_and_takes_no_more() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.pause(1);
    stage.forget();
    stage.arrive(2);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), assign(2, p(1, 1))]);
}

#[test]
fn a_freezing_pause_stops_the_process_but_no_deadline() {
    let mut stage = Stage::ready(calm(1));
    let by = stage.now.after(secs(3));
    stage.arrive_as(1, |spec| spec.deadline = by);
    stage.forget();
    let pause = stage.order(Action::Pause { worker: WorkerId(1), freeze: true });
    let freeze = Command::Freeze { process: p(1, 1) };
    assert_eq!(stage.take(), [done(pause, 1, Status::Paused), freeze]);
    stage.advance(secs(3));
    let (phase, started) = (ostler_core::Waiting::Worker, ostler_core::Started::Yes);
    assert_eq!(stage.take(), [cancel(1, p(1, 1)), timed_out(1, phase, started)]);
    let resume = stage.resume(1);
    let thaw = Command::Thaw { process: p(1, 1) };
    assert_eq!(stage.take(), [done(resume, 1, Status::Running), thaw]);
}

#[test]
fn a_completed_worker_finishes_its_work_first_and_a_new_one_takes_its_place() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..calm(1) });
    stage.arrive(1);
    stage.forget();
    let order = stage.complete_worker(1);
    stage.arrive(2);
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Running));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), done(order, 1, Status::Completed), ask(p(1, 1))]);
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(2, p(2, 1))]);
}

#[test]
fn a_second_completion_is_told_that_one_is_under_way() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.complete_worker(1);
    stage.forget();
    let again = stage.complete_worker(1);
    assert_eq!(stage.take(), [reply(again, Reply::InTransition)]);
}

#[test]
fn a_completion_that_is_overtaken_by_a_pause_is_answered_once() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.forget();
    let complete = stage.complete_worker(1);
    stage.pause(1);
    stage.complete(1, p(1, 1));
    stage.advance(secs(60));
    assert!(reply_of(complete, &stage.take()).is_some(), "and it is answered");
}

#[test]
fn a_completion_that_is_overtaken_by_a_pause_goes_on_after_it() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    let complete = stage.complete_worker(1);
    stage.pause(1);
    stage.complete(1, p(1, 1));
    stage.forget();
    let resume = stage.resume(1);
    let expected =
        [done(resume, 1, Status::Running), done(complete, 1, Status::Completed), ask(p(1, 1))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_termination_is_answered_when_nothing_of_the_process_is_left() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive(1);
    stage.forget();
    let order = stage.terminate(1);
    assert_eq!((stage.take(), stage.status(1)), (vec![kill(p(1, 1))], Status::Terminated));
    stage.exit(p(1, 1), Exit::Signal(9));
    let lost = stopped(1, Exit::Signal(9), ostler_core::StopReason::Terminated);
    assert_eq!(stage.take(), [lost]);
    stage.clear(p(1, 1));
    let deeds = stage.take();
    assert_eq!(deeds, [done(order, 1, Status::Terminated), spawn(p(3, 1))]);
}

#[test]
fn a_completed_worker_that_has_not_left_yet_can_be_terminated() {
    let mut stage = Stage::ready(calm(1));
    let complete = stage.complete_worker(1);
    assert_eq!(stage.take(), [done(complete, 1, Status::Completed), ask(p(1, 1))]);
    let terminate = stage.terminate(1);
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.exit(p(1, 1), Exit::Signal(9));
    stage.clear(p(1, 1));
    assert_eq!(stage.take(), [done(terminate, 1, Status::Terminated), spawn(p(2, 1))]);
}

#[test]
fn a_terminated_worker_is_not_given_another_process() {
    let mut stage = Stage::ready(calm(1));
    let own = stage.add_dedicated();
    stage.terminate(own);
    stage.crash(p(own, 1));
    stage.forget();
    stage.advance(secs(60));
    assert_eq!(stage.take(), []);
    assert_eq!(stage.view(own).phase, None);
    stage.arrive_for(1, Target::Worker(WorkerId(own)));
    assert!(matches!(stage.take()[..], [Command::Refuse { .. }]));
}

#[test]
fn a_worker_paused_while_it_starts_becomes_ready_but_takes_no_work() {
    let mut stage = Stage::started(calm(1));
    stage.pause(1);
    stage.arrive(1);
    stage.forget();
    stage.become_ready(p(1, 1));
    assert_eq!((stage.take(), stage.phase(1)), (vec![], Some(Phase::Ready)));
}
