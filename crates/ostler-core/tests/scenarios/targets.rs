//! Requests that only one worker may serve.

use ostler_core::{Action, Exit, Refusal, Settings, Status, Target, WorkerId};

use crate::support::*;

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

#[test]
fn a_request_for_one_worker_waits_for_it_and_others_pass_by() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive_for(1, Target::Worker(WorkerId(2)));
    stage.arrive_for(2, Target::Worker(WorkerId(2)));
    stage.arrive(3);
    assert_eq!(stage.take(), [assign(1, p(2, 1)), assign(3, p(1, 1))]);
    stage.arrive(4);
    stage.complete(1, p(2, 1));
    assert_eq!(stage.take(), [answered(1), assign(2, p(2, 1))]);
}

#[test]
fn a_request_for_one_worker_is_told_when_that_one_cannot_serve() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_for(1, Target::Worker(WorkerId(9)));
    assert_eq!(stage.take(), [refuse(1, Refusal::NoSuchWorker)]);
    stage.order(Action::Create);
    stage.forget();
    stage.arrive_for(2, Target::Worker(WorkerId(2)));
    assert_eq!(stage.take(), [refuse(2, Refusal::WorkerNotServing)]);
}

#[test]
fn a_request_for_a_paused_worker_waits_until_it_is_resumed() {
    let mut stage = Stage::ready(calm(2));
    stage.pause(1);
    stage.forget();
    stage.arrive_for(1, Target::Worker(WorkerId(1)));
    assert_eq!(stage.take(), []);
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), assign(1, p(1, 1))]);
}

#[test]
fn a_request_that_waits_for_a_worker_is_refused_when_that_one_ends() {
    let mut stage = Stage::ready(calm(2));
    stage.pause(1);
    stage.arrive_for(1, Target::Worker(WorkerId(1)));
    stage.forget();
    let order = stage.terminate(1);
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.exit(p(1, 1), Exit::Signal(9));
    stage.clear(p(1, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&done(order, 1, Status::Terminated)), "{deeds:?}");
    assert!(deeds.contains(&refuse(1, Refusal::WorkerNotServing)), "{deeds:?}");
}

#[test]
fn a_dedicated_worker_takes_only_what_is_addressed_to_it() {
    let mut stage = Stage::ready(no_prefetch(1));
    let own = stage.add_dedicated();
    stage.arrive(1);
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    stage.arrive_for(3, Target::Worker(WorkerId(own)));
    assert_eq!(stage.take(), [assign(3, p(own, 1))]);
}
