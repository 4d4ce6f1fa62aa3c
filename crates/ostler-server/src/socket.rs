//! The unix socket: made so that only this user can reach it.

use std::path::Path;

use tokio::net::UnixListener;

use crate::server::BindError;

/// A socket that only this user can reach. A file that nobody answers at is left over from a
/// server that was killed.
pub(crate) async fn bind(path: &Path) -> Result<UnixListener, BindError> {
    let failed = |source| BindError::Socket { path: path.to_owned(), source };
    if let Some(directory) = path.parent() {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    if path.exists() {
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(BindError::InUse { path: path.to_owned() });
        }
        std::fs::remove_file(path).map_err(failed)?;
    }
    // Bound under a private mask: there is no moment at which others could connect.
    let listener = {
        let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(path);
        rustix::process::umask(mask);
        listener
    };
    listener.map_err(failed)
}
