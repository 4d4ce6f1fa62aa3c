//! What workers write and measure: by line, with the request, kept beyond their death.

use std::collections::BTreeMap;
use std::sync::Arc;

use ostler_runtime::core::{Action, Reply, Settings, WorkerId};
use ostler_runtime::{Line, OutputSettings, Pool, ProcessSettings, Stream};

use super::support::*;

async fn talking(yard: &Yard, settings: Settings) -> Pool {
    let pool = start(yard.around(spec(functions("talks.py"), settings))).await;
    within("it is ready", pool.ready()).await;
    pool
}

/// A line of a worker, once it is there.
async fn line(pool: &Pool, worker: &str, text: &str) -> Arc<Line> {
    let mut found = None;
    until(text, || {
        let output = pool.worker_output(worker).expect("it is remembered");
        found = output.after(0).into_iter().find(|line| line.text == text);
        found.is_some()
    })
    .await;
    found.expect("just seen")
}

#[tokio::test]
async fn a_printed_line_knows_its_request_its_stream_and_its_process() {
    let yard = Yard::new();
    let pool = talking(&yard, brisk(1)).await;
    let before = line(&pool, "test-1", "warming up").await;
    assert_eq!((before.stream, before.request.as_deref()), (Stream::Stdout, None));
    let running = pool.call(call("say", r#"["hello"]"#));
    let id = running.id();
    for (text, stream) in [("hello", Stream::Stdout), ("HELLO", Stream::Stderr)] {
        let line = line(&pool, "test-1", text).await;
        assert_eq!((line.stream, line.generation), (stream, 1));
        assert_eq!(line.request.as_deref(), Some(&*id), "{text}");
    }
    yard.give("go");
    end(running).await.expect("it ends");
    stop(pool).await;
}

#[tokio::test]
async fn what_a_process_wrote_outlives_it() {
    let pool = talking(&Yard::new(), brisk(1)).await;
    failure(pool.call(call("die", ""))).await;
    until("the next process is there", || generation(&pool) == 2).await;
    assert_eq!(line(&pool, "test-1", "farewell").await.generation, 1);
    stop(pool).await;
}

#[tokio::test]
async fn what_a_worker_wrote_outlives_it() {
    let pool = talking(&Yard::new(), brisk(1)).await;
    line(&pool, "test-1", "warming up").await;
    let reply = within("it is answered", pool.order(Action::Recycle(WorkerId(1)))).await;
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    let names =
        |pool: &Pool| pool.info().workers.into_iter().map(|worker| worker.name).collect::<Vec<_>>();
    until("the old one has left", || names(&pool) == ["test-2"]).await;
    line(&pool, "test-1", "warming up").await;
    let known: Vec<_> = pool.outputs().into_iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(known, ["test-1", "test-2"]);
    assert!(pool.worker_output("test-3").is_none());
    stop(pool).await;
}

#[tokio::test]
async fn no_more_is_kept_than_was_asked_for() {
    let output = OutputSettings { kept_bytes: 1_000, ..OutputSettings::default() };
    let processes = ProcessSettings { output, ..ProcessSettings::default() };
    let spec = spec(functions("talks.py"), brisk(1));
    let pool = start(ostler_runtime::PoolSpec { processes, ..spec }).await;
    end(pool.call(call("chatter", "[1000]"))).await.expect("it ends");
    let last = line(&pool, "test-1", "line 999 of many").await;
    assert_eq!(last.number, 1_001, "all were counted");
    let kept = pool.info().workers[0].last_lines(usize::MAX);
    let bytes: usize = kept.iter().map(String::len).sum();
    assert!(bytes <= 1_000 && kept.len() > 10, "{} lines, {bytes} bytes", kept.len());
    assert_eq!(pool.info().workers[0].last_lines(2), ["line 998 of many", "line 999 of many"]);
    stop(pool).await;
}

#[tokio::test]
async fn measurements_are_kept_the_last_of_each_series_and_not_without_bound() {
    let pool = talking(&Yard::new(), brisk(1)).await;
    for n in [4, 3] {
        end(pool.call(call("measure", &format!("[{n}]")))).await.expect("it ends");
    }
    let metrics: BTreeMap<_, _> = pool.metrics().into_iter().collect();
    let labels = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(metrics[&("batches".to_owned(), labels(&[]))], 3.0);
    assert_eq!(metrics[&("temperature".to_owned(), labels(&[("device", "gpu0")]))], 1.5);
    assert_eq!(metrics.len(), 2 + 4);
    end(pool.call(call("measure", "[1000]"))).await.expect("it ends");
    assert_eq!(pool.metrics().len(), 256);
    assert_eq!(ask(&pool, "measure", "[0]").await, "null");
    stop(pool).await;
}
