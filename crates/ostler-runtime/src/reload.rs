//! A pool gets a new program, new settings, or both, while it serves. One worker of the new kind
//! has to become ready first; if it does not, nothing has changed.

use ostler_core::{Event, Reply};

use crate::manner::Manner;
use crate::pool::{Pool, PoolSpec, StartError};
use crate::registry::Origin;

#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error("{0}")]
    Start(#[from] StartError),
    #[error("pool `{pool}`: the new worker did not become ready: {why}")]
    NotReady { pool: String, why: String },
    #[error("pool `{pool}`: another reload is under way; wait for its end")]
    Underway { pool: String },
    #[error("pool `{pool}` is shutting down")]
    ShuttingDown { pool: String },
    #[error("pool `{pool}`: `{key}` can only be changed by a restart of the server")]
    NeedsRestart { pool: String, key: &'static str },
}

impl Pool {
    /// Changes the pool to what is described, without losing a request. Comes back when the first
    /// worker of the new kind serves; the others follow one by one.
    ///
    /// # Errors
    /// The new kind did not become ready, or cannot be; the pool is as it was.
    pub async fn reload(&self, spec: PoolSpec) -> Result<(), ReloadError> {
        let pool = || self.name().to_owned();
        let Some(_alone) = self.reloading() else {
            return Err(ReloadError::Underway { pool: pool() });
        };
        self.may_become(&spec)?;
        let driver = self.driver();
        let recipe = spec.recipe().await?;
        let (settings, manner) = (Box::new(spec.core_settings()), Manner::of(&spec));
        let old = driver.look(|core, _| core.edition());
        driver.launcher.propose(old + 1, recipe);
        driver.launcher.forget_failure();
        match self.ask(Origin::default(), |order| Event::ReloadOrdered { order, settings }).await {
            Reply::Reloaded { edition } => {
                driver.launcher.settle_on(edition);
                driver.change_manner(manner);
                Ok(())
            }
            reply => {
                driver.launcher.settle_on(old);
                Err(match reply {
                    Reply::ShuttingDown => ReloadError::ShuttingDown { pool: pool() },
                    Reply::ReloadUnderway => ReloadError::Underway { pool: pool() },
                    _ => ReloadError::NotReady { pool: pool(), why: self.why_not_ready() },
                })
            }
        }
    }

    /// Whether this pool can be changed to what is described.
    ///
    /// # Errors
    /// It would need a restart of the server.
    pub fn may_become(&self, spec: &PoolSpec) -> Result<(), ReloadError> {
        let needs_restart = |key| ReloadError::NeedsRestart { pool: self.name().to_owned(), key };
        if spec.processes.containment != self.driver().launcher.containment() {
            return Err(needs_restart("containment"));
        }
        match spec.key == self.keyed_by() {
            true => Ok(()),
            false => Err(needs_restart("key")),
        }
    }

    fn why_not_ready(&self) -> String {
        let launcher = &self.driver().launcher;
        launcher.last_failure().unwrap_or_else(|| "it did not start in time".to_owned())
    }
}
