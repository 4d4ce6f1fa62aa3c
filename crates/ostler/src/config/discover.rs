//! Which configuration file is meant, and how a file is read without trusting its size.

use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The name that is looked for.
pub const CONFIG_FILE: &str = "ostler.toml";

/// The command line's socket, relative to the configuration's directory.
pub const DEFAULT_SOCKET: &str = ".ostler/ostler.sock";

/// The file named by the flag, else by `OSTLER_CONFIG`, else the nearest `ostler.toml` in `start`
/// or above it. A file that was named is returned whether it exists or not.
pub fn discover(flag: Option<&Path>, variable: Option<&Path>, start: &Path) -> Option<PathBuf> {
    let named = flag.or(variable).map(Path::to_owned);
    named.or_else(|| {
        start
            .ancestors()
            .map(|directory| directory.join(CONFIG_FILE))
            .find(|candidate| candidate.is_file())
    })
}

/// The bytes of a file, or `None` if there are more than `limit`.
pub(super) fn read_bounded(path: &Path, limit: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_over_the_variable_and_the_directory() {
        let (flag, variable) = (Path::new("a.toml"), Path::new("b.toml"));
        let start = Path::new("/nowhere");
        assert_eq!(discover(Some(flag), Some(variable), start).as_deref(), Some(flag));
        assert_eq!(discover(None, Some(variable), start).as_deref(), Some(variable));
        assert_eq!(discover(None, None, start), None);
    }

    #[test]
    fn the_nearest_file_above_is_found() {
        let top = tempfile::tempdir().expect("a directory");
        let deep = top.path().join("a/b");
        std::fs::create_dir_all(&deep).expect("directories");
        std::fs::write(top.path().join(CONFIG_FILE), "").expect("a file");
        assert_eq!(discover(None, None, &deep), Some(top.path().join(CONFIG_FILE)));
        std::fs::write(deep.join(CONFIG_FILE), "").expect("a file");
        assert_eq!(discover(None, None, &deep), Some(deep.join(CONFIG_FILE)));
    }

    #[test]
    fn a_file_over_the_limit_is_not_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [b'x'; 10]).expect("written");
        assert_eq!(read_bounded(file.path(), 10).expect("read").map(|b| b.len()), Some(10));
        assert_eq!(read_bounded(file.path(), 9).expect("read"), None);
    }
}
