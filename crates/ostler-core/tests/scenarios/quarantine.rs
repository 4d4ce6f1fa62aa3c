//! Requests that kill: after the second process the same request is refused for a while.

use ostler_core::{
    Answer, Backoff, Command, Event, Exit, Notice, ProcessId, Refusal, RequestId, Settings,
    StopReason,
};

use crate::support::*;

const SEGFAULT: Exit = Exit::Signal(11);

/// Crashes cost nothing here but the request.
fn hardy(size: u32) -> Settings {
    let backoff = Backoff { first: ms(0), max: ms(0), jitter: 0.0 };
    Settings { restart_max: u32::MAX, backoff, prefetch: 0, ..calm(size) }
}

/// The same poison under a new id.
fn arrive_poison(stage: &mut Stage, id: u64) {
    stage.arrive_as(id, |spec| spec.fingerprint = POISON);
}

const POISON: u64 = 666;

/// Ends the process, brings up its worker's next one, and looks away.
fn end(stage: &mut Stage, process: ProcessId, exit: Exit) {
    stage.exit(process, exit);
    stage.clear(process);
    stage.become_ready(p(process.worker.0, process.generation + 1));
    stage.forget();
}

/// A pool of one that the poison has killed so often, by this exit.
fn killed(times: u32, exit: Exit) -> Stage {
    let mut stage = Stage::ready(hardy(1));
    for generation in 1..=times {
        arrive_poison(&mut stage, u64::from(generation));
        end(&mut stage, p(1, generation), exit);
    }
    stage
}

fn quarantined(exit: Exit, left: std::time::Duration) -> Refusal {
    Refusal::Quarantined { exit, left }
}

#[test]
fn one_kill_is_an_accident_and_the_second_a_pattern() {
    let mut stage = killed(1, SEGFAULT);
    arrive_poison(&mut stage, 2);
    assert_eq!(stage.take(), [assign(2, p(1, 2))]);
    stage.exit(p(1, 2), SEGFAULT);
    assert_eq!(stage.take(), [crashed(2, SEGFAULT)]);
    let told = Notice::Quarantined { request: RequestId(2), process: p(1, 2), exit: SEGFAULT };
    assert!(stage.notices().contains(&told));
    arrive_poison(&mut stage, 3);
    assert_eq!(stage.take(), [refuse(3, quarantined(SEGFAULT, secs(60)))]);
}

#[test]
fn other_requests_are_served_as_before() {
    let mut stage = killed(2, SEGFAULT);
    stage.arrive(10);
    assert_eq!(stage.take(), [assign(10, p(1, 3))]);
}

#[test]
fn the_quarantine_ends_by_itself_and_the_count_with_it() {
    let mut stage = killed(2, SEGFAULT);
    stage.advance(secs(60) - ms(1));
    arrive_poison(&mut stage, 10);
    assert_eq!(stage.take(), [refuse(10, quarantined(SEGFAULT, ms(1)))]);
    stage.advance(ms(1));
    arrive_poison(&mut stage, 11);
    assert_eq!(stage.take(), [assign(11, p(1, 3))]);
    end(&mut stage, p(1, 3), SEGFAULT);
    arrive_poison(&mut stage, 12);
    assert_eq!(stage.take(), [assign(12, p(1, 4))], "the first kill of a new count");
}

#[test]
fn kills_farther_apart_than_the_period_are_not_added_up() {
    let mut stage = killed(1, SEGFAULT);
    stage.advance(secs(60));
    arrive_poison(&mut stage, 2);
    end(&mut stage, p(1, 2), SEGFAULT);
    arrive_poison(&mut stage, 3);
    assert_eq!(stage.take(), [assign(3, p(1, 3))]);
}

#[test]
fn the_period_is_a_setting_and_zero_switches_it_off() {
    let mut stage = Stage::ready(Settings { quarantine: ms(0), ..hardy(1) });
    for generation in 1..=5 {
        arrive_poison(&mut stage, u64::from(generation));
        assert_eq!(stage.take(), [assign(u64::from(generation), p(1, generation))]);
        stage.exit(p(1, generation), SEGFAULT);
        let told = stage.notices().into_iter().any(|n| matches!(n, Notice::Quarantined { .. }));
        assert!(!told);
        end(&mut stage, p(1, generation), SEGFAULT);
    }
}

