use ostler_store::Content;
use ostler_store::ledger::LedgerSettings;
use ostler_store::ledger::job::{Claimed, NewJob};
use ostler_store::ledger::key::Asked;

use super::*;

const LIMIT: Duration = Duration::from_secs(30);

async fn running() -> (Ledger, Claimed) {
    let ledger = Ledger::in_memory(LedgerSettings::default());
    let job = NewJob::new("py", "f", Content::new("application/json", ""));
    ledger.submit(vec![job], Asked::default()).await.expect("it is taken");
    let claimed = ledger.claim("py", 1).await.expect("it is there").remove(0);
    (ledger, claimed)
}

async fn messages(ledger: &Ledger, job: &JobId) -> Vec<Value> {
    let story = ledger.events(job, 0, 1_000).await.expect("it is there");
    let messages = story.into_iter().filter(|event| event.kind == "message");
    messages.map(|event| event.data).collect()
}

fn numbers(count: u64) -> Vec<Value> {
    (0..count).map(Value::from).collect()
}

#[tokio::test]
async fn what_is_said_is_stored_in_order_while_it_goes_on() {
    let (ledger, claimed) = running().await;
    let id = &claimed.job.id;
    let story = Story::default();
    let says = async {
        for number in 0..200u64 {
            story.room().await;
            story.message(number.into(), 8);
        }
        while messages(&ledger, id).await.len() < 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        story.close();
    };
    let both = async { tokio::join!(says, story.keep(&ledger, id, claimed.fence)) };
    tokio::time::timeout(LIMIT, both).await.expect("it is stored");
    assert_eq!(messages(&ledger, id).await, numbers(200));
    assert_eq!(story.rest(), []);
}

#[tokio::test]
async fn what_is_left_at_the_end_is_handed_over() {
    let (ledger, claimed) = running().await;
    let story = Story::default();
    story.message(1.into(), 8);
    story.close();
    story.keep(&ledger, &claimed.job.id, claimed.fence).await;
    assert_eq!(story.rest(), [Saying::Message(1.into())]);
}

#[tokio::test]
async fn whoever_brings_messages_waits_for_room() {
    let (ledger, claimed) = running().await;
    let id = &claimed.job.id;
    let story = Story::default();
    story.message(0.into(), BYTES_MAX);
    let mut room = std::pin::pin!(story.room());
    let now = std::future::poll_fn(|cx| std::task::Poll::Ready(room.as_mut().poll(cx).is_ready()));
    assert!(!now.await, "there is none");
    let both = async {
        tokio::select! {
            () = &mut room => {}
            () = story.keep(&ledger, id, claimed.fence) => unreachable!("it is not closed"),
        }
    };
    tokio::time::timeout(LIMIT, both).await.expect("what is stored makes room");
    assert_eq!(messages(&ledger, id).await, numbers(1));
}

#[test]
fn lines_that_come_too_fast_are_counted() {
    let story = Arc::new(Story::default());
    let scribe = Scribe { story: Arc::clone(&story), shard: 0 };
    for _ in 0..SAYINGS_MAX + 5 {
        scribe.log("info", "a line");
    }
    let rest = story.rest();
    assert_eq!(rest.len(), SAYINGS_MAX + 1);
    let Some(Saying::Log { text, .. }) = rest.last() else { panic!("{:?}", rest.last()) };
    assert!(text.starts_with("5 lines of progress and log "), "{text}");
}

#[test]
fn the_worker_of_a_shard_is_kept_however_much_is_said() {
    let story = Arc::new(Story::default());
    let scribe = Scribe { story: Arc::clone(&story), shard: 1 };
    for _ in 0..SAYINGS_MAX {
        scribe.log("info", "a line");
    }
    scribe.began(&Arc::from("py-1"));
    scribe.progress("1");
    let rest = story.rest();
    let worker = Saying::Worker { shard: 1, worker: "py-1".to_owned() };
    assert_eq!(rest[SAYINGS_MAX], worker);
    assert_eq!(rest.len(), SAYINGS_MAX + 2, "and a line about the progress");
}

#[test]
fn what_a_shard_says_keeps_its_form() {
    let story = Arc::new(Story::default());
    let scribe = Scribe { story: Arc::clone(&story), shard: 2 };
    scribe.began(&Arc::from("py-1"));
    scribe.progress(r#"{"done":1}"#);
    scribe.log("warning", "careful");
    let expected = [
        Saying::Worker { shard: 2, worker: "py-1".to_owned() },
        Saying::Progress(serde_json::json!({ "done": 1 })),
        Saying::Log { level: "warning".to_owned(), text: "careful".to_owned() },
    ];
    assert_eq!(story.rest(), expected);
}
