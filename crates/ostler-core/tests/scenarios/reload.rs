//! A new kind of worker: one of it proves itself, then the others follow.

use std::time::Duration;

use ostler_core::{
    Answer, Command, Continuity, Event, Evict, Exit, Keyed, Lifecycle, Notice, Outcome, Refusal,
    Reply, Retirement, Settings, SpawnFailure, Status, Target, WorkerId,
};

use crate::support::*;

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

fn keyed(max: u32) -> Settings {
    let keyed = Some(Keyed { evict: Evict::Lru, evict_min_age: Duration::ZERO });
    Settings { min: 0, max, keyed, idle_ttl: None, ..no_prefetch(max) }
}

fn reloaded(order: ostler_core::OrderId, edition: u32) -> Command {
    reply(order, Reply::Reloaded { edition })
}

/// Each worker with the kind of its process.
fn editions(stage: &Stage) -> Vec<(u64, u32)> {
    stage.pool.workers().map(|worker| (worker.id.0, worker.edition)).collect()
}

fn kinds(stage: &Stage) -> Vec<u32> {
    stage.pool.workers().map(|worker| worker.edition).collect()
}

/// Plays the workers until nothing is left to do; what else was ordered.
fn play(stage: &mut Stage) -> Vec<Command> {
    let mut others = Vec::new();
    loop {
        let deeds = stage.take();
        if deeds.is_empty() {
            return others;
        }
        for deed in deeds {
            match deed {
                Command::Spawn { process, .. } => stage.become_ready(process),
                Command::AskShutdown { process } | Command::Terminate { process } => {
                    stage.leave(process);
                }
                Command::SaveSession { process, session } => stage.saved(session.0, process),
                other => others.push(other),
            }
        }
    }
}

#[test]
fn one_of_the_new_kind_proves_itself_before_anybody_leaves() {
    let mut stage = Stage::ready(no_prefetch(2));
    let order = stage.reload(no_prefetch(2));
    assert_eq!(stage.take(), [spawn_of(2, p(3, 1))]);
    assert_eq!(stage.told(&Notice::ReloadBegun { edition: 2 }), 1);
    assert_eq!(stage.pool.view(stage.now).edition, 1);
    stage.arrive(1);
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(1, p(1, 1)), assign(2, p(2, 1))]);
    stage.become_ready(p(3, 1));
    assert_eq!(stage.take(), [reloaded(order, 2)]);
    assert_eq!(stage.told(&Notice::Reloaded { edition: 2 }), 1);
    assert_eq!(stage.pool.view(stage.now).edition, 2);
}

#[test]
fn the_others_follow_one_by_one_and_nobody_is_left_of_the_old_kind() {
    let mut stage = Stage::ready(no_prefetch(3));
    stage.reload(no_prefetch(3));
    stage.become_ready(p(4, 1));
    stage.forget();
    for (old, new) in [(1, 5), (2, 6)] {
        stage.leave(p(old, 1));
        assert_eq!(stage.take(), [spawn_of(2, p(new, 1))]);
        stage.become_ready(p(new, 1));
        assert_eq!(stage.take(), [ask(p(old + 1, 1))]);
        assert_eq!(stage.pool.workers().count(), 4);
    }
    stage.leave(p(3, 1));
    assert_eq!((stage.take(), editions(&stage)), (vec![], vec![(4, 2), (5, 2), (6, 2)]));
    let reason = Retirement::Reloaded;
    for old in 1..=3 {
        assert_eq!(stage.status(old), Status::Completed);
        assert_eq!(stage.view(old).retirement, Some(reason));
    }
}

type Failure = fn(&mut Stage);

