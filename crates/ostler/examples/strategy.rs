//! Which worker gets the next request, decided by the program: here the one that has answered
//! least, so that all of them get the same share. `cargo run --example strategy`

use std::sync::Arc;

use ostler::{Candidate, Pool, Rank, Ranking, Strategy, containment};
use serde_json::json;

struct EqualShares;

impl Ranking for EqualShares {
    fn rank(&self, worker: &Candidate) -> Rank {
        Rank(worker.answered, u64::from(worker.load))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    containment::enter_if_asked();
    tokio::runtime::Runtime::new()?.block_on(async {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/workers.py");
        let strategy = Strategy::Own(Arc::new(EqualShares));
        let pool = Pool::python("example", file).size(3).strategy(strategy).start().await?;
        pool.all_ready().await;
        for _ in 0..30 {
            let _: String = pool.invoke("greet", &json!({})).await?;
        }
        for worker in pool.info().workers {
            println!("{} answered {}", worker.name, worker.view.answered);
        }
        pool.shut_down(false);
        pool.stopped().await;
        Ok(())
    })
}
