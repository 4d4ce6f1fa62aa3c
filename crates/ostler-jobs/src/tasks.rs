//! Everything that runs on its own here. Nothing is detached: it ends when whoever owns this does.

use std::future::Future;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Debug)]
pub(crate) struct Tasks {
    set: Mutex<JoinSet<()>>,
    alive: watch::Sender<usize>,
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks { set: Mutex::default(), alive: watch::Sender::new(0) }
    }
}

impl Tasks {
    fn set(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.set.lock().expect("no code panics here")
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let alive = Alive::new(&self.alive);
        let mut set = self.set();
        while set.try_join_next().is_some() {}
        set.spawn(async move {
            let _alive = alive;
            task.await;
        });
    }

    pub fn abort(&self) {
        self.set().abort_all();
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