#[test]
fn only_a_process_that_ended_itself_counts() {
    let own = [
        Exit::Code(0),
        Exit::Code(1),
        Exit::Code(139),
        Exit::Signal(4),
        Exit::Signal(6),
        Exit::Signal(7),
        Exit::Signal(8),
        SEGFAULT,
        Exit::OutOfMemory,
    ];
    let others = [
        Exit::Signal(1),
        Exit::Signal(2),
        Exit::Signal(9),
        Exit::Signal(15),
        Exit::Code(130),
        Exit::Code(143),
        Exit::Unknown,
    ];
    for (exits, refused) in [(&own[..], true), (&others[..], false)] {
        for exit in exits {
            let mut stage = killed(2, *exit);
            arrive_poison(&mut stage, 10);
            let was = matches!(stage.take()[..], [Command::Refuse { .. }]);
            assert_eq!(was, refused, "{exit:?}");
        }
    }
}

#[test]
fn the_refusal_names_the_last_exit() {
    let mut stage = killed(1, SEGFAULT);
    arrive_poison(&mut stage, 2);
    end(&mut stage, p(1, 2), Exit::Code(3));
    arrive_poison(&mut stage, 3);
    assert_eq!(stage.take(), [refuse(3, quarantined(Exit::Code(3), secs(60)))]);
}

#[test]
fn one_that_ran_in_company_is_not_blamed() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..hardy(1) });
    for generation in 1..=4 {
        arrive_poison(&mut stage, u64::from(generation));
        stage.arrive(100 + u64::from(generation));
        end(&mut stage, p(1, generation), SEGFAULT);
    }
    arrive_poison(&mut stage, 10);
    assert_eq!(stage.take(), [assign(10, p(1, 5))]);
}

#[test]
fn one_that_ran_alone_on_a_larger_process_is_blamed() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..hardy(1) });
    for generation in 1..=2 {
        arrive_poison(&mut stage, u64::from(generation));
        end(&mut stage, p(1, generation), SEGFAULT);
    }
    arrive_poison(&mut stage, 10);
    assert!(matches!(stage.take()[..], [Command::Refuse { .. }]));
}

#[test]
fn one_that_was_cancelled_and_then_killed_is_blamed_for_it() {
    let mut stage = Stage::ready(hardy(1));
    for generation in 1..=2 {
        arrive_poison(&mut stage, u64::from(generation));
        stage.cancel(u64::from(generation));
        end(&mut stage, p(1, generation), SEGFAULT);
    }
    arrive_poison(&mut stage, 10);
    assert!(matches!(stage.take()[..], [Command::Refuse { .. }]));
}

#[test]
fn a_crash_of_an_idle_process_is_nobody_s_fault() {
    let mut stage = Stage::ready(hardy(1));
    for generation in 1..=3 {
        arrive_poison(&mut stage, u64::from(generation));
        stage.complete(u64::from(generation), p(1, generation));
        end(&mut stage, p(1, generation), SEGFAULT);
    }
    arrive_poison(&mut stage, 10);
    assert_eq!(stage.take(), [assign(10, p(1, 4))]);
}

#[test]
fn the_end_of_a_process_that_the_pool_stopped_is_not_held_against_the_request() {
    let mut stage = Stage::ready(hardy(1));
    for generation in 1..=3 {
        let (id, process) = (u64::from(generation), p(1, generation));
        arrive_poison(&mut stage, id);
        stage.feed(Event::ProtocolViolated { process });
        stage.exit(process, SEGFAULT);
        let deeds = stage.take();
        let lost = stopped(id, SEGFAULT, StopReason::ProtocolViolation);
        assert!(deeds.contains(&lost), "{deeds:?}");
        end(&mut stage, process, SEGFAULT);
    }
    arrive_poison(&mut stage, 10);
    assert_eq!(stage.take(), [assign(10, p(1, 4))]);
}

#[test]
fn what_lay_behind_the_poison_is_neither_blamed_nor_lost() {
    let mut stage = Stage::ready(Settings { prefetch: 1, ..hardy(1) });
    stage.arrive(1);
    stage.complete(1, p(1, 1));
    for generation in 1..=2 {
        arrive_poison(&mut stage, 10 + u64::from(generation));
        stage.arrive_as(20 + u64::from(generation), |spec| spec.fingerprint = 20);
        end(&mut stage, p(1, generation), SEGFAULT);
        stage.answer(20 + u64::from(generation), 2, p(1, generation + 1), Answer::Completed);
        assert_eq!(stage.take(), [answered(20 + u64::from(generation))]);
    }
    stage.arrive_as(30, |spec| spec.fingerprint = 20);
    assert_eq!(stage.take(), [assign(30, p(1, 3))], "what lay behind is not refused");
    arrive_poison(&mut stage, 31);
    let deeds = stage.take();
    assert!(matches!(deeds[..], [Command::Refuse { .. }]), "the poison is: {deeds:?}");
}

