//! What is true of the moment: functions of the newest code, the deadline of the one who waits,
//! the request that a line belongs to, a log that is written while nobody is kept waiting.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use ostler_runtime::core::{Action, Reply, Settings, WorkerId};
use ostler_runtime::{Call, CallError, Directory, Pool, PoolSpec, Program, Refused};
use serde_json::json;

use super::support::*;

fn write_functions(yard: &Yard, names: &[&str]) -> Program {
    let file = yard.path("changing.py");
    let mut code = "import ostler\n".to_owned();
    for name in names {
        code += &format!("@ostler.function\ndef {name}():\n    return {name:?}\n");
    }
    std::fs::write(&file, code).expect("a file");
    Program::Python { file, interpreter: "python3".to_owned() }
}

fn known(pool: &Pool) -> Vec<String> {
    pool.functions().iter().map(|function| function.name.clone()).collect()
}

#[tokio::test]
async fn a_worker_with_changed_code_tells_of_its_functions_anew() {
    let yard = Yard::new();
    let pool = start(spec(write_functions(&yard, &["stays", "goes"]), brisk(1))).await;
    assert_eq!(ask(&pool, "goes", "").await, r#""goes""#);
    write_functions(&yard, &["stays", "comes_later"]);
    let reply = within("it is answered", pool.order(Action::Recycle(WorkerId(1)))).await;
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    until("they are known", || known(&pool).contains(&"comes_later".to_owned())).await;
    assert_eq!(ask(&pool, "comes_later", "").await, r#""comes_later""#);
    assert_eq!(ask(&pool, "stays", "").await, r#""stays""#);
    let error = end(pool.call(call("goes", ""))).await.unwrap_err();
    let CallError::Refused(Refused::FunctionNotFound { known, .. }) = error else {
        panic!("{error:?}")
    };
    assert_eq!(known.len(), 2, "{known:?}");
    stop(pool).await;
}

/// The plain wire need not name a deadline; that of the request which waits may be later than any
/// that the pool would give.
#[tokio::test]
async fn a_nested_call_that_names_no_deadline_has_all_the_time_of_the_one_that_waits() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let yard = Yard::new();
    let directory = Directory::new();
    let mut pools = Vec::new();
    for (name, program) in
        [("called", functions("callers.py")), ("caller", program("calls-back.py").await)]
    {
        let directory = directory.clone();
        let spec = PoolSpec { directory, ..PoolSpec::new(name, program, patient(1)) };
        pools.push(start(yard.around(spec)).await);
    }
    let arguments = json!(["called", "remaining", null]).to_string();
    let parent = Call { timeout: Some(2 * HOUR), ..call("any", &arguments) };
    let answered = end(pools[1].call(parent)).await.expect("it answers");
    let left: f64 = text(&answered.body).parse().expect("seconds");
    assert!(left > HOUR.as_secs_f64(), "{left} s");
    for pool in pools {
        stop(pool).await;
    }
}

#[tokio::test]
async fn a_line_belongs_to_the_request_that_runs_though_another_lies_behind_it() {
    let yard = Yard::new();
    let settings = Settings { prefetch_below: LIMIT, ..patient(1) };
    let pool = start(yard.around(spec(functions("speaks.py"), settings))).await;
    // After one call that is shorter, everything is prefetched.
    assert_eq!(ask(&pool, "quick", "").await, "null");
    let first = pool.call(call("speak", r#"["at last"]"#));
    until("it has begun", || yard.lines("begun").len() == 1).await;
    let second = pool.call(call("quick", ""));
    until("another lies behind it", || pool.info().view.counters.prefetched == 1).await;
    yard.give("speak");
    let mut line = None;
    until("it has spoken", || {
        let output = pool.worker_output("test-1").expect("it is there");
        line = output.after(0).into_iter().find(|line| line.text == "at last");
        line.is_some()
    })
    .await;
    assert_eq!(line.expect("just seen").request.as_deref(), Some(&*first.id()));
    yard.give("go");
    end(first).await.expect("it ends");
    end(second).await.expect("it ends");
    stop(pool).await;
}

/// A reader of the log that looks at the pool, from another thread, before it takes the next word.
struct Curious {
    pool: Mutex<Option<Pool>>,
    heard: AtomicUsize,
    kept_waiting: AtomicBool,
}

impl Curious {
    fn look(&self) {
        let Some(pool) = self.pool.lock().unwrap().clone() else { return };
        let (seen, sees) = mpsc::channel();
        std::thread::spawn(move || seen.send(pool.info().workers.len()));
        if sees.recv_timeout(LIMIT / 6).is_err() {
            self.kept_waiting.store(true, Ordering::SeqCst);
        }
    }
}

struct Reader(Arc<Curious>);

impl tracing::Subscriber for Reader {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("ostler_runtime::driver")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let curious = &self.0;
        if *event.metadata().level() == tracing::Level::WARN {
            curious.heard.fetch_add(1, Ordering::SeqCst);
        }
        if !curious.kept_waiting.load(Ordering::SeqCst) {
            curious.look();
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn whoever_reads_the_log_slowly_does_not_hold_the_pool_up() {
    let curious = Arc::new(Curious {
        pool: Mutex::default(),
        heard: AtomicUsize::new(0),
        kept_waiting: AtomicBool::new(false),
    });
    let _reader = tracing::subscriber::set_default(Reader(Arc::clone(&curious)));
    let pool = one(program("answers-twice.sh").await).await;
    within("it is ready", pool.ready()).await;
    *curious.pool.lock().unwrap() = Some(pool.clone());
    send(pid(&pool, 0).await, libc::SIGKILL);
    until("the crash is logged", || curious.heard.load(Ordering::SeqCst) > 0).await;
    assert_eq!(ask(&pool, "echo", "1").await, "1");
    assert!(!curious.kept_waiting.load(Ordering::SeqCst), "the pool is locked while it logs");
    curious.pool.lock().unwrap().take();
    stop(pool).await;
}