/// What may keep a trial, which is 3#1, from becoming ready; and the exit that is reported.
const FAILURES: [(&str, Failure, Option<Exit>); 9] = [
    ("exit", |stage| stage.leave(p(3, 1)), Some(Exit::Code(0))),
    ("crash", |stage| stage.crash(p(3, 1)), Some(Exit::Signal(11))),
    ("broken", |stage| stage.fail_spawn(p(3, 1), SpawnFailure::Broken), None),
    ("exhausted", |stage| stage.fail_spawn(p(3, 1), SpawnFailure::Exhausted), None),
    (
        "too slow",
        |stage| {
            stage.advance(secs(30));
            stage.crash(p(3, 1));
        },
        Some(Exit::Signal(11)),
    ),
    (
        "stream closed",
        |stage| {
            stage.feed(Event::StreamClosed { process: p(3, 1) });
            stage.crash(p(3, 1));
        },
        Some(Exit::Signal(11)),
    ),
    (
        "protocol violated",
        |stage| {
            stage.feed(Event::ProtocolViolated { process: p(3, 1) });
            stage.crash(p(3, 1));
        },
        Some(Exit::Signal(11)),
    ),
    (
        "tainted",
        |stage| {
            stage.taint(p(3, 1));
            stage.crash(p(3, 1));
        },
        Some(Exit::Signal(11)),
    ),
    (
        "terminated",
        |stage| {
            stage.terminate(3);
            stage.crash(p(3, 1));
        },
        Some(Exit::Signal(11)),
    ),
];

#[test]
fn a_trial_that_comes_to_nothing_changes_nothing() {
    for (name, fail, exit) in FAILURES {
        let mut stage = Stage::ready(no_prefetch(2));
        let order = stage.reload(Settings { queue_max: 7, ..no_prefetch(5) });
        stage.forget();
        fail(&mut stage);
        let failed = Reply::ReloadFailed { worker: WorkerId(3), exit };
        assert!(stage.take().contains(&reply(order, failed)), "{name}");
        assert_eq!(stage.told(&Notice::ReloadFailed { edition: 2 }), 1, "{name}");
        assert_eq!(editions(&stage), [(1, 1), (2, 1)], "{name}");
        assert_eq!(*stage.pool.settings(), no_prefetch(2), "{name}");
        assert_eq!(stage.pool.view(stage.now).edition, 1, "{name}");
        assert_eq!(stage.counters().restarts_unplanned, 0, "{name}");
        assert!(stage.status(3).terminal(), "{name}");
        for old in [1, 2] {
            let view = stage.view(old);
            assert_eq!((view.retiring, view.retirement), (false, None), "{name}");
        }
        stage.forget();
        stage.advance(secs(120));
        assert_eq!(stage.take(), [], "{name}: it is not tried again");
        stage.arrive(1);
        stage.arrive(2);
        assert_eq!(stage.take(), [assign(1, p(1, 1)), assign(2, p(2, 1))], "{name}");
    }
}

#[test]
fn after_a_reload_that_failed_another_one_may_succeed() {
    for (name, fail, _) in FAILURES {
        let mut stage = Stage::ready(no_prefetch(2));
        stage.reload(no_prefetch(2));
        fail(&mut stage);
        stage.forget();
        let order = stage.reload(no_prefetch(2));
        assert_eq!(stage.take(), [spawn_of(2, p(4, 1))], "{name}");
        stage.become_ready(p(4, 1));
        assert!(stage.take().contains(&reloaded(order, 2)), "{name}");
    }
}

#[test]
fn a_second_reload_is_refused_while_the_first_has_not_proved_itself() {
    let mut stage = Stage::ready(no_prefetch(1));
    let first = stage.reload(no_prefetch(1));
    stage.forget();
    let second = stage.reload(no_prefetch(1));
    assert_eq!(stage.take(), [reply(second, Reply::ReloadUnderway)]);
    stage.become_ready(p(2, 1));
    assert!(stage.take().contains(&reloaded(first, 2)));
}

#[test]
fn a_reload_while_the_others_still_follow_leads_all_to_the_last_kind() {
    let mut stage = Stage::ready(no_prefetch(3));
    stage.reload(no_prefetch(3));
    stage.become_ready(p(4, 1));
    let order = stage.reload(no_prefetch(3));
    let others = play(&mut stage);
    assert!(others.contains(&reloaded(order, 3)), "{others:?}");
    assert_eq!(
        editions(&stage).into_iter().map(|(_, edition)| edition).collect::<Vec<_>>(),
        [3; 3]
    );
}

