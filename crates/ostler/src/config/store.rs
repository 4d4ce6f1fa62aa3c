//! `[store]`: where what must survive a restart is kept.

use std::path::{Path, PathBuf};

use super::section::Section;

/// The database where none is set, beside the configuration.
pub const DEFAULT_STORE: &str = ".ostler/ostler.db";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The database, absolute.
    pub path: PathBuf,
}

impl Store {
    /// The defaults, for a server whose files are under `root`.
    pub fn defaults(root: &Path) -> Self {
        Self { path: root.join(DEFAULT_STORE) }
    }

    pub(super) fn read(section: &Section<'_>) -> Self {
        let root = section.reading().around.root;
        let about = "the database, mode 0600; a server locks it for itself";
        let Some(text) = section.key("path", about).or_text(DEFAULT_STORE).text() else {
            return Self::defaults(root);
        };
        let path = text.get_ref();
        if path.is_empty() || path.ends_with('/') || path.contains('\0') {
            section.blame_key(
                "path",
                format!("`{path}` cannot be the name of a file"),
                format!("write for example \"{DEFAULT_STORE}\""),
            );
        }
        Self { path: root.join(path) }
    }
}
