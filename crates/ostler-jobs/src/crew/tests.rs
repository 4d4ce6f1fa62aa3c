use std::time::{Duration, Instant};

use super::*;

const LONG: Duration = Duration::from_secs(5);
const BRIEF: Duration = Duration::from_millis(1);
const NONE: [u32; 0] = [];

fn crew(places: usize) -> (Crew<u32>, Instant) {
    let mut crew = Crew::new();
    crew.set_places(places);
    (crew, Instant::now())
}

/// Lets in whoever is wanted; how many came.
fn let_in(crew: &mut Crew<u32>, now: Instant) -> usize {
    let mut came = 0;
    while crew.wants_hand(now) {
        crew.enters();
        came += 1;
    }
    came
}

fn place(crew: &mut Crew<u32>) {
    crew.moves(Stand::Seeking, Stand::Idle);
}

fn run(crew: &mut Crew<u32>, now: Instant) -> u32 {
    match crew.next(Duration::ZERO, now) {
        Next::Run(job) => job,
        other => panic!("{other:?}"),
    }
}

fn done(crew: &mut Crew<u32>, time: Duration) {
    crew.ran(time);
    crew.moves(Stand::Busy, Stand::Idle);
}

/// A claim that brings these.
fn bring(crew: &mut Crew<u32>, jobs: Vec<u32>, now: Instant) -> usize {
    let limit = crew.claim(now).expect("there is something to claim for");
    assert_eq!(crew.claimed(limit, jobs, now), NONE);
    limit
}

#[test]
fn without_news_nobody_comes() {
    let (mut crew, now) = crew(4);
    assert_eq!(let_in(&mut crew, now), 0);
    assert_eq!(crew.claim(now), None);
}

#[test]
fn one_job_brings_one_hand_and_the_next_look_sends_it_home() {
    let (mut crew, now) = crew(4);
    crew.more(1);
    assert_eq!(let_in(&mut crew, now), 1);
    assert_eq!(crew.claim(now), None, "no place is had yet");
    place(&mut crew);
    assert_eq!(bring(&mut crew, vec![1], now), 1);
    assert_eq!(run(&mut crew, now), 1);
    assert_eq!(let_in(&mut crew, now), 0, "a second one would make the pool grow for nothing");
    done(&mut crew, LONG);
    assert_eq!(crew.next(Duration::ZERO, now), Next::Wait);
    assert_eq!(bring(&mut crew, vec![], now), 1);
    assert_eq!(crew.next(Duration::ZERO, now), Next::Leave);
    crew.leaves(Stand::Idle);
    assert_eq!(let_in(&mut crew, now), 0);
}

#[test]
fn many_jobs_bring_as_many_hands_as_there_are_places() {
    let (mut crew, now) = crew(4);
    crew.more(10);
    assert_eq!(let_in(&mut crew, now), 4);
}

#[test]
fn in_doubt_one_more_comes_as_long_as_something_is_found() {
    let (mut crew, now) = crew(4);
    crew.perhaps();
    for job in 1..=3 {
        assert_eq!(let_in(&mut crew, now), 1);
        place(&mut crew);
        bring(&mut crew, vec![job], now);
        run(&mut crew, now);
    }
    assert_eq!(let_in(&mut crew, now), 1);
    place(&mut crew);
    bring(&mut crew, vec![], now);
    assert_eq!(crew.next(Duration::ZERO, now), Next::Leave);
    crew.leaves(Stand::Idle);
    assert_eq!(let_in(&mut crew, now), 0);
}

#[test]
fn what_nobody_told_of_is_found_by_whoever_is_there_and_raises_doubt() {
    let (mut crew, now) = crew(4);
    crew.more(1);
    let_in(&mut crew, now);
    place(&mut crew);
    bring(&mut crew, vec![1], now);
    run(&mut crew, now);
    done(&mut crew, LONG);
    bring(&mut crew, vec![2], now);
    run(&mut crew, now);
    assert_eq!(let_in(&mut crew, now), 1);
}

#[test]
fn one_who_waits_for_a_place_leaves_when_his_job_is_gone() {
    let (mut crew, now) = crew(4);
    crew.more(2);
    assert_eq!(let_in(&mut crew, now), 2);
    assert!(!crew.has_spare(now));
    crew.fewer(1);
    assert!(crew.has_spare(now));
    crew.leaves(Stand::Seeking);
    assert!(!crew.has_spare(now), "the other one is needed");
}

#[test]
fn long_jobs_are_claimed_for_places_that_are_had() {
    let (mut crew, now) = crew(4);
    crew.more(100);
    let_in(&mut crew, now);
    place(&mut crew);
    place(&mut crew);
    assert_eq!(bring(&mut crew, vec![1, 2], now), 2);
    crew.ran(LONG);
    run(&mut crew, now);
    run(&mut crew, now);
    assert_eq!(crew.claim(now), None);
    place(&mut crew);
    assert_eq!(crew.claim(now), Some(1));
}

