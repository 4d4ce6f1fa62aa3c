//! `[store]`: where what must survive a restart is kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::postgres::PostgresUrl;
use super::section::Section;
use super::{DAY, MINUTE};

/// The database where none is set, beside the configuration.
pub const DEFAULT_STORE: &str = ".ostler/ostler.db";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    pub place: Place,
    /// How long workers that have ended are kept, with their trail.
    pub worker_retention: Duration,
}

/// What keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file of this server alone, absolute.
    Sqlite(PathBuf),
    Postgres(PostgresUrl),
}

impl Store {
    /// The defaults, for a server whose files are under `root`.
    pub fn defaults(root: &Path) -> Self {
        Self::in_file(root.join(DEFAULT_STORE))
    }

    /// The defaults, in this file.
    pub fn in_file(path: PathBuf) -> Self {
        Self { place: Place::Sqlite(path), worker_retention: 7 * DAY }
    }

    pub(super) fn read(section: &Section<'_>) -> Self {
        let (path, url) = (path(section), url(section));
        section.declare_at_most_one("path", "url");
        if section.has("path") && section.has("url") {
            section.blame_key(
                "path",
                "[store] has both `path` and `url`",
                "keep `path` for a file, or `url` for PostgreSQL",
            );
        }
        let defaults = Self::in_file(path);
        Self {
            worker_retention: section
                .key(
                    "worker_retention",
                    "how long workers that have ended are kept, with their trail",
                )
                .duration(defaults.worker_retention, MINUTE..=3_650 * DAY),
            place: url.map_or(defaults.place, Place::Postgres),
        }
    }
}

fn path(section: &Section<'_>) -> PathBuf {
    let root = section.reading().around.root;
    let about = "the database, mode 0600; a server locks it for itself";
    let Some(text) = section.key("path", about).or_text(DEFAULT_STORE).text() else {
        return root.join(DEFAULT_STORE);
    };
    let path = text.get_ref();
    if path.is_empty() || path.ends_with('/') || path.contains('\0') {
        section.blame_key(
            "path",
            format!("`{path}` cannot be the name of a file"),
            format!("write for example \"{DEFAULT_STORE}\""),
        );
    }
    root.join(path)
}

fn url(section: &Section<'_>) -> Option<PostgresUrl> {
    let about = "a PostgreSQL database instead of the file; its password best as `${VARIABLE}`";
    let text = section.key("url", about).usually("none").text()?;
    PostgresUrl::parse(text.get_ref())
        .map_err(|wrong| {
            section.blame_key(
                "url",
                format!("`url` {wrong}"),
                "write for example \"postgres://ostler:${PASSWORD}@127.0.0.1:5432/ostler\"",
            );
        })
        .ok()
}
