//! One worker held for several calls, so that they meet the same process and what it remembers.
//! `cargo run --example lease`

use std::time::Duration;

use ostler::{Call, LeaseRequest, Pool, containment};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    containment::enter_if_asked();
    tokio::runtime::Runtime::new()?.block_on(async {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/workers.py");
        let pool = Pool::python("example", file).size(2).start().await?;
        let wanted = LeaseRequest { ttl: Duration::from_secs(30), ..LeaseRequest::default() };
        let lease = pool.lease(wanted).await?;
        for thing in ["a horse", "a stable", "an inn"] {
            let answered = lease.call(Call::with("remember", &json!([thing]))?).result().await?;
            println!("{}", String::from_utf8_lossy(&answered.body.bytes));
        }
        // What the process has in its memory is nobody else's business: have it replaced.
        lease.close();
        pool.shut_down(false);
        pool.stopped().await;
        Ok(())
    })
}
