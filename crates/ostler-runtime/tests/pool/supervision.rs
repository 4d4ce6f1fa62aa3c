//! Orders of the supervisor, and the end of a pool, also an abrupt one.

use std::process::{Command, Stdio};

use ostler_runtime::core::{Action, Exit, Refusal, Reply, Settings, Status, WorkerId};
use ostler_runtime::{CallError, Failure, Pool, PoolSpec, Refused};

use super::support::*;

const FIRST: WorkerId = WorkerId(1);

async fn order(pool: &Pool, action: Action) -> Reply {
    within("the order is answered", pool.order(action)).await
}

fn done(worker: u64, status: Status) -> Reply {
    Reply::Done { worker: WorkerId(worker), status }
}

async fn echoing(size: u32) -> Pool {
    let pool = start(spec(program("answers-twice.sh").await, brisk(size))).await;
    within("all are ready", pool.all_ready()).await;
    pool
}

#[tokio::test]
async fn a_paused_worker_gets_no_work_until_it_is_resumed() {
    let pool = echoing(2).await;
    let pause = Action::Pause { worker: FIRST, freeze: false };
    assert_eq!(order(&pool, pause).await, done(1, Status::Paused));
    for _ in 0..10 {
        let answered = end(pool.call(call("echo", "1"))).await.expect("the other one serves");
        assert_eq!(answered.worker.as_deref(), Some("test-2"));
    }
    let other = Action::Pause { worker: WorkerId(2), freeze: false };
    assert_eq!(order(&pool, other).await, done(2, Status::Paused));
    let waiting = pool.call(call("echo", "2"));
    assert_eq!(order(&pool, Action::Resume(FIRST)).await, done(1, Status::Running));
    let answered = end(waiting).await.expect("it is served after all");
    assert_eq!(answered.worker.as_deref(), Some("test-1"));
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn an_order_that_the_status_forbids_changes_nothing_and_says_what_is_allowed() {
    let pool = echoing(1).await;
    let Reply::Illegal { from, to, allowed } = order(&pool, Action::Resume(FIRST)).await else {
        panic!("it runs already")
    };
    assert_eq!((from, to), (Status::Running, Status::Running));
    assert_eq!(allowed, [Status::Completed, Status::Failed, Status::Paused, Status::Terminated]);
    assert_eq!(order(&pool, Action::Resume(WorkerId(99))).await, Reply::NoSuchWorker);
    assert_eq!(pool.info().view.counters.illegal_orders, 1);
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_frozen_worker_stands_still_and_goes_on_when_it_is_resumed() {
    let pool = echoing(1).await;
    let pid = pid(&pool, 0).await;
    let pause = Action::Pause { worker: FIRST, freeze: true };
    assert_eq!(order(&pool, pause).await, done(1, Status::Paused));
    until("it is stopped", || Process::state(pid) == "T").await;
    assert_eq!(order(&pool, Action::Resume(FIRST)).await, done(1, Status::Running));
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert_eq!(generation(&pool), 1, "the same process");
    stop(pool).await;
}

#[tokio::test]
async fn a_frozen_worker_does_not_keep_its_pool_from_stopping() {
    let pool = echoing(1).await;
    let frozen = Process::find(pid(&pool, 0).await);
    let pause = Action::Pause { worker: FIRST, freeze: true };
    assert_eq!(order(&pool, pause).await, done(1, Status::Paused));
    until("it is stopped", || Process::state(frozen.pid) == "T").await;
    stop(pool).await;
    assert!(!frozen.lives());
}

#[tokio::test]
async fn a_terminated_worker_is_gone_when_the_order_is_answered() {
    let pool = start(spec(functions("functions.py"), brisk(2))).await;
    within("all are ready", pool.all_ready()).await;
    let running = pool.call(call("wait", ""));
    until("it runs", || running.worker().is_some()).await;
    let held = if running.worker().as_deref() == Some("test-1") { 1 } else { 2 };
    let process = Process::find(pid(&pool, held as usize - 1).await);
    let reply = order(&pool, Action::Terminate(WorkerId(held))).await;
    assert_eq!(reply, done(held, Status::Terminated));
    assert!(!process.lives(), "it outlived its order");
    let failure = failure(running).await;
    assert!(matches!(failure, Failure::Crashed { .. }), "{failure:?}");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    stop(pool).await;
}

#[tokio::test]
async fn a_recycled_worker_leaves_when_its_successor_is_ready() {
    let pool = echoing(1).await;
    let old = Process::find(pid(&pool, 0).await);
    let reply = order(&pool, Action::Recycle(FIRST)).await;
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    until("the old one has left", || !old.lives()).await;
    let answered = end(pool.call(call("echo", "1"))).await.expect("the new one serves");
    assert_eq!(answered.worker.as_deref(), Some("test-2"));
    let info = pool.info();
    let (planned, unplanned) =
        (info.view.counters.restarts_planned, info.view.counters.restarts_unplanned);
    assert_eq!(unplanned, 0, "{planned} planned");
    stop(pool).await;
}

#[tokio::test]
async fn a_worker_made_by_order_takes_no_work_of_the_pool() {
    let pool = echoing(1).await;
    assert_eq!(order(&pool, Action::Create).await, done(2, Status::Idle));
    assert_eq!(order(&pool, Action::Start(WorkerId(2))).await, done(2, Status::Running));
    for _ in 0..10 {
        let answered = end(pool.call(call("echo", "1"))).await.expect("it is served");
        assert_eq!(answered.worker.as_deref(), Some("test-1"));
    }
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_that_shuts_down_finishes_what_runs_and_refuses_what_waits() {
    let yard = Yard::new();
    let pool = start(yard.around(spec(functions("functions.py"), brisk(1)))).await;
    let running = pool.call(call("hold", r#"["inside"]"#));
    until("it runs", || yard.lines("begun").len() == 1).await;
    let waiting = pool.call(call("record", r#"["waiting"]"#));
    pool.shut_down(false);
    let refused = CallError::Refused(Refused::Pool(Refusal::ShuttingDown));
    assert_eq!(end(waiting).await.unwrap_err(), refused);
    assert_eq!(end(pool.call(call("record", r#"["new"]"#))).await.unwrap_err(), refused);
    yard.give("go");
    assert_eq!(text(&end(running).await.expect("it finishes").body), r#""inside""#);
    within("the pool stops", pool.stopped()).await;
    assert!(yard.lines("ledger").is_empty());
}

#[tokio::test]
async fn a_pool_that_shuts_down_now_waits_for_nobody() {
    let pool = one(functions("functions.py")).await;
    let running = pool.call(call("wait", "[600]"));
    until("it runs", || running.worker().is_some()).await;
    let line = Process::lineage(pid(&pool, 0).await);
    pool.shut_down(true);
    within("the pool stops", pool.stopped()).await;
    let Failure::Crashed { exit, .. } = failure(running).await else { panic!("it was killed") };
    assert_eq!(exit, Exit::Signal(libc::SIGKILL));
    assert!(!line[0].lives());
}

/// The processes of a pool that a host lets go of, beside a child of its own.
async fn abandoned(drop_it: impl AsyncFnOnce(Pool)) {
    let mut own = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().expect("cat runs");
    let yard = Yard::new();
    let pool = start(yard.around(spec(program("forks-grandchild.sh").await, brisk(2)))).await;
    within("all are ready", pool.all_ready()).await;
    let grandchild = ask(&pool, "vice", "").await.parse().expect("a pid");
    let mut all = vec![Process::find(grandchild)];
    for worker in 0..2 {
        all.extend(Process::lineage(pid(&pool, worker).await));
    }
    assert!(all.len() >= 5, "a worker, its shim and the root shim: {all:?}");
    drop_it(pool).await;
    for process in &all {
        gone(process).await;
    }
    assert!(own.try_wait().expect("still ours to wait for").is_none(), "it was killed");
    drop(own.stdin.take());
    assert!(own.wait().expect("still ours to wait for").success());
}

#[tokio::test]
async fn a_dropped_pool_leaves_no_process_and_other_children_alone() {
    abandoned(async |pool| drop(pool)).await;
}

#[tokio::test]
async fn a_pool_dropped_by_a_panic_leaves_no_process() {
    abandoned(async |pool| {
        let task = tokio::spawn(async move {
            let _pool = pool;
            panic!("as part of the test");
        });
        task.await.expect_err("it panicked");
    })
    .await;
}

#[tokio::test]
async fn a_pool_dropped_while_it_works_leaves_no_process() {
    let pool = start(spec(functions("functions.py"), Settings::of_size(1))).await;
    let running = pool.call(call("wait", "[600]"));
    until("it runs", || running.worker().is_some()).await;
    let line = Process::lineage(pid(&pool, 0).await);
    drop(pool);
    drop(running);
    for process in &line {
        gone(process).await;
    }
}

#[tokio::test]
async fn a_pool_dropped_while_it_starts_leaves_no_process() {
    let pool = start(spec(program("never-ready.sh").await, brisk(3))).await;
    let line = Process::lineage(pid(&pool, 0).await);
    drop(pool);
    for process in &line {
        gone(process).await;
    }
}

#[tokio::test]
async fn a_pool_that_is_stopped_while_it_starts_leaves_no_process() {
    for now in [false, true] {
        let name = format!("early-{}-{now}", std::process::id());
        let spec = PoolSpec::new(&*name, program("never-ready.sh").await, brisk(4));
        let pool = start(spec).await;
        pool.shut_down(now);
        within("the pool stops", pool.stopped()).await;
        assert_eq!(processes_of(&name), [0; 0], "now: {now}");
    }
}

#[test]
fn a_pool_whose_runtime_ends_leaves_no_process() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (pool, line) = runtime.block_on(async {
        let pool = echoing(1).await;
        let line = Process::lineage(pid(&pool, 0).await);
        (pool, line)
    });
    drop(runtime);
    drop(pool);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for process in &line {
        runtime.block_on(gone(process));
    }
}
