//! A process for each session, and what moves along when it is replaced.
//! `cargo run --example session`

use ostler::{Action, Call, EventKind, Followed, KeyedBy, Pool, containment};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    containment::enter_if_asked();
    tokio::runtime::Runtime::new()?.block_on(async {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/guests.py");
        let pool = Pool::python("guests", file).keyed_by(KeyedBy::Session, 4).start().await?;
        for (guest, wish) in [("ada", "a horse"), ("grace", "a ship"), ("ada", "a stable")] {
            let session = Some(pool.enter(guest, None).await?);
            let call = Call { session, ..Call::with("wish", &json!([wish]))? };
            let answered = pool.call(call).result().await?;
            println!("{guest}: {}", String::from_utf8_lossy(&answered.body.bytes));
        }
        // Everybody gets a new process, and finds there what the old one knew.
        let mut events = pool.events();
        pool.order(Action::RecyclePool).await;
        let mut gone = 0;
        while gone < 2 {
            match events.next().await {
                Followed::Event(event) if event.kind == EventKind::WorkerTerminated => gone += 1,
                Followed::Event(_) => {}
                Followed::Lagged { .. } | Followed::Ended => break,
            }
        }
        let session = Some(pool.enter("ada", None).await?);
        let answered = pool.call(Call { session, ..Call::with("wishes", &())? }).result().await?;
        println!("ada: {}", String::from_utf8_lossy(&answered.body.bytes));
        pool.shut_down(false);
        pool.stopped().await;
        Ok(())
    })
}