#[test]
fn nobody_is_lost_by_a_reload_under_load() {
    for broken in [false, true] {
        let mut stage = Stage::ready(Settings { queue_timeout: secs(600), ..no_prefetch(3) });
        let order = stage.reload(no_prefetch(3));
        let (mut next, mut served, mut told) = (1, 0, None);
        for _ in 0..200 {
            while stage.pool.view(stage.now).queued < 3 {
                stage.arrive(next);
                next += 1;
            }
            for deed in stage.take() {
                match deed {
                    Command::Spawn { process, edition: 2 } if broken => stage.crash(process),
                    Command::Spawn { process, .. } => stage.become_ready(process),
                    Command::AskShutdown { process } => stage.leave(process),
                    Command::Assign { request, attempt, process, .. } => {
                        stage.answer(request.0, attempt, process, Answer::Completed);
                    }
                    Command::Resolve { outcome, .. } => {
                        assert_eq!(outcome, Outcome::Answered);
                        served += 1;
                    }
                    Command::Reply { order: of, reply } if of == order => told = Some(reply),
                    other => panic!("nobody asked for {other:?}"),
                }
            }
            stage.advance(ms(5));
        }
        assert!(served > 200, "{served}");
        let edition = if broken { 1 } else { 2 };
        assert_eq!(matches!(told, Some(Reply::Reloaded { .. })), !broken, "{told:?}");
        assert!(editions(&stage).iter().all(|(_, is)| *is == edition), "{:?}", editions(&stage));
    }
}

#[test]
fn a_worker_that_dies_meanwhile_gets_a_process_of_the_kind_that_counts() {
    let mut stage = Stage::ready(Settings { start_batch: 3, ..no_prefetch(2) });
    stage.reload(Settings { start_batch: 3, ..no_prefetch(2) });
    stage.forget();
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [spawn_of(1, p(2, 2))], "nobody has proved anything yet");
    stage.become_ready(p(3, 1));
    stage.forget();
    stage.crash(p(2, 2));
    stage.advance(ms(200));
    assert!(stage.take().contains(&spawn_of(2, p(2, 3))), "the old kind is over");
    stage.leave(p(1, 1));
    stage.become_ready(p(2, 3));
    play(&mut stage);
    assert_eq!(editions(&stage), [(2, 2), (3, 2)]);
}

#[test]
fn the_predecessor_of_a_trial_may_crash_meanwhile() {
    let mut stage = Stage::ready(Settings { start_batch: 2, ..no_prefetch(1) });
    let order = stage.reload(no_prefetch(1));
    stage.crash(p(1, 1));
    stage.forget();
    stage.become_ready(p(2, 1));
    assert!(stage.take().contains(&reloaded(order, 2)));
    stage.advance(secs(31));
    stage.crash(p(1, 2));
    play(&mut stage);
    assert_eq!(editions(&stage), [(2, 2)]);
}

#[test]
fn the_predecessor_of_a_trial_may_be_terminated_meanwhile() {
    for broken in [false, true] {
        let mut stage = Stage::ready(Settings { start_batch: 2, ..no_prefetch(1) });
        stage.reload(no_prefetch(1));
        stage.terminate(1);
        stage.crash(p(1, 1));
        assert!(stage.pool.workers().count() <= 2, "one of the pool, and one on trial");
        if broken {
            stage.crash(p(2, 1));
        } else {
            stage.become_ready(p(2, 1));
        }
        for worker in 3..=4 {
            if stage.pool.workers().any(|known| known.id.0 == worker && known.generation == 1) {
                stage.become_ready(p(worker, 1));
            }
        }
        play(&mut stage);
        stage.advance(secs(60));
        play(&mut stage);
        let edition = if broken { 1 } else { 2 };
        assert_eq!(kinds(&stage), [edition], "broken: {broken}");
    }
}