#[test]
fn short_jobs_are_claimed_ahead_for_each_place() {
    let (mut crew, now) = crew(2);
    crew.more(100);
    let_in(&mut crew, now);
    place(&mut crew);
    place(&mut crew);
    bring(&mut crew, vec![1, 2], now);
    run(&mut crew, now);
    done(&mut crew, BRIEF);
    assert_eq!(bring(&mut crew, (3..12).collect(), now), 2 + 2 * AHEAD - 1);
    while crew.with_places() > 0 && !crew.stock.is_empty() {
        run(&mut crew, now);
        done(&mut crew, LONG);
    }
    assert_eq!(crew.claim(now), Some(2), "they are long by now");
}

#[test]
fn one_claim_is_under_way_at_a_time() {
    let (mut crew, now) = crew(2);
    crew.more(2);
    let_in(&mut crew, now);
    place(&mut crew);
    assert_eq!(crew.claim(now), Some(1));
    place(&mut crew);
    assert_eq!(crew.claim(now), None);
    assert_eq!(crew.claimed(1, vec![1], now), NONE);
    run(&mut crew, now);
    assert_eq!(crew.claim(now), Some(1));
}

#[test]
fn news_during_a_claim_is_not_answered_by_it() {
    let (mut crew, now) = crew(2);
    crew.more(1);
    let_in(&mut crew, now);
    place(&mut crew);
    let limit = crew.claim(now).expect("there is a place");
    crew.more(1);
    assert_eq!(crew.claimed(limit, vec![], now), NONE);
    assert_eq!(crew.next(Duration::ZERO, now), Next::Wait);
    assert_eq!(crew.claim(now), Some(1));
}

#[test]
fn a_place_is_given_back_after_a_while_even_with_work_waiting() {
    let (mut crew, now) = crew(2);
    crew.more(4);
    let_in(&mut crew, now);
    place(&mut crew);
    place(&mut crew);
    bring(&mut crew, vec![1, 2], now);
    assert_eq!(crew.next(HOLD, now), Next::Leave);
    crew.leaves(Stand::Idle);
    assert_eq!(let_in(&mut crew, now), 1, "somebody asks for a place again");
}

#[test]
fn the_last_one_runs_what_was_fetched_before_he_goes() {
    let (mut crew, now) = crew(1);
    crew.more(2);
    let_in(&mut crew, now);
    place(&mut crew);
    bring(&mut crew, vec![1], now);
    assert_eq!(crew.next(HOLD, now), Next::Run(1));
    done(&mut crew, LONG);
    assert_eq!(crew.next(HOLD, now), Next::Leave);
}

#[test]
fn the_last_one_gets_nothing_more_once_his_time_is_over() {
    let (mut crew, now) = crew(2);
    crew.more(100);
    let_in(&mut crew, now);
    place(&mut crew);
    crew.ran(BRIEF);
    bring(&mut crew, (0..5).collect(), now);
    for job in 0..5 {
        assert_eq!(crew.next(HOLD, now), Next::Run(job));
        assert_eq!(crew.claim(now), None, "or he would never go");
        done(&mut crew, BRIEF);
    }
    assert_eq!(crew.next(HOLD, now), Next::Leave);
    crew.leaves(Stand::Idle);
    place(&mut crew);
    assert!(crew.claim(now).is_some(), "the next one begins anew");
}

#[test]
fn what_was_fetched_and_not_begun_goes_back_in_time() {
    let (mut crew, now) = crew(1);
    crew.more(1);
    let_in(&mut crew, now);
    place(&mut crew);
    bring(&mut crew, vec![1], now);
    crew.leaves(Stand::Idle);
    assert_eq!(crew.next_look(now), Some(now + STALE));
    assert_eq!(crew.sort_out(now + STALE - BRIEF, |_| false), NONE);
    assert_eq!(crew.sort_out(now + STALE, |_| false), [1]);
    assert_eq!(crew.next_look(now), None);
}

#[test]
fn what_nobody_wants_any_more_is_sorted_out_at_once() {
    let (mut crew, now) = crew(3);
    crew.more(3);
    let_in(&mut crew, now);
    (0..3).for_each(|_| place(&mut crew));
    bring(&mut crew, vec![1, 2, 3], now);
    assert_eq!(crew.sort_out(now, |job| *job == 2), [2]);
    assert_eq!((run(&mut crew, now), run(&mut crew, now)), (1, 3));
}

