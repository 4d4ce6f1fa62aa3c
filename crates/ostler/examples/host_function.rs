//! A worker that calls back into the program. `cargo run --example host_function`

use ostler::{Body, HostCall, HostError, Pool, containment};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Wanted {
    currency: String,
}

async fn rate(call: HostCall) -> Result<Body, HostError> {
    let wanted: Wanted = serde_json::from_slice(&call.body.bytes)?;
    match wanted.currency.as_str() {
        "EUR" => Ok(Body::json("1.5")),
        other => Err(HostError::new(format!("no rate for {other}"))),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    containment::enter_if_asked();
    tokio::runtime::Runtime::new()?.block_on(async {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/workers.py");
        let pool = Pool::python("example", file).size(1).host_function("rate", rate);
        let pool = pool.start().await?;
        let total: f64 = pool.invoke("total", &json!({ "prices": [2, 4] })).await?;
        println!("{total}");
        pool.shut_down(false);
        pool.stopped().await;
        Ok(())
    })
}