#[test]
fn a_reload_does_not_wait_for_somebody_who_is_long_in_leaving() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    let busy = stage.pool.workers().find(|worker| worker.load > 0).expect("one works").id.0;
    stage.recycle(busy);
    stage.become_ready(p(3, 1));
    stage.forget();
    let order = stage.reload(no_prefetch(2));
    assert_eq!(stage.take(), [spawn_of(2, p(4, 1))], "beside the others");
    stage.become_ready(p(4, 1));
    assert!(stage.take().contains(&reloaded(order, 2)));
}

#[test]
fn new_settings_count_when_the_trial_has_proved_itself_and_not_before() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.reload(Settings { queue_max: 1, ..no_prefetch(1) });
    stage.arrive(2);
    stage.arrive(3);
    stage.arrive(4);
    stage.become_ready(p(2, 1));
    stage.forget();
    stage.arrive(5);
    let deeds = stage.take();
    let [Command::Refuse { refusal: Refusal::Saturated { .. }, .. }] = deeds[..] else {
        panic!("{deeds:?}")
    };
}

#[test]
fn a_trial_has_the_time_to_start_that_its_own_settings_give_it() {
    let mut stage = Stage::ready(no_prefetch(1));
    let order = stage.reload(Settings { start_timeout: secs(90), ..no_prefetch(1) });
    stage.forget();
    stage.advance(secs(90) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [kill(p(2, 1))]);
    stage.crash(p(2, 1));
    let failed = Reply::ReloadFailed { worker: WorkerId(2), exit: Some(Exit::Signal(11)) };
    assert_eq!(stage.take(), [reply(order, failed)]);
}

#[test]
fn a_trial_that_takes_its_time_keeps_nobody_from_starting() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.reload(no_prefetch(1));
    stage.forget();
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [spawn_of(1, p(1, 2))]);
}

#[test]
fn a_reload_to_a_larger_pool_makes_what_it_lacks() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.reload(no_prefetch(3));
    play(&mut stage);
    assert_eq!(
        editions(&stage).into_iter().map(|(_, edition)| edition).collect::<Vec<_>>(),
        [2; 3]
    );
}

#[test]
fn a_reload_to_a_smaller_pool_lets_go_of_what_is_too_much() {
    let mut stage = Stage::ready(no_prefetch(4));
    stage.reload(no_prefetch(2));
    play(&mut stage);
    assert_eq!(
        editions(&stage).into_iter().map(|(_, edition)| edition).collect::<Vec<_>>(),
        [2; 2]
    );
}

#[test]
fn a_pool_without_workers_has_one_of_the_new_kind_prove_itself() {
    let settings = Settings { min: 0, ..no_prefetch(2) };
    let mut stage = Stage::ready(settings.clone());
    let order = stage.reload(settings);
    assert_eq!(stage.take(), [spawn_of(2, p(1, 1))]);
    stage.become_ready(p(1, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&reloaded(order, 2)), "{deeds:?}");
    stage.advance(secs(300));
    play(&mut stage);
    stage.arrive(1);
    let deeds = play(&mut stage);
    let served = deeds.iter().any(|deed| matches!(deed, Command::Assign { .. }));
    assert!(served, "{deeds:?}");
    assert!(editions(&stage).iter().all(|(_, edition)| *edition == 2));
}

#[test]
fn with_an_open_breaker_a_kind_that_proves_itself_closes_it() {
    let mut stage = Stage::ready(Settings { restart_max: 0, ..no_prefetch(2) });
    stage.crash(p(1, 1));
    stage.crash(p(2, 1));
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Failed);
    stage.forget();
    let order = stage.reload(no_prefetch(2));
    assert_eq!(stage.take(), [spawn_of(2, p(3, 1))], "that need not wait for the cooldown");
    stage.become_ready(p(3, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&reloaded(order, 2)), "{deeds:?}");
    assert_eq!(stage.told(&Notice::BreakerClosed), 1);
    assert!(deeds.contains(&spawn_of(2, p(4, 1))), "{deeds:?}");
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Running);
}

