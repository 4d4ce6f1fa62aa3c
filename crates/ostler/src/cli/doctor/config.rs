//! The configuration: is there one, is it valid, and may its socket be made where it says.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::geteuid;

use super::Check;
use crate::cli::args::ConfigArg;
use crate::cli::endpoint::config_file;
use crate::config::{self, Config, DEFAULT_SOCKET, Place, Pool};

/// The checks, and the configuration for those that depend on it.
pub(super) fn checks(arg: &ConfigArg, here: &Path) -> (Option<Config>, Vec<Check>) {
    let Some(file) = config_file(arg, here) else {
        let none = Check::ok("configuration", "none: ostler serve FILE.py needs none");
        return (None, vec![none, socket(&here.join(DEFAULT_SOCKET))]);
    };
    match config::load(&file) {
        Ok(config) => {
            let found = format!("{} is valid, pools: {}", file.display(), config.pools.len());
            let mut checks = vec![
                Check::ok("configuration", found),
                socket(&config.server.socket),
                store(&config),
            ];
            checks.extend(unwatched(&config));
            (Some(config), checks)
        }
        Err(error) => {
            let check = Check::problem("configuration", error.to_string(), "correct the file");
            (None, vec![check])
        }
    }
}

/// Pools that nobody watches: a worker that hangs stays in service.
fn unwatched(config: &Config) -> Option<Check> {
    let blind = |pool: &&Pool| {
        let health = &pool.health;
        health.check.is_none() && health.heartbeat.is_none_or(|heartbeat| heartbeat.independent)
    };
    let pools: Vec<&str> =
        config.pools.iter().filter(blind).map(|pool| pool.name.as_str()).collect();
    (!pools.is_empty()).then(|| {
        Check::warning(
            "health",
            format!("nothing replaces a worker that hangs in: {}", pools.join(", ")),
            "switch on `heartbeat` or `check` of the pool",
        )
    })
}

/// Where what survives a restart is; `ostler check` tries it.
fn store(config: &Config) -> Check {
    let found = match &config.store.place {
        Place::Sqlite(path) if path.exists() => path.display().to_string(),
        Place::Sqlite(path) => format!("{} will be made, with mode 0600", path.display()),
        Place::Postgres(url) => url.to_string(),
    };
    Check::ok("store", found)
}

/// Whoever can write to the socket's directory can pose as the server.
fn socket(socket: &Path) -> Check {
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let shown = directory.display();
    let Ok(metadata) = std::fs::metadata(directory) else {
        return Check::ok("socket", format!("{shown} will be made, with mode 0700"));
    };
    let mode = metadata.mode() & 0o7777;
    if metadata.uid() != geteuid().as_raw() {
        return Check::warning(
            "socket",
            format!("{shown} belongs to user {}", metadata.uid()),
            "run as that user, or set `socket` in [server]",
        );
    }
    match mode & 0o022 {
        0 => Check::ok("socket", format!("{shown} has mode {mode:04o}")),
        _ => Check::problem(
            "socket",
            format!("{shown} has mode {mode:04o}: others can replace the socket"),
            format!("chmod 0700 {shown}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_pool_that_nobody_watches_is_a_warning() {
        let mut config = Config::of_python_file(Path::new("w.py"), Path::new("/srv"), 1);
        assert_eq!(unwatched(&config), None);
        config.pools[0].health.check = None;
        assert_eq!(unwatched(&config), None, "heartbeats find it");
        config.pools[0].health.heartbeat = None;
        let warning = unwatched(&config).expect("a warning");
        assert_eq!(warning.verdict, Verdict::Warning);
        assert!(warning.found.ends_with("hangs in: w"), "{warning:?}");
    }

    #[test]
    fn a_directory_that_others_can_write_is_a_problem() {
        let directory = tempfile::tempdir().expect("a directory");
        let verdict = |mode: u32| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(directory.path(), permissions).expect("it is ours");
            socket(&directory.path().join("ostler.sock")).verdict
        };
        assert_eq!(verdict(0o777), Verdict::Problem);
        assert_eq!(verdict(0o770), Verdict::Problem);
        assert_eq!(verdict(0o700), Verdict::Ok);
        let missing = directory.path().join("none/ostler.sock");
        assert_eq!(socket(&missing).verdict, Verdict::Ok);
    }
}
