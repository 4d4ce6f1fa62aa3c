//! Work that goes on when whoever asked for it has gone. What is done under a key must come to its
//! end and leave its answer there: the client that lost its connection comes back for it.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::problem::Problem;

/// At once. Clients that come and go could leave any number of them behind.
const ERRANDS_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Errands {
    running: Mutex<JoinSet<()>>,
}

impl Errands {
    /// Does the work to its end, whether or not somebody waits here.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        let (done, ended) = oneshot::channel();
        {
            let mut running = self.lock();
            while running.try_join_next().is_some() {}
            if running.len() >= ERRANDS_MAX {
                return Err(too_many());
            }
            // Nobody may be left to hear it.
            running.spawn(async move { drop(done.send(work.await)) });
        }
        ended.await.map_err(|_| broke_off())
    }

    /// Waits until nothing is left to do. Whoever stops waiting ends what is left.
    pub async fn ended(&self) {
        let mut left = std::mem::take(&mut *self.lock());
        while left.join_next().await.is_some() {}
    }

    /// Breaks off what is left.
    pub fn abort(&self) {
        self.lock().abort_all();
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_many() -> Problem {
    let detail = format!("{ERRANDS_MAX} requests with a key are under way; wait for some");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_keyed_requests", detail).retryable(None)
}

fn broke_off() -> Problem {
    let detail = "the server ended before the request had; ask again with the same key";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", detail).retryable(None)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn work_goes_on_when_its_client_is_gone() {
        let errands = Arc::new(Errands::default());
        let (go_on, held) = oneshot::channel::<()>();
        let (done, seen) = oneshot::channel();
        let client = tokio::spawn({
            let errands = Arc::clone(&errands);
            async move {
                let work = async move {
                    held.await.unwrap();
                    done.send("done").unwrap();
                };
                drop(errands.run(work).await);
            }
        });
        while errands.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
        go_on.send(()).unwrap();
        assert_eq!(seen.await.unwrap(), "done");
        errands.ended().await;
        assert!(errands.lock().is_empty());
    }
}
