//! A server that is killed: what it acknowledged is there.
//!
//! The server is this test program, run again. It writes a line for each operation that the store
//! acknowledged, to a pipe, and is killed in the middle of its work.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{merge, named, place};
use ostler_store::{Content, SessionSettings, Sessions};

const STORE: &str = "OSTLER_TEST_STORE";
const RUN: &str = "OSTLER_TEST_RUN";
const CALLERS: usize = 8;
const RUNS: usize = 5;

/// What a caller does to its n-th session, one after the other.
const STEPS: [&str; 7] = ["create", "patch", "program", "save", "strict", "take", "delete"];

#[tokio::test]
async fn what_was_acknowledged_is_there_after_kill_nine() {
    let (_directory, path) = place();
    let mut acknowledged: BTreeMap<String, usize> = BTreeMap::new();
    for run in 0..RUNS {
        let lines = 300 * (run + 1);
        for line in killed_after(lines, &path, run) {
            let (id, step) = line.split_once(' ').unwrap();
            let step = STEPS.iter().position(|known| *known == step).unwrap();
            acknowledged.insert(id.to_owned(), step);
        }
        let sessions = Sessions::open(&path, settings()).await.expect("the file is whole");
        for (id, step) in &acknowledged {
            check(&sessions, id, *step).await;
        }
        sessions.close().await;
    }
    assert!(acknowledged.len() > RUNS * CALLERS, "{} sessions", acknowledged.len());
}

/// The lines of a server that was killed when it had written so many.
fn killed_after(lines: usize, path: &Path, run: usize) -> Vec<String> {
    let mut server = Server(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_server_that_is_killed", "--ignored", "--nocapture"])
            .env(STORE, path)
            .env(RUN, run.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut written = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let mut told: Vec<String> = written.by_ref().take(lines).map(Result::unwrap).collect();
    assert_eq!(told.len(), lines, "the server ended by itself: {:?}", told.last());
    server.0.kill().unwrap();
    server.0.wait().unwrap();
    // What stood in the pipe was acknowledged too. The last line may be half a line.
    told.extend(written.map_while(Result::ok).filter(|line| line.ends_with('.')));
    told.iter_mut().for_each(|line| *line = line.trim_end_matches('.').to_owned());
    told
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn settings() -> SessionSettings {
    SessionSettings { max: 1_000_000, ..SessionSettings::default() }
}

/// It is as it was after that step, or one step further: the next may have been written and not
/// acknowledged.
async fn check(sessions: &Sessions, id: &str, step: usize) {
    let Some(session) = sessions.peek(id) else {
        assert!(step + 1 >= STEPS.len() - 1, "{id} is lost after `{}`", STEPS[step]);
        return;
    };
    assert!(step < STEPS.len() - 1, "{id} is back after it was deleted");
    let (version, least) = (session.version as usize, 1 + step.min(2));
    assert!((least..=least + 1).contains(&version), "{id} at {version} after `{}`", STEPS[step]);
    let patched = if version > 1 { format!(r#"{{"id":"{id}"}}"#) } else { "{}".to_owned() };
    assert_eq!(session.metadata.get(), patched);
    let program = sessions.get_program(id, "p").await.map(|program| program.content);
    assert_eq!(program.ok(), (version > 2).then(|| content(id)));
    match STEPS[step] {
        "save" => assert!(session.saved, "{id}"),
        "take" => assert!(!session.saved, "{id}"),
        _ => {}
    }
}

fn content(id: &str) -> Content {
    Content::new("text/plain", id.repeat(50))
}

#[tokio::test]
#[ignore = "is started and killed by the test above"]
async fn the_server_that_is_killed() {
    let path = std::env::var_os(STORE).expect("is started by the test above");
    let run = std::env::var(RUN).unwrap();
    let sessions = Sessions::open(Path::new(&path), settings()).await.unwrap();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| tokio::spawn(work(sessions.clone(), format!("{run}-{caller}"))))
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

async fn work(sessions: Sessions, prefix: String) {
    for n in 0.. {
        let id = format!("{prefix}-{n}");
        // Every third is left as it is, so that there is something to find.
        let steps = if n % 3 == 0 { STEPS.len() } else { STEPS.len() - 1 - n % 5 };
        for step in &STEPS[..steps] {
            act(&sessions, &id, step).await;
            // One write, so that a line is whole or missing.
            std::io::stderr().write_all(format!("{id} {step}.\n").as_bytes()).unwrap();
        }
    }
}

async fn act(sessions: &Sessions, id: &str, step: &str) {
    let number = sessions.peek(id).map_or(0, |session| session.number);
    match step {
        "create" => drop(sessions.create(named(id)).await.unwrap()),
        "patch" => drop(sessions.patch(id, merge(&format!(r#"{{"id":"{id}"}}"#))).await.unwrap()),
        "program" => drop(sessions.put_program(id, "p", content(id), None).await.unwrap()),
        "save" => sessions.save_state(number, "pool", content(id)).await.unwrap(),
        "strict" => drop(sessions.enter(id, Some("pool")).await.unwrap()),
        "take" => assert!(sessions.take_state(number, "pool").await.unwrap().is_some()),
        _ => sessions.delete(id, None).await.unwrap(),
    }
}