#[test]
fn an_idempotent_poison_is_tried_twice_and_ends_as_its_last_attempt_did() {
    let mut stage = Stage::ready(hardy(3));
    stage.arrive_as(1, |spec| (spec.fingerprint, spec.idempotent) = (POISON, true));
    stage.forget();
    stage.exit(p(1, 1), SEGFAULT);
    assert_eq!(stage.take(), [assign_again(1, 2, 1, p(2, 1))]);
    stage.forget();
    stage.exit(p(2, 1), Exit::Signal(6));
    assert_eq!(stage.take(), [crashed(1, Exit::Signal(6))], "there is no third");
    let told = stage.notices().into_iter().any(|n| matches!(n, Notice::Retried { .. }));
    assert!(!told, "nobody is told of an attempt that never comes");
    assert_eq!(stage.counters().retried, 1);
}

#[test]
fn copies_that_wait_in_the_queue_are_refused_when_their_turn_comes() {
    let mut stage = killed(1, SEGFAULT);
    for id in 2..=4 {
        arrive_poison(&mut stage, id);
    }
    stage.arrive(5);
    stage.forget();
    stage.exit(p(1, 2), SEGFAULT);
    stage.clear(p(1, 2));
    stage.forget();
    stage.become_ready(p(1, 3));
    let refused = [3, 4].map(|id| refuse(id, quarantined(SEGFAULT, secs(60))));
    assert_eq!(stage.take(), [&refused[..], &[assign(5, p(1, 3))]].concat());
}

#[test]
fn copies_in_the_queue_run_if_the_quarantine_is_over_by_then() {
    let mut stage = Stage::ready(Settings { quarantine: secs(5), ..hardy(1) });
    arrive_poison(&mut stage, 1);
    end(&mut stage, p(1, 1), SEGFAULT);
    arrive_poison(&mut stage, 2);
    arrive_poison(&mut stage, 3);
    stage.exit(p(1, 2), SEGFAULT);
    stage.clear(p(1, 2));
    stage.advance(secs(5));
    stage.forget();
    stage.become_ready(p(1, 3));
    assert_eq!(stage.take(), [assign(3, p(1, 3))]);
}

#[test]
fn a_copy_that_waits_for_its_next_attempt_ends_with_its_error() {
    let mut stage = Stage::ready(hardy(2));
    stage.arrive_as(1, |spec| (spec.fingerprint, spec.idempotent) = (POISON, true));
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    for generation in 1..=2 {
        arrive_poison(&mut stage, 10 + u64::from(generation));
        end(&mut stage, p(1, generation), SEGFAULT);
    }
    stage.advance(ms(50));
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn a_copy_behind_the_poison_is_refused_with_it() {
    let mut stage = Stage::ready(Settings { prefetch: 1, ..hardy(1) });
    stage.arrive(100);
    stage.complete(100, p(1, 1));
    arrive_poison(&mut stage, 1);
    end(&mut stage, p(1, 1), SEGFAULT);
    arrive_poison(&mut stage, 2);
    arrive_poison(&mut stage, 3);
    assert_eq!(stage.take(), [assign(2, p(1, 2)), assign_behind(3, p(1, 2))]);
    stage.exit(p(1, 2), SEGFAULT);
    let refused = refuse(3, quarantined(SEGFAULT, secs(60)));
    assert_eq!(stage.take(), [crashed(2, SEGFAULT), refused], "nothing of it ran");
}

#[test]
fn a_copy_for_one_worker_or_a_leased_place_is_refused_too() {
    use ostler_core::{LeaseId, Target, WorkerId};
    let mut stage = killed(2, SEGFAULT);
    stage.ask_lease(1, 1);
    stage.forget();
    for (id, target) in [(10, Target::Worker(WorkerId(1))), (11, Target::Lease(LeaseId(1), 0))] {
        stage.arrive_as(id, |spec| (spec.fingerprint, spec.target) = (POISON, target));
        assert_eq!(stage.take(), [refuse(id, quarantined(SEGFAULT, secs(60)))]);
    }
}

#[test]
fn suspects_are_bounded_and_the_one_longest_ago_makes_room() {
    let mut stage = Stage::ready(hardy(1));
    let mut generation = 0;
    let mut kill_with = |stage: &mut Stage, fingerprint: u64| {
        generation += 1;
        stage.advance(ms(1));
        stage.arrive_as(u64::from(generation), |spec| spec.fingerprint = fingerprint);
        end(stage, p(1, generation), SEGFAULT);
    };
    for fingerprint in 0..=1_024 {
        kill_with(&mut stage, fingerprint);
    }
    kill_with(&mut stage, 1_024);
    kill_with(&mut stage, 0);
    let mut refused = |id, fingerprint| {
        stage.arrive_as(id, |spec| spec.fingerprint = fingerprint);
        matches!(stage.take()[..], [Command::Refuse { .. }])
    };
    assert!(refused(10_000, 1_024), "the last is remembered");
    assert!(!refused(10_001, 0), "the first was forgotten");
}
