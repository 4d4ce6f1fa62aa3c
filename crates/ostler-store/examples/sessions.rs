//! How fast the store is and what a session costs, at a thousand and at a hundred thousand sessions:
//! `cargo run --release -p ostler-store --example sessions [DIRECTORY]`. The directory is where the
//! file is put; a temporary one if none is given.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use ostler_store::{Content, NewSession, Patch, SessionSettings, Sessions};
use serde_json::value::RawValue;

/// Callers at once, where operations are said to be concurrent.
const CALLERS: usize = 64;
const MEASURED: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() {
    let temporary = tempfile::TempDir::new().expect("a temporary directory");
    let directory = std::env::args_os().nth(1);
    let directory = directory.as_deref().map_or(temporary.path(), Path::new);
    for count in [1_000, 100_000] {
        measure(directory, count).await;
    }
}

async fn measure(directory: &Path, count: usize) {
    let path = directory.join(format!("sessions-{count}.db"));
    let settings = SessionSettings { max: 1_000_000, ..SessionSettings::default() };
    let sessions = Sessions::open(&path, settings.clone()).await.expect("the store opens");
    println!("{count} sessions");

    let before = resident();
    let began = Instant::now();
    create(&sessions, count).await;
    rate("create (64 callers)", count, began.elapsed());
    let counted = sessions.stats().memory_bytes / count as u64;
    let taken = resident().saturating_sub(before) / count;
    println!(
        "  {:<28} {counted:>10} counted, {taken} resident (60 bytes of metadata)",
        "bytes each"
    );

    reads(&sessions, count).await;
    writes(&sessions, count).await;

    sessions.close().await;
    let began = Instant::now();
    let sessions = Sessions::open(&path, settings).await.expect("the store opens again");
    println!("  {:<28} {:>10.3} s", "open", began.elapsed().as_secs_f64());
    sessions.close().await;
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    println!("  {:<28} {:>10} each", "bytes of the file", bytes / count as u64);
    let _ = std::fs::remove_file(&path);
}

async fn create(sessions: &Sessions, count: usize) {
    concurrently(|caller| {
        let sessions = sessions.clone();
        async move {
            for n in (caller..count).step_by(CALLERS) {
                let text =
                    format!(r#"{{"user":"somebody","n":{n:0>10},"theme":"dark","lang":"en"}}"#);
                let metadata =
                    Some(RawValue::from_string(text.replace(":0", ":10")).expect("JSON"));
                let new = NewSession { id: Some(id(n)), metadata, ..NewSession::default() };
                sessions.create(new).await.expect("is created");
            }
        }
    })
    .await;
}

async fn reads(sessions: &Sessions, count: usize) {
    alone("enter a known session", async |n| {
        sessions.enter(&id(n % count), None).await.expect("is there");
    })
    .await;
    alone("get", async |n| drop(sessions.get(&id(n % count)).await.expect("is there"))).await;
    alone("list 100", async |n| {
        assert!(!sessions.list(Some(&id(n % (count / 2))), 100).is_empty());
    })
    .await;
}

async fn writes(sessions: &Sessions, count: usize) {
    let content = || Content::new("application/octet-stream", vec![7; 1000]);
    alone("patch", async |n| {
        drop(sessions.patch(&id(n % count), patch()).await.expect("is there"))
    })
    .await;
    alone("put a program of 1 000 bytes", async |n| {
        sessions.put_program(&id(n % count), "p", content(), None).await.expect("is put");
    })
    .await;
    together("patch (64 callers)", sessions, move |sessions, n| async move {
        sessions.patch(&id(n % count), patch()).await.expect("is there");
    })
    .await;
    together("enter a new one (64 callers)", sessions, |sessions, n| async move {
        sessions.enter(&format!("new-{n}"), Some("pool")).await.expect("is made");
    })
    .await;
    together("delete (64 callers)", sessions, |sessions, n| async move {
        let _ = sessions.delete(&format!("new-{n}"), None).await;
    })
    .await;
}

fn patch() -> Patch {
    let metadata = RawValue::from_string(r#"{"theme":"light"}"#.to_owned()).expect("JSON");
    Patch { metadata: Some(metadata), ..Patch::default() }
}

/// Spread over the whole of the ids.
fn id(n: usize) -> String {
    format!("s-{:016x}", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

async fn alone(what: &str, mut operation: impl AsyncFnMut(usize)) {
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < MEASURED {
        operation(done).await;
        done += 1;
    }
    rate(what, done, began.elapsed());
}

async fn together<F>(
    what: &str,
    sessions: &Sessions,
    operation: impl Fn(Sessions, usize) -> F + Copy + Send + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let began = Instant::now();
    let done = concurrently(|caller| {
        let sessions = sessions.clone();
        async move {
            let mut done = 0;
            while began.elapsed() < MEASURED {
                operation(sessions.clone(), caller + done * CALLERS).await;
                done += 1;
            }
            done
        }
    })
    .await;
    rate(what, done.iter().sum(), began.elapsed());
}

async fn concurrently<T, F>(caller: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let callers: Vec<_> = (0..CALLERS).map(|n| tokio::spawn(caller(n))).collect();
    let mut done = Vec::new();
    for caller in callers {
        done.push(caller.await.expect("a caller ends"));
    }
    done
}

fn rate(what: &str, count: usize, took: Duration) {
    println!("  {what:<28} {:>10.0} /s", count as f64 / took.as_secs_f64());
}

/// Bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0_usize) * 1024
}
