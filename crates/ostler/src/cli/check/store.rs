//! Whether the store can be used: looked at, not opened, so that a server may have it meanwhile and
//! nothing is made or changed.

use std::path::Path;
use std::time::Duration;

use ostler_runtime::store::ledger::Place;
use ostler_runtime::store::{OpenError, check};
use rustix::fs::{Access, access};
use serde::Serialize;

use super::super::store::Named;
use crate::config::Store;
use crate::text::one_line;

/// A store that is read this long without a complaint is one; `ostler store check` reads all of it.
const ENOUGH: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize)]
pub(super) struct Looked {
    place: String,
    pub ok: bool,
    /// In words.
    found: String,
}

impl Looked {
    pub fn line(&self) -> String {
        let Self { place, found, .. } = self;
        match self.ok {
            true => format!("store: {found}: {}\n", one_line(place)),
            false => format!("store: failed: {}\n", one_line(found)),
        }
    }
}

pub(super) async fn look(store: &Store) -> Looked {
    let named = Named::of(&store.place);
    let found = match &named.place {
        Place::Sqlite(path) if named.is_missing() => may_be_made(path),
        place => whole(place).await,
    };
    let (ok, found) = match found {
        Ok(found) => (true, found.to_owned()),
        Err(why) => (false, why),
    };
    Looked { place: named.name, ok, found }
}

async fn whole(place: &Place) -> Result<&'static str, String> {
    match tokio::time::timeout(ENOUGH, check(place)).await {
        Err(_) => Ok("can be read"),
        Ok(Ok(report)) if report.is_sound() => Ok("whole"),
        Ok(Ok(report)) => {
            let total = report.findings_total + report.audit.findings_total;
            Err(format!("{total} things in it do not fit; see: ostler store check"))
        }
        // A server that starts brings it to its version, or makes it.
        Ok(Err(OpenError::TooOld { .. })) => Ok("made or renewed at the next start"),
        Ok(Err(error)) => Err(error.to_string()),
    }
}

/// Whether its directory can be written, or the nearest one above that is there.
fn may_be_made(path: &Path) -> Result<&'static str, String> {
    let nearest = path.ancestors().skip(1).find(|directory| directory.exists());
    let nearest = nearest.unwrap_or(Path::new("/"));
    match access(nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if nearest.is_dir() => Ok("made at the first start"),
        Ok(()) => Err(format!("{} is not a directory; set another `path`", nearest.display())),
        Err(error) => Err(format!(
            "this user may not write to {} ({error}); set `path` in [store] to another place",
            nearest.display()
        )),
    }
}