#[test]
fn a_pool_that_refuses_is_left_alone_for_longer_and_longer() {
    let (mut crew, mut now) = crew(1);
    crew.more(1);
    let mut spans = Vec::new();
    for _ in 0..8 {
        crew.refused(now);
        assert_eq!((let_in(&mut crew, now), crew.claim(now)), (0, None));
        let again = crew.next_look(now).expect("it is tried again");
        spans.push((again - now).as_millis());
        now = again;
        assert!(crew.wants_hand(now));
    }
    assert_eq!(spans, [20, 40, 80, 160, 320, 640, 1000, 1000]);
    crew.ran(LONG);
    crew.refused(now);
    assert_eq!(crew.next_look(now), Some(now + FIRST_REST));
}

#[test]
fn a_failed_claim_is_made_again_after_a_rest() {
    let (mut crew, now) = crew(1);
    crew.more(1);
    let_in(&mut crew, now);
    place(&mut crew);
    crew.claim(now).expect("there is a place");
    crew.unclaimed(now);
    assert_eq!(crew.next(Duration::ZERO, now), Next::Leave);
    crew.leaves(Stand::Idle);
    assert_eq!(let_in(&mut crew, now + FIRST_REST), 1);
}

#[test]
fn at_the_end_everything_comes_back_and_nobody_stays() {
    let (mut crew, now) = crew(2);
    crew.more(4);
    let_in(&mut crew, now);
    place(&mut crew);
    place(&mut crew);
    bring(&mut crew, vec![1, 2], now);
    run(&mut crew, now);
    let limit = crew.claim(now);
    assert_eq!(crew.close(), [2]);
    assert_eq!(crew.next(Duration::ZERO, now), Next::Leave);
    assert!(crew.has_spare(now));
    assert_eq!(let_in(&mut crew, now), 0);
    assert_eq!(limit, None);
}

#[test]
fn what_is_claimed_after_the_end_comes_back_too() {
    let (mut crew, now) = crew(1);
    crew.more(1);
    let_in(&mut crew, now);
    place(&mut crew);
    let limit = crew.claim(now).expect("there is a place");
    assert_eq!(crew.close(), NONE);
    assert_eq!(crew.claimed(limit, vec![1], now), [1]);
}

#[test]
fn a_large_crew_forgets_nothing_that_it_was_told_of() {
    let (mut crew, now) = crew(64);
    let mut waiting: Vec<u32> = (0..1_000).collect();
    crew.more(waiting.len());
    let_in(&mut crew, now);
    (0..64).for_each(|_| place(&mut crew));
    crew.ran(BRIEF);
    while let Some(limit) = crew.claim(now) {
        // The ledger gives no more at once.
        let given = waiting.len().min(limit).min(CLAIM_MAX);
        assert_eq!(crew.claimed(limit, waiting.drain(..given).collect(), now), NONE);
        while let Next::Run(_) = crew.next(Duration::ZERO, now) {
            done(&mut crew, BRIEF);
        }
    }
    assert_eq!(waiting, NONE);
}

#[test]
fn as_many_run_as_there_are_places_however_many_that_are() {
    let (mut crew, now) = crew(2 * ENDS_MAX);
    crew.more(2 * ENDS_MAX);
    assert_eq!(let_in(&mut crew, now), 2 * ENDS_MAX);
    (0..2 * ENDS_MAX).for_each(|_| place(&mut crew));
    for job in 0..2 {
        assert_eq!(bring(&mut crew, vec![job; CLAIM_MAX], now), CLAIM_MAX);
        (0..CLAIM_MAX).for_each(|_| assert_eq!(run(&mut crew, now), job));
    }
    assert_eq!(crew.busy, 2 * ENDS_MAX);
}

#[test]
fn nothing_is_begun_while_the_store_is_behind() {
    let (mut crew, now) = crew(3);
    crew.more(4);
    let_in(&mut crew, now);
    place(&mut crew);
    bring(&mut crew, vec![1], now);
    (0..3 + ENDS_MAX - 1).for_each(|_| crew.ends());
    assert!(!crew.has_spare(now), "one more end would find room");
    crew.ends();
    assert_eq!(crew.next(Duration::ZERO, now), Next::Wait);
    assert_eq!(crew.next(HOLD, now), Next::Leave, "others can use the place");
    place(&mut crew);
    assert_eq!((let_in(&mut crew, now), crew.claim(now)), (0, None));
    assert!(crew.has_spare(now));
    crew.ends();
    assert!(!crew.end_kept(), "still too many");
    assert!(crew.end_kept());
    assert_eq!(run(&mut crew, now), 1);
    assert!(crew.claim(now).is_some());
    assert!(!crew.end_kept(), "nobody waits for this one");
}
