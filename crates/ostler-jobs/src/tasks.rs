//! Everything that runs on its own here. Nothing is detached: it ends when whoever owns this does.

use std::future::Future;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Debug)]
pub(crate) struct Tasks {
    /// None: nothing runs any more, and nothing is begun.
    set: Mutex<Option<JoinSet<()>>>,
    alive: watch::Sender<usize>,
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks { set: Mutex::new(Some(JoinSet::new())), alive: watch::Sender::new(0) }
    }
}

impl Tasks {
    fn set(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.set.lock().expect("no code panics here")
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.set();
        let Some(set) = set.as_mut() else { return };
        let alive = Alive::new(&self.alive);
        while set.try_join_next().is_some() {}
        set.spawn(async move {
            let _alive = alive;
            task.await;
        });
    }

    /// Each of them stops at its next pause; [`ended`](Self::ended) tells when all have.
    pub fn abort(&self) {
        let set = self.set().take();
        drop(set);
    }

    /// Waits for all of them, those included that others of them start.
    pub async fn ended(&self) {
        let mut alive = self.alive.subscribe();
        drop(alive.wait_for(|alive| *alive == 0).await);
    }
}

/// One more is alive, as long as this is kept.
struct Alive(watch::Sender<usize>);

impl Alive {
    fn new(alive: &watch::Sender<usize>) -> Self {
        alive.send_modify(|alive| *alive += 1);
        Alive(alive.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.send_modify(|alive| *alive -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn after_the_end_nothing_begins_that_somebody_still_starts() {
        let (tasks, held) = (Tasks::default(), Arc::new(()));
        let hold = |held: Arc<()>| async move {
            let _held = held;
            std::future::pending::<()>().await;
        };
        tasks.spawn(hold(Arc::clone(&held)));
        tasks.abort();
        tasks.spawn(hold(Arc::clone(&held)));
        let ended = tokio::time::timeout(Duration::from_secs(30), tasks.ended()).await;
        assert!(ended.is_ok(), "somebody is alive");
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
