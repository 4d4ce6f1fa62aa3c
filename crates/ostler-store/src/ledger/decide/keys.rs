//! Idempotency keys: a mark before the work, a mark with its effect, and the answer after it.

use serde::{Deserialize, Serialize};

use super::super::backend::Failed;
use super::super::draft::Draft;
use super::super::error::LedgerError;
use super::super::key::{Answer, Asked, Begun, Key};
use super::super::row::{KeyRow, Millis};
use super::{Decided, Operation};
use crate::clock::{millis, timestamp};

#[derive(Debug)]
pub(in crate::ledger) struct BeginKey {
    pub key: Key,
    pub fingerprint: u64,
    pub stored: bool,
}

impl Operation for BeginKey {
    type Answer = Begun;

    async fn decide(&self, draft: &mut Draft) -> Decided<Begun> {
        let now = draft.now;
        let row = draft.key(&self.key).await?.filter(|row| row.expires_at > now);
        let Some(row) = row else { return self.begin(draft, None).await };
        if row.fingerprint != self.fingerprint {
            return Ok(Begun::Mismatch);
        }
        if let Some(answer) = &row.answer {
            let body = row.body.clone().unwrap_or_default();
            return Ok(Begun::Replay(Kept::read(answer)?.answer(body)));
        }
        if let Some(resource) = row.resource {
            return Ok(Begun::Applied { resource });
        }
        if row.node == *draft.node {
            return Ok(Begun::InFlight);
        }
        // Whoever was at it ended with its server, and its effect would be marked here.
        match row.stored {
            true => self.begin(draft, Some(row.created_at)).await,
            false => Ok(Begun::Unknown),
        }
    }
}

impl BeginKey {
    async fn begin(&self, draft: &mut Draft, before: Option<Millis>) -> Decided<Begun> {
        let replaced = before.is_some() || draft.key(&self.key).await?.is_some();
        if !replaced {
            let (current, max) = (draft.keys_count().await?, draft.settings.keys_max);
            if current >= max {
                return Err(LedgerError::KeyQuota { current, max }.into());
            }
        }
        let row = KeyRow {
            caller: self.key.caller.clone(),
            route: self.key.route.clone(),
            key: self.key.key.clone(),
            fingerprint: self.fingerprint,
            node: draft.node.to_string(),
            stored: self.stored,
            resource: None,
            answer: None,
            body: None,
            created_at: draft.now,
            expires_at: draft.now.saturating_add(millis(draft.settings.key_ttl)),
        };
        draft.put_key(self.key.clone(), Some(row), i64::from(!replaced));
        Ok(Begun::Fresh)
    }
}

#[derive(Debug)]
pub(in crate::ledger) struct FinishKey {
    pub key: Key,
    pub answer: Answer,
}

impl Operation for FinishKey {
    type Answer = ();

    /// A key that is not known any more has nothing to keep an answer for.
    async fn decide(&self, draft: &mut Draft) -> Decided<()> {
        let Some(mut row) = draft.key(&self.key).await? else { return Ok(()) };
        row.answer = Some(Kept::of(&self.answer).text());
        row.body = Some(self.answer.body.clone());
        row.expires_at = draft.now.saturating_add(millis(draft.settings.key_ttl));
        draft.put_key(self.key.clone(), Some(row), 0);
        Ok(())
    }

    fn weight(&self) -> usize {
        self.answer.body.len()
    }
}

#[derive(Debug)]
pub(in crate::ledger) struct AbandonKey {
    pub key: Key,
}

impl Operation for AbandonKey {
    type Answer = ();

    /// Nothing came of it: it may be used again. If something did, it stays.
    async fn decide(&self, draft: &mut Draft) -> Decided<()> {
        let row = draft.key(&self.key).await?;
        if row.is_some_and(|row| row.resource.is_none() && row.answer.is_none()) {
            draft.put_key(self.key.clone(), None, -1);
        }
        Ok(())
    }
}

impl Draft {
    /// The effect and this mark of it are stored together.
    pub(super) async fn mark_key(&mut self, asked: &Asked, resource: &str) -> Decided<()> {
        let Some(key) = &asked.key else { return Ok(()) };
        let Some(mut row) = self.key(key).await? else { return Ok(()) };
        row.resource = Some(resource.to_owned());
        self.put_key(key.clone(), Some(row), 0);
        Ok(())
    }
}

/// An answer without its body, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    status: u16,
    headers: Vec<(String, String)>,
    at: Millis,
}

impl Kept {
    fn of(answer: &Answer) -> Kept {
        let (status, headers) = (answer.status, answer.headers.clone());
        Kept { status, headers, at: answer.at.as_millisecond() }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("an answer's head is plain JSON")
    }

    fn read(text: &str) -> Result<Kept, Failed> {
        serde_json::from_str(text).map_err(|error| {
            let reason = format!("an answer under a key cannot be read ({error})");
            Failed { full: false, of_rows: true, doubtful: false, reason }
        })
    }

    fn answer(self, body: bytes::Bytes) -> Answer {
        Answer { status: self.status, headers: self.headers, body, at: timestamp(self.at) }
    }
}