#[test]
fn with_an_open_breaker_a_kind_that_fails_leaves_it_open() {
    let mut stage = Stage::ready(Settings { restart_max: 0, ..no_prefetch(1) });
    stage.crash(p(1, 1));
    let order = stage.reload(no_prefetch(1));
    stage.forget();
    stage.crash(p(2, 1));
    let exit = Some(Exit::Signal(11));
    let failed = Reply::ReloadFailed { worker: WorkerId(2), exit };
    assert_eq!(stage.take(), [reply(order, failed)]);
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Failed);
    stage.advance(secs(30));
    assert_eq!(stage.take(), [spawn(p(3, 1))], "the probe comes in its time");
}

#[test]
fn a_trial_that_has_not_proved_itself_does_not_close_the_breaker() {
    let settings = Settings { restart_max: 0, start_timeout: secs(300), ..no_prefetch(1) };
    let mut stage = Stage::ready(settings);
    stage.crash(p(1, 1));
    stage.reload(no_prefetch(1));
    stage.forget();
    stage.advance(secs(31));
    assert_eq!(stage.told(&Notice::BreakerClosed), 0);
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Failed);
}

#[test]
fn a_reload_during_a_probe_ends_with_one_kind_and_the_right_size() {
    for trial_first in [false, true] {
        let settings = Settings { restart_max: 0, start_batch: 4, ..no_prefetch(2) };
        let mut stage = Stage::ready(settings.clone());
        stage.crash(p(1, 1));
        stage.crash(p(2, 1));
        stage.advance(secs(30));
        stage.reload(settings);
        assert!(stage.take().contains(&spawn_of(2, p(4, 1))));
        let order = if trial_first { [4, 3] } else { [3, 4] };
        for worker in order {
            stage.become_ready(p(worker, 1));
        }
        play(&mut stage);
        assert_eq!(kinds(&stage), [2, 2], "{trial_first}");
    }
}

#[test]
fn dedicated_workers_get_a_process_of_the_new_kind() {
    let mut stage = Stage::ready(no_prefetch(1));
    let own = stage.add_dedicated();
    stage.arrive_for(1, Target::Worker(WorkerId(own)));
    stage.reload(no_prefetch(1));
    stage.become_ready(p(3, 1));
    stage.forget();
    stage.complete(1, p(own, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(own, 1))]);
    stage.leave(p(own, 1));
    assert!(stage.take().contains(&spawn_of(2, p(own, 2))));
}

#[test]
fn a_paused_worker_follows_when_it_is_resumed() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.pause(2);
    stage.reload(no_prefetch(2));
    play(&mut stage);
    assert_eq!(editions(&stage), [(2, 1), (3, 2)]);
    stage.resume(2);
    play(&mut stage);
    assert_eq!(
        editions(&stage).into_iter().map(|(_, edition)| edition).collect::<Vec<_>>(),
        [2; 2]
    );
}

#[test]
fn one_whose_successor_came_to_nothing_follows_all_the_same() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.reload(no_prefetch(2));
    stage.become_ready(p(3, 1));
    stage.leave(p(1, 1));
    stage.terminate(4);
    stage.crash(p(4, 1));
    play(&mut stage);
    assert_eq!(
        editions(&stage).into_iter().map(|(_, edition)| edition).collect::<Vec<_>>(),
        [2; 2]
    );
}

#[test]
fn a_scale_order_does_not_end_a_trial() {
    for broken in [false, true] {
        let mut stage = Stage::ready(Settings { min: 0, ..no_prefetch(2) });
        let order = stage.reload(Settings { min: 0, ..no_prefetch(2) });
        stage.scale(0, 1);
        stage.forget();
        if broken {
            stage.crash(p(1, 1));
            let exit = Some(Exit::Signal(11));
            let failed = Reply::ReloadFailed { worker: WorkerId(1), exit };
            assert!(stage.take().contains(&reply(order, failed)));
        } else {
            stage.become_ready(p(1, 1));
            assert!(stage.take().contains(&reloaded(order, 2)));
        }
    }
}

