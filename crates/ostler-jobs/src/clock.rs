//! Has the ledger do what time asks for: when something is due, when it says that something is due
//! sooner, and each second in any case.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::office::{Office, Stage};

const TICK: Duration = Duration::from_secs(1);

pub(crate) async fn keep(office: Arc<Office>) {
    let mut stage = office.stage.subscribe();
    while *stage.borrow_and_update() == Stage::Working {
        office.look_around();
        let next = match office.ledger.keep_time().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!("the ledger does not keep time: {error}");
                None
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait_for(next)) => {}
            () = office.due.notified() => {}
            _ = stage.changed() => {}
        }
    }
}

fn wait_for(next: Option<Timestamp>) -> Duration {
    let Some(next) = next else { return TICK };
    let left = next.duration_since(Timestamp::now());
    // Rounded up: what comes a moment early finds nothing due.
    Duration::try_from(left).unwrap_or_default().saturating_add(Duration::from_millis(1)).min(TICK)
}
