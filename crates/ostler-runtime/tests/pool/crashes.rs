//! Processes that end by themselves: the class of the end, the last words, what is held against
//! the request, and processes that doubt themselves.

use ostler_runtime::core::{Exit, Refusal, Settings, Status, StopReason, Trigger};
use ostler_runtime::{
    Call, CallError, EventKind, Failure, Pool, PoolSpec, ProcessSettings, Profile, Refused,
};
use serde_json::json;

use super::support::*;

async fn crashing(yard: &Yard, size: u32) -> Pool {
    let settings = Settings { restart_max: 100, ..brisk(size) };
    let pool = start(yard.around(spec(functions("crashes.py"), settings))).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

#[tokio::test]
async fn every_class_of_crash_is_told_with_the_last_words() {
    let pool = crashing(&Yard::new(), 1).await;
    let signal = |signal: i32, name: &str, class: &str| {
        (Exit::Signal(signal), json!({ "class": class, "signal": name }), class.to_owned())
    };
    let code =
        |code: i32| (Exit::Code(code), json!({ "class": "exit", "code": code }), "exit".to_owned());
    let cases = [
        ("segfault", "", signal(libc::SIGSEGV, "SIGSEGV", "segfault")),
        ("abort", "", signal(libc::SIGABRT, "SIGABRT", "abort")),
        ("kill", "", signal(libc::SIGKILL, "SIGKILL", "killed")),
        ("leave", "[0]", code(0)),
        ("leave", "[41]", code(41)),
    ];
    for (life, (function, arguments, (exit, details, class))) in (1..).zip(cases) {
        let failure = failure(pool.call(call(function, arguments))).await;
        let Failure::Crashed { exit: seen, stderr, .. } = &failure else { panic!("{failure:?}") };
        assert_eq!(*seen, exit, "{function}");
        let last_word = stderr.iter().any(|line| line == "the last word");
        assert!(last_word, "{function}: {stderr:?}");
        let error = CallError::from(failure);
        assert_eq!((error.known().code, error.known().status), ("worker_crashed", 502));
        let told = error.details(false);
        assert_eq!(told["exit"], details, "{function}");
        assert_eq!(told["outcome_unknown"], true);
        until("it is told", || {
            let crashes = events(&pool).into_iter().filter(|e| e.kind == EventKind::WorkerCrashed);
            crashes.clone().count() == life
                && crashes.last().is_some_and(|event| event.reason == Some(&*class))
        })
        .await;
    }
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_request_that_killed_two_processes_is_refused_and_others_are_not() {
    let pool = crashing(&Yard::new(), 1).await;
    for _ in 0..2 {
        let lost = failure(pool.call(call("segfault", r#"["poison"]"#))).await;
        assert!(matches!(lost, Failure::Crashed { .. }), "{lost:?}");
    }
    let refused = end(pool.call(call("segfault", r#"["poison"]"#))).await.unwrap_err();
    assert_eq!((refused.known().code, refused.known().status), ("quarantined", 422));
    assert!(refused.known().retry_after.is_some());
    assert!(refused.to_string().contains("SIGSEGV"), "{refused}");
    let Failure::Crashed { .. } = failure(pool.call(call("segfault", r#"["other"]"#))).await else {
        panic!("another payload is another request")
    };
    assert_eq!(ask(&pool, "echo", r#"["poison"]"#).await, r#""poison""#);
    assert_eq!(generation(&pool), 4, "the refused one reached nobody");
    stop(pool).await;
}

#[tokio::test]
async fn an_idempotent_poison_kills_two_processes_and_no_more() {
    let pool = crashing(&Yard::new(), 2).await;
    let poison = Call { idempotent: true, ..call("segfault", r#"["poison"]"#) };
    let error = end(pool.call(poison)).await.unwrap_err();
    assert!(
        matches!(&error, CallError::Failed(Failure::Crashed { .. }))
            || matches!(&error, CallError::Refused(Refused::Pool(Refusal::Quarantined { .. }))),
        "{error:?}"
    );
    let crashes = || pool.info().view.counters.restarts_unplanned;
    until("both are replaced", || crashes() == 2 && pool.info().view.ready == 2).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert_eq!(crashes(), 2);
    stop(pool).await;
}

#[tokio::test]
async fn kills_from_outside_are_not_held_against_a_request() {
    let yard = Yard::new();
    let pool = crashing(&yard, 1).await;
    for life in 1..=3 {
        let running = pool.call(call("hold", r#"["innocent"]"#));
        until("it runs", || yard.lines("begun").len() == life).await;
        send(pid(&pool, 0).await, libc::SIGKILL);
        assert!(matches!(failure(running).await, Failure::Crashed { .. }), "life {life}");
    }
    yard.give("go");
    assert_eq!(ask(&pool, "hold", r#"["innocent"]"#).await, r#""innocent""#);
    stop(pool).await;
}

#[tokio::test]
async fn a_process_that_doubts_itself_answers_and_is_replaced_as_after_a_crash() {
    let pool = crashing(&Yard::new(), 1).await;
    let tainted = Process::find(ask(&pool, "taint", "").await.parse().expect("a pid"));
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert_eq!(generation(&pool), 2);
    gone(&tainted).await;
    let stopping = event(&pool, EventKind::WorkerStopping).await;
    assert_eq!(stopping.reason, Some("tainted"));
    let counters = pool.info().view.counters;
    assert_eq!((counters.restarts_unplanned, counters.restarts_planned), (1, 0));
    stop(pool).await;
}

#[tokio::test]
async fn a_tainted_process_gets_no_new_work_and_finishes_what_it_has() {
    let yard = Yard::new();
    let profile = Profile::Thread { threads: 4 };
    let processes = ProcessSettings { profile, ..ProcessSettings::default() };
    let spec = PoolSpec { processes, ..spec(functions("sides.py"), brisk(1)) };
    let pool = start(yard.around(spec)).await;
    let inside =
        ["side_hold", "taint_and_hold"].map(|function| pool.call(call(function, r#"["inside"]"#)));
    until("both are inside", || yard.lines("begun").len() == 2).await;
    until("it is on its way out", || {
        pool.info().workers[0].view.stopping == Some(StopReason::Tainted)
    })
    .await;
    let later = pool.call(call("quick", "[1]"));
    until("it waits for the next process", || pool.info().view.queued == 1).await;
    yard.give("go");
    for running in inside {
        assert_eq!(text(&end(running).await.expect("it finishes").body), r#""inside""#);
    }
    assert_eq!(text(&end(later).await.expect("the next one serves").body), "1");
    assert_eq!(generation(&pool), 2);
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_that_asks_to_be_replaced_leaves_when_its_successor_is_ready() {
    let pool = crashing(&Yard::new(), 1).await;
    let old = Process::find(ask(&pool, "retire", "").await.parse().expect("a pid"));
    gone(&old).await;
    let answered = end(pool.call(call("echo", "[1]"))).await.expect("the new one serves");
    assert_eq!(answered.worker.as_deref(), Some("test-2"));
    let history = pool.worker_history("test-1").expect("it is remembered");
    let last = history.statuses.last().expect("it had some").change;
    assert_eq!((last.to, last.trigger), (Status::Completed, Trigger::Complete));
    assert_eq!(pool.info().view.counters.restarts_unplanned, 0);
    stop(pool).await;
}

/// The limit on open files of a process below this one. Returns the one before.
fn limit_files(pid: i32, soft: libc::rlim_t) -> libc::rlim_t {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to values that outlive the call.
    let read = unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut old) };
    assert_eq!(read, 0, "{}", std::io::Error::last_os_error());
    let new = libc::rlimit { rlim_cur: soft, ..old };
    // SAFETY: as above.
    let set =
        unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const new, std::ptr::null_mut()) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    old.rlim_cur
}

/// The root shim of the pool cannot have the descriptors that one more process needs.
#[tokio::test]
async fn a_worker_that_the_system_refuses_is_paused_and_resumes_by_itself() {
    let settings = Settings { restart_max: 1, queue_timeout: LIMIT, ..brisk(1) };
    let pool = start(spec(program("answers-twice.sh").await, settings)).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    let line = Process::lineage(pid(&pool, 0).await);
    let root = line.last().expect("a root shim").pid;
    let open = std::fs::read_dir(format!("/proc/{root}/fd")).expect("its files").count();
    // A spawn brings six or seven and needs two more; two come free with the process that ends.
    let before = limit_files(root, open as libc::rlim_t + 5);
    send(line[0].pid, libc::SIGKILL);
    let paused = || pool.info().workers[0].view.status == Status::Paused;
    until("it is paused", paused).await;
    let waiting = pool.call(call("echo", "2"));
    let refused = |pool: &Pool| {
        let history = pool.worker_history("test-1").expect("it is remembered");
        let steps = history.statuses.iter();
        steps.filter(|step| step.change.trigger == Trigger::PauseExhausted).count()
    };
    until("it is tried again", || refused(&pool) >= 3).await;
    limit_files(root, before);
    assert_eq!(text(&end(waiting).await.expect("the pressure is over").body), "2");
    assert_eq!(pool.info().workers[0].view.status, Status::Running);
    let transition = events(&pool).into_iter().find(|event| event.to == Some("PAUSED"));
    assert_eq!(transition.and_then(|event| event.reason), Some("resource_exhausted"));
    assert_eq!(pool.info().view.counters.restarts_unplanned, 1, "a refusal costs no budget");
    stop(pool).await;
}
