//! A pool gets new code or new settings while it serves; if the new does not come up, nothing has
//! changed.

use std::collections::BTreeSet;
use std::time::Duration;

use ostler_runtime::core::{Evict, Keyed, Settings};
use ostler_runtime::{
    Affinity, Call, Continuity, EventKind, KeyedBy, Pool, PoolSpec, Program, ReloadError,
};

use super::crowd::*;
use super::support::*;

/// A file of functions that is written anew, and pools that serve it.
struct Code {
    yard: Yard,
}

impl Code {
    fn new() -> Code {
        let code = Code { yard: Yard::new() };
        code.write(&version(1));
        code
    }

    fn write(&self, source: &str) {
        // At once, for whoever reads it just now.
        let draft = self.yard.path("draft");
        std::fs::write(&draft, source).expect("a file");
        std::fs::rename(draft, self.yard.path("code.py")).expect("a file");
    }

    fn spec(&self, settings: Settings) -> PoolSpec {
        let file = self.yard.path("code.py");
        let program = Program::Python { file, interpreter: "python3".to_owned() };
        self.yard.around(spec(program, Settings { queue_timeout: LIMIT, ..settings }))
    }

    async fn pool(&self, settings: Settings) -> Pool {
        let pool = start(self.spec(settings)).await;
        within("all are ready", pool.all_ready()).await;
        pool
    }
}

fn version(n: u32) -> String {
    format!(
        "
import os, time
import ostler

@ostler.function
def version():
    time.sleep(0.002)
    return {n}

@ostler.function
def where():
    return os.getpid()

@ostler.function
def stay():
    with open(os.path.join(os.environ['YARD'], 'begun'), 'a') as begun:
        begun.write('one\\n')
    while not os.path.exists(os.path.join(os.environ['YARD'], 'go')):
        time.sleep(0.002)
    return {n}
#{}
",
        // Of another size than any other, so that no cache takes it for one of them.
        "#".repeat(n as usize)
    )
}

async fn reload(pool: &Pool, spec: PoolSpec) -> Result<(), ReloadError> {
    within("the reload is answered", pool.reload(spec)).await
}

fn pids(pool: &Pool) -> BTreeSet<i32> {
    pool.info().workers.iter().filter_map(|worker| worker.pid).collect()
}

#[tokio::test]
async fn new_code_takes_over_under_load_and_no_call_fails() {
    let code = Code::new();
    let pool = code.pool(brisk(3)).await;
    let old = pids(&pool);
    let crowd = Crowd::of(4, &pool, &call("version", ""));
    crowd.goes_on(20).await;
    code.write(&version(2));
    reload(&pool, code.spec(brisk(3))).await.expect("it is good");
    until("the old ones have left", || ends(&pool) == ["reloaded"; 3]).await;
    assert!(pids(&pool).is_disjoint(&old));
    assert_eq!(ask(&pool, "version", "").await, "2");
    let answers: BTreeSet<String> =
        crowd.goes_home().await.iter().map(|answered| text(&answered.body)).collect();
    assert_eq!(answers, ["1", "2"].map(str::to_owned).into());
    let events = events(&pool);
    let most = most_between(&events, EventKind::WorkerSpawned, EventKind::WorkerTerminated);
    assert_eq!(most, 4, "processes at a time");
    assert!(fewest_serving(&events) >= 3, "one left too early");
    assert_eq!(pool.info().view.edition, 2);
    nothing_amiss(&pool);
    stop(pool).await;
}

