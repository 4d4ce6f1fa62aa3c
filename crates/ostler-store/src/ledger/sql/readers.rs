//! Those who read beside the writer: a few connections, made when they are needed and kept.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::reads::Linked;
use super::{failed, refusal};
use crate::ledger::backend::{Failed, Reader, Reads, Reply};
use crate::sql::{Kind, Link, ReadDoor, Trouble};

/// At once. Whoever comes beyond waits.
const READERS_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct Readers {
    door: ReadDoor,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Link>>,
}

impl Readers {
    pub fn new(door: ReadDoor) -> Self {
        Readers { door, places: Arc::new(Semaphore::new(READERS_MAX)), idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are in use end when they are given back.
    pub async fn close(&self) {
        self.places.close();
        let idle = mem::take(&mut *self.idle());
        for link in idle {
            let _ = link.close().await;
        }
    }
}

#[derive(Debug)]
pub(super) struct ReadersHandle(pub Arc<Readers>);

impl Reader for ReadersHandle {
    fn open(&self) -> Reply<'_, Box<dyn Reads + Send>> {
        Box::pin(async move {
            let place = Arc::clone(&self.0.places).acquire_owned().await.map_err(|_| closed())?;
            let link = self.0.idle().pop();
            let readers = Arc::clone(&self.0);
            let reading = Reading { readers, link, asking: false, _place: place };
            Ok(Box::new(reading) as Box<dyn Reads + Send>)
        })
    }
}

fn closed() -> Failed {
    refusal("it is closed")
}

/// A place among the readers.
#[derive(Debug)]
struct Reading {
    readers: Arc<Readers>,
    link: Option<Link>,
    /// A statement is under way; one that nobody waits for any more leaves the connection unfit.
    asking: bool,
    _place: OwnedSemaphorePermit,
}

impl Linked for Reading {
    async fn link(&mut self) -> Result<&mut Link, Failed> {
        if self.asking {
            self.link = None;
        }
        let link = match self.link.take() {
            Some(link) => link,
            None => self.readers.door.connect().await.map_err(|trouble| failed(&trouble, false))?,
        };
        self.asking = true;
        Ok(self.link.insert(link))
    }

    fn settled<T>(&mut self, done: Result<T, Trouble>) -> Result<T, Failed> {
        self.asking = matches!(&done, Err(Trouble::Database(_)));
        done.map_err(|trouble| failed(&trouble, false))
    }

    /// Reading changes nothing, and a connection may have been lost long before.
    fn worth_another_try(&self, trouble: &Trouble) -> bool {
        trouble.kind() == Kind::Lost
    }
}

/// A connection that somebody brings.
#[derive(Debug)]
pub(super) struct Lent<'a>(pub &'a mut Link);

impl Linked for Lent<'_> {
    async fn link(&mut self) -> Result<&mut Link, Failed> {
        Ok(self.0)
    }

    fn settled<T>(&mut self, done: Result<T, Trouble>) -> Result<T, Failed> {
        done.map_err(|trouble| failed(&trouble, false))
    }

    fn worth_another_try(&self, _: &Trouble) -> bool {
        false
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if !self.asking
            && !self.readers.places.is_closed()
            && let Some(link) = self.link.take()
        {
            self.readers.idle().push(link);
        }
    }
}