#[test]
fn a_recycled_pool_and_a_reload_get_along() {
    let mut stage = Stage::ready(no_prefetch(3));
    stage.recycle_all();
    let order = stage.reload(no_prefetch(3));
    let others = play(&mut stage);
    assert!(others.contains(&reloaded(order, 2)), "{others:?}");
    assert_eq!(
        editions(&stage).into_iter().map(|(_, edition)| edition).collect::<Vec<_>>(),
        [2; 3]
    );
}

#[test]
fn a_paused_pool_may_be_reloaded() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.pause_all();
    stage.arrive(1);
    let order = stage.reload(no_prefetch(2));
    let others = play(&mut stage);
    assert!(others.contains(&reloaded(order, 2)), "{others:?}");
    assert_eq!(
        editions(&stage).into_iter().map(|(_, edition)| edition).collect::<Vec<_>>(),
        [2; 2]
    );
    stage.resume_all();
    let assigned = |deed: &Command| matches!(deed, Command::Assign { .. });
    assert!(stage.take().iter().any(assigned));
}

#[test]
fn sessions_follow_with_all_that_was_kept_of_them() {
    let mut stage = Stage::ready(no_prefetch(2));
    for session in [1, 2] {
        stage.arrive_in(session, session, STRICT);
    }
    for (id, worker) in [(1, 1), (2, 2)] {
        stage.complete(id, p(worker, 1));
    }
    stage.reload(no_prefetch(2));
    play(&mut stage);
    stage.forget();
    for session in [1, 2] {
        stage.arrive_in(10 + session, session, STRICT);
    }
    let restored = |deed: &Command| {
        matches!(deed, Command::Assign { continuity: Some(Continuity::Restored), .. })
    };
    let deeds = stage.take();
    assert!(deeds.len() == 2 && deeds.iter().all(restored), "{deeds:?}");
}

#[test]
fn a_shutdown_meanwhile_answers_the_order_and_stops_the_trial() {
    let mut stage = Stage::ready(no_prefetch(1));
    let order = stage.reload(no_prefetch(1));
    stage.forget();
    stage.shut_down();
    let deeds = stage.take();
    assert!(deeds.contains(&reply(order, Reply::ShuttingDown)), "{deeds:?}");
    assert!(deeds.contains(&term(p(2, 1))) && deeds.contains(&ask(p(1, 1))), "{deeds:?}");
    stage.leave(p(1, 1));
    stage.leave(p(2, 1));
    assert_eq!(stage.take(), [Command::Stopped]);
    let order = stage.reload(no_prefetch(1));
    assert_eq!(stage.take(), [reply(order, Reply::ShuttingDown)]);
}

#[test]
fn a_shutdown_before_the_trial_has_its_place_answers_the_order() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.recycle(1);
    let order = stage.reload(no_prefetch(1));
    stage.forget();
    stage.shut_down();
    assert!(stage.take().contains(&reply(order, Reply::ShuttingDown)));
}

#[test]
fn a_reload_of_a_pool_that_has_not_started_happens_when_it_does() {
    let mut stage = Stage::new(Settings { start_batch: 4, ..no_prefetch(2) });
    let order = stage.reload(Settings { start_batch: 4, ..no_prefetch(2) });
    assert_eq!(stage.take(), []);
    stage.feed(Event::PoolStarted);
    let others = play(&mut stage);
    assert!(others.contains(&reloaded(order, 2)), "{others:?}");
    assert_eq!(
        editions(&stage).into_iter().map(|(_, edition)| edition).collect::<Vec<_>>(),
        [2; 2]
    );
}