/// What is wrong with it, and what the error must say.
async fn changes_nothing(wrong: &str, said: &[&str]) {
    let code = Code::new();
    let settings = Settings { start_timeout: 2 * LIMIT, ..brisk(2) };
    let pool = code.pool(settings.clone()).await;
    let old = pids(&pool);
    let crowd = Crowd::of(3, &pool, &call("version", ""));
    let mut spec = code.spec(settings);
    match wrong {
        "missing" => {
            let file = code.yard.path("nowhere.py");
            spec.program = Program::Python { file, interpreter: "python3".to_owned() };
        }
        "never ready" => {
            code.write("import time\ntime.sleep(600)\n");
            spec.settings.start_timeout = Duration::from_secs(1);
        }
        source => code.write(source),
    }
    let error = reload(&pool, spec).await.expect_err("it cannot come up").to_string();
    for word in said {
        assert!(error.contains(word), "{wrong:?}: {error}");
    }
    crowd.goes_on(20).await;
    let answers = crowd.goes_home().await;
    assert!(answers.iter().all(|answered| text(&answered.body) == "1"), "{wrong:?}");
    assert_eq!(pids(&pool), old, "{wrong:?}: the same processes");
    let view = pool.info().view;
    assert_eq!((view.edition, view.ready, view.workers), (1, 2, 2), "{wrong:?}");
    assert_eq!(told(&pool, EventKind::RequestFailed), [], "{wrong:?}");
    assert_eq!(told(&pool, EventKind::RequestRejected), [], "{wrong:?}");
    // And it is none the worse for it.
    code.write(&version(3));
    reload(&pool, code.spec(brisk(2))).await.expect("it is good");
    until("the old ones have left", || pids(&pool).is_disjoint(&old)).await;
    assert_eq!(ask(&pool, "version", "").await, "3", "{wrong:?}");
    stop(pool).await;
}

#[tokio::test]
async fn code_that_is_no_python_changes_nothing() {
    changes_nothing("def broken(:\n", &["SyntaxError", "code.py"]).await;
}

#[tokio::test]
async fn a_file_that_is_not_there_changes_nothing() {
    changes_nothing("missing", &["nowhere.py"]).await;
}

#[tokio::test]
async fn code_that_is_never_ready_changes_nothing() {
    changes_nothing("never ready", &["test", "ready"]).await;
}

#[tokio::test]
async fn code_that_exits_at_once_changes_nothing() {
    changes_nothing("import sys\nsys.exit('out of licence')\n", &["out of licence"]).await;
}

#[tokio::test]
async fn code_that_raises_changes_nothing() {
    changes_nothing("import ostler\nraise LookupError('no model')\n", &["LookupError", "no model"])
        .await;
}

#[tokio::test]
async fn a_failed_reload_is_told_and_so_is_one_that_succeeds() {
    let code = Code::new();
    let pool = code.pool(brisk(1)).await;
    code.write("def broken(:\n");
    reload(&pool, code.spec(brisk(1))).await.expect_err("it is broken");
    code.write(&version(2));
    reload(&pool, code.spec(brisk(1))).await.expect("it is good");
    let kinds = [EventKind::PoolReloading, EventKind::PoolReloadFailed, EventKind::PoolReloaded];
    let said: Vec<EventKind> =
        events(&pool).iter().map(|event| event.kind).filter(|kind| kinds.contains(kind)).collect();
    let [reloading, failed, reloaded] = kinds;
    assert_eq!(said, [reloading, failed, reloading, reloaded]);
    stop(pool).await;
}

