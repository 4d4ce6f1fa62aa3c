//! A pool inside a program: calls, a stream, a cancelled call, what happened meanwhile.
//! `cargo run --example embed`

use ostler::{Call, Followed, Item, Pool, containment};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The program is its own shim: this line comes before everything else.
    containment::enter_if_asked();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/workers.py");
    let pool = Pool::python("example", file).size(2).start().await?;
    let mut events = pool.events();

    let greeting: String = pool.invoke("greet", &json!({ "name": "Ada" })).await?;
    println!("{greeting}");

    let mut stream = pool.stream("count", &json!([3]))?;
    loop {
        match stream.next().await {
            Item::Chunk(chunk) => println!("chunk {}", String::from_utf8_lossy(&chunk.bytes)),
            Item::End(end) => break drop(end?),
        }
    }

    // A call that is dropped is cancelled, and its worker is free again.
    drop(pool.call(Call::with("count", &json!([1_000_000]))?));

    for worker in pool.info().workers {
        println!("{} is {:?}, pid {:?}", worker.name, worker.view.phase, worker.pid);
    }
    while let Some(Followed::Event(event)) = events.try_next() {
        println!("{} {}", event.kind.name(), event.worker.as_deref().unwrap_or("-"));
    }
    pool.shut_down(false);
    pool.stopped().await;
    Ok(())
}
