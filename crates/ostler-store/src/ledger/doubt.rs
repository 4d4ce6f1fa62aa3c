//! A commit failed in such a way that it may have happened. The clerk looks before it goes on, so
//! that nothing is forgotten: if it did happen, its notices are told; and if those who asked have
//! been told that nobody knows, what they claimed is given back, for none of them will run it.

use super::backend::Failed;
use super::clerk::Clerk;
use super::decide::Halt;
use super::id::JobId;
use super::notice::Notice;
use super::row::JobState;

#[derive(Debug)]
pub(super) struct Doubt {
    /// A job as it is if it happened.
    pub witness: JobState,
    pub notices: Vec<Notice>,
    pub claims: Vec<(JobId, u64)>,
}

impl Clerk {
    /// At once: if that can be found out, there is no doubt to speak of.
    pub(super) async fn look_after(&mut self, failed: Failed) -> Result<(), Failed> {
        let doubt = self.draft.take_doubt();
        self.draft.rollback().await;
        let Some(doubt) = doubt else { return Err(failed) };
        match self.draft.is_stored(&doubt.witness).await {
            Ok(true) => {
                self.watchers.tell(&doubt.notices);
                Ok(())
            }
            Ok(false) => Err(Failed { doubtful: false, ..failed }),
            Err(_) => {
                self.doubt = Some(doubt);
                Err(failed)
            }
        }
    }

    /// Later, before anything else is decided.
    pub(super) async fn settle_doubt(&mut self) -> Result<(), Failed> {
        let Some(doubt) = &mut self.doubt else { return Ok(()) };
        if self.draft.is_stored(&doubt.witness).await? {
            self.watchers.tell(&std::mem::take(&mut doubt.notices));
            let claims = doubt.claims.clone();
            self.give_back(&claims).await?;
        }
        self.doubt = None;
        Ok(())
    }

    async fn give_back(&mut self, claims: &[(JobId, u64)]) -> Result<(), Failed> {
        self.draft.now = self.time.now();
        for (id, fence) in claims {
            if let Err(Halt::Failed(failed)) = self.draft.release(id, *fence).await {
                self.draft.rollback().await;
                return Err(failed);
            }
        }
        match self.draft.commit().await {
            Ok(notices) => {
                self.watchers.tell(&notices);
                Ok(())
            }
            Err(failed) => {
                self.draft.rollback().await;
                Err(failed)
            }
        }
    }
}