#[tokio::test]
async fn new_settings_are_taken_with_the_new_code() {
    let code = Code::new();
    let pool = code.pool(brisk(1)).await;
    code.write(&version(2));
    let spec = PoolSpec { request_timeout: 2 * LIMIT, max_body: 10, ..code.spec(brisk(3)) };
    reload(&pool, spec).await.expect("it is good");
    until("there are three", || pool.info().view.ready == 3 && pids(&pool).len() == 3).await;
    assert_eq!(pool.max_body(), 10);
    reload(&pool, code.spec(brisk(2))).await.expect("it is good");
    until("there are two", || pool.info().view.ready == 2 && pids(&pool).len() == 2).await;
    assert_eq!(ask(&pool, "version", "").await, "2");
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn settings_of_a_reload_that_failed_are_not_taken() {
    let code = Code::new();
    let pool = code.pool(brisk(1)).await;
    code.write("def broken(:\n");
    let spec = PoolSpec { max_body: 10, ..code.spec(brisk(3)) };
    reload(&pool, spec).await.expect_err("it is broken");
    let view = pool.info().view;
    assert_eq!((view.min, view.max, view.target, view.workers), (1, 1, 1, 1));
    assert_ne!(pool.max_body(), 10);
    stop(pool).await;
}

#[tokio::test]
async fn a_second_reload_at_once_is_refused() {
    let yard = Yard::new();
    let mut spec = spec(functions("slow_start.py"), brisk(1));
    let sign = yard.path("start").display().to_string();
    spec.processes.env.push(("STARTS_WHEN".to_owned(), sign));
    yard.give("start");
    let pool = start(spec.clone()).await;
    within("it is ready", pool.ready()).await;
    yard.take_back("start");
    let first = tokio::spawn({
        let (pool, spec) = (pool.clone(), spec.clone());
        async move { pool.reload(spec).await }
    });
    event(&pool, EventKind::PoolReloading).await;
    let second = reload(&pool, spec.clone()).await;
    assert!(matches!(second, Err(ReloadError::Underway { .. })), "{second:?}");
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    yard.give("start");
    within("the first one ends", first).await.expect("no panic").expect("it came up");
    reload(&pool, spec).await.expect("now it may");
    stop(pool).await;
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused_with_its_name() {
    let code = Code::new();
    let pool = code.pool(brisk(1)).await;
    let spec = PoolSpec { key: Some(KeyedBy::Session), ..code.spec(brisk(1)) };
    let refused = reload(&pool, spec).await.expect_err("it needs a restart").to_string();
    assert!(refused.contains("`key`"), "{refused}");
    stop(pool).await;
}

#[tokio::test]
async fn what_runs_while_a_pool_is_reloaded_ends_with_the_old_code() {
    let code = Code::new();
    let pool = code.pool(brisk(1)).await;
    let inside = pool.call(call("stay", ""));
    until("it stays", || code.yard.lines("begun").len() == 1).await;
    code.write(&version(2));
    reload(&pool, code.spec(brisk(1))).await.expect("it is good");
    assert_eq!(ask(&pool, "version", "").await, "2");
    code.yard.give("go");
    assert_eq!(text(&end(inside).await.expect("it ends in peace").body), "1");
    until("it has left", || ends(&pool) == ["reloaded"]).await;
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn code_that_changed_within_a_second_is_read_anew() {
    let code = Code::new();
    let at = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let write = |n: u32| {
        code.write(&version(1).replace("return 1", &format!("return {n}")));
        let file = std::fs::File::options().write(true).open(code.yard.path("code.py"));
        file.and_then(|file| file.set_modified(at)).expect("its time is set");
    };
    write(1);
    let pool = code.pool(brisk(1)).await;
    assert_eq!(ask(&pool, "version", "").await, "1");
    write(2);
    reload(&pool, code.spec(brisk(1))).await.expect("it is good");
    until("the old one has left", || ends(&pool) == ["reloaded"]).await;
    assert_eq!(ask(&pool, "version", "").await, "2");
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_that_keeps_no_worker_is_reloaded_too() {
    let code = Code::new();
    let settings = Settings { min: 0, ..brisk(2) };
    let pool = start(code.spec(settings.clone())).await;
    code.write("def broken(:\n");
    let error = reload(&pool, code.spec(settings.clone())).await.expect_err("it is broken");
    assert!(error.to_string().contains("SyntaxError"), "{error}");
    code.write(&version(2));
    reload(&pool, code.spec(settings)).await.expect("it is good");
    assert_eq!(ask(&pool, "version", "").await, "2");
    stop(pool).await;
}

fn keyed(code: &Code, max: u32) -> PoolSpec {
    let keyed = Some(Keyed { evict: Evict::Lru, evict_min_age: Duration::ZERO });
    let spec = code.spec(Settings { min: 0, keyed, ..brisk(max) });
    PoolSpec { key: Some(KeyedBy::Session), affinity: Affinity::StrictQueue, ..spec }
}

#[tokio::test]
async fn a_keyed_pool_with_all_busy_is_reloaded_beside_them() {
    let code = Code::new();
    let pool = start(keyed(&code, 1)).await;
    let busy = of(&pool, "busy", call("stay", "")).await;
    until("it stays", || code.yard.lines("begun").len() == 1).await;
    code.write(&version(2));
    reload(&pool, keyed(&code, 1)).await.expect("it is good");
    let waits = of(&pool, "other", call("version", "")).await;
    until("it waits", || pool.info().view.queued == 1).await;
    code.yard.give("go");
    assert_eq!(served(busy).await.0, 1);
    assert_eq!(served(waits).await.0, 2);
    let events = events(&pool);
    let most = most_between(&events, EventKind::WorkerSpawned, EventKind::WorkerTerminated);
    assert!(most <= 3, "{most} at a time: the busy one, its successor, and the trial that leaves");
    nothing_amiss(&pool);
    stop(pool).await;
}

#[tokio::test]
async fn a_keyed_pool_is_reloaded_session_by_session() {
    let code = Code::new();
    let pool = start(keyed(&code, 2)).await;
    for session in ["a", "b"] {
        assert_eq!(ask_of(&pool, session, "version", "").await.0, 1);
    }
    let old = pids(&pool);
    let session = pool.enter("a", None).await.expect("it may be entered");
    let crowd = Crowd::of(2, &pool, &Call { session: Some(session), ..call("version", "") });
    code.write("def broken(:\n");
    reload(&pool, keyed(&code, 2)).await.expect_err("it is broken");
    assert_eq!(pids(&pool), old);
    crowd.goes_on(10).await;
    code.write(&version(2));
    reload(&pool, keyed(&code, 2)).await.expect("it is good");
    until("the old ones have left", || pids(&pool).is_disjoint(&old)).await;
    crowd.goes_on(10).await;
    crowd.goes_home().await;
    let (said, found) = ask_of(&pool, "b", "version", "").await;
    assert_eq!((said, found), (2.into(), Continuity::Restarted));
    assert_eq!(ask_of(&pool, "c", "version", "").await.0, 2);
    assert_eq!(told(&pool, EventKind::RequestRejected), []);
    stop(pool).await;
}

#[tokio::test]
async fn a_process_that_dies_while_a_reload_is_tried_comes_back_with_the_old_code() {
    let yard = Yard::new();
    let mut slow = spec(functions("slow_start.py"), brisk(1));
    let sign = yard.path("never").display().to_string();
    slow.processes.env.push(("STARTS_WHEN".to_owned(), sign));
    slow.settings.start_timeout = Duration::from_secs(5);
    let pool = start(yard.around(spec(functions("functions.py"), brisk(1)))).await;
    within("it is ready", pool.ready()).await;
    let trying = tokio::spawn({
        let pool = pool.clone();
        async move { pool.reload(slow).await }
    });
    event(&pool, EventKind::PoolReloading).await;
    send(pid(&pool, 0).await, libc::SIGKILL);
    event(&pool, EventKind::WorkerCrashed).await;
    assert_eq!(ask(&pool, "echo", "[1]").await, "1");
    assert_eq!(generation(&pool), 2);
    within("the trial ends", trying).await.expect("no panic").expect_err("it never came up");
    assert_eq!(ask(&pool, "letters", "[1]").await, r#""x""#, "functions of the old code");
    stop(pool).await;
}

#[tokio::test]
async fn a_pool_that_ends_while_it_is_reloaded_says_so() {
    let yard = Yard::new();
    let mut spec = spec(functions("slow_start.py"), brisk(1));
    let sign = yard.path("start").display().to_string();
    spec.processes.env.push(("STARTS_WHEN".to_owned(), sign));
    yard.give("start");
    let pool = start(spec.clone()).await;
    within("it is ready", pool.ready()).await;
    yard.take_back("start");
    let trying = tokio::spawn({
        let pool = pool.clone();
        async move { pool.reload(spec).await }
    });
    event(&pool, EventKind::PoolReloading).await;
    stop(pool).await;
    let ended = within("the reload is answered", trying).await.expect("no panic");
    assert!(matches!(ended, Err(ReloadError::ShuttingDown { .. })), "{ended:?}");
}