/// Keys 1 to `count` of a keyed pool have a worker with the same number, and a strict session.
fn with_sessions(settings: Settings, count: u64) -> Stage {
    let mut stage = Stage::ready(settings);
    for key in 1..=count {
        stage.arrive_keyed(key, key, STRICT);
        stage.become_ready(p(key, 1));
        stage.complete(key, p(key, 1));
        stage.advance(secs(1));
    }
    stage.forget();
    stage
}

#[test]
fn in_a_keyed_pool_the_trial_belongs_to_nobody_and_goes_when_it_has_proved_itself() {
    let mut stage = with_sessions(keyed(2), 2);
    let order = stage.reload(keyed(2));
    assert_eq!(stage.take(), [spawn_of(2, p(3, 1))]);
    assert_eq!(stage.view(3).key, None);
    stage.become_ready(p(3, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&reloaded(order, 2)), "{deeds:?}");
    assert!(deeds.contains(&ask(p(3, 1))), "{deeds:?}");
    let retiring = |worker, reason| Notice::Retiring { worker: WorkerId(worker), reason };
    for key in [1, 2] {
        assert_eq!(stage.told(&retiring(key, Retirement::Scaled)), 0, "there is room for all keys");
    }
}

#[test]
fn in_a_keyed_pool_every_key_gets_a_worker_of_the_new_kind_and_what_was_kept() {
    let mut stage = with_sessions(keyed(3), 3);
    stage.reload(keyed(3));
    play(&mut stage);
    let keys: Vec<_> =
        stage.pool.workers().map(|worker| (worker.key.map(|key| key.0), worker.edition)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [(Some(1), 2), (Some(2), 2), (Some(3), 2)]);
    for key in 1..=3 {
        stage.arrive_keyed(10 + key, key, STRICT);
    }
    let restored = |deed: &Command| {
        matches!(deed, Command::Assign { continuity: Some(Continuity::Restored), .. })
    };
    let deeds = stage.take();
    assert!(deeds.len() == 3 && deeds.iter().all(restored), "{deeds:?}");
}

#[test]
fn a_trial_takes_no_place_from_a_key() {
    let mut stage = with_sessions(keyed(2), 1);
    stage.reload(keyed(2));
    stage.forget();
    stage.arrive_keyed(2, 2, STRICT);
    stage.become_ready(p(3, 1));
    let deeds = stage.take();
    assert!(!deeds.contains(&save(1, p(1, 1))), "nobody is evicted: {deeds:?}");
}

#[test]
fn a_keyed_pool_without_keys_may_be_reloaded() {
    let mut stage = Stage::ready(keyed(2));
    let order = stage.reload(keyed(2));
    stage.forget();
    stage.become_ready(p(1, 1));
    let others = play(&mut stage);
    assert!(others.contains(&reloaded(order, 2)), "{others:?}");
    assert_eq!(editions(&stage), []);
    stage.arrive_keyed(1, 1, STRICT);
    assert_eq!(stage.take(), [spawn_of(2, p(2, 1))]);
}

#[test]
fn a_trial_of_a_keyed_pool_that_comes_to_nothing_changes_nothing() {
    let mut stage = with_sessions(keyed(2), 2);
    let order = stage.reload(keyed(5));
    stage.forget();
    stage.crash(p(3, 1));
    let failed = Reply::ReloadFailed { worker: WorkerId(3), exit: Some(Exit::Signal(11)) };
    assert_eq!(stage.take(), [reply(order, failed)]);
    assert_eq!(editions(&stage), [(1, 1), (2, 1)]);
    assert_eq!(stage.pool.settings().max, 2);
}

#[test]
fn a_trial_that_is_to_be_recycled_leaves_nobody_behind() {
    let mut stage = with_sessions(keyed(2), 2);
    let order = stage.reload(keyed(2));
    stage.recycle(3);
    let others = play(&mut stage);
    assert!(others.contains(&reloaded(order, 2)), "{others:?}");
    let keys: Vec<_> = stage.pool.workers().map(|worker| worker.key.map(|key| key.0)).collect();
    assert!(keys.len() == 2 && keys.contains(&Some(1)) && keys.contains(&Some(2)), "{keys:?}");
}
