//! Files that change, told in bursts.
//!
//! A file is watched by the directory that holds it, because editors do not write a file but put
//! another in its place. Of a directory all that is below it is watched, for Python sources and
//! configuration. What is told is that something may have changed, and where: a path may be told
//! that is as it was. Nothing here knows what a change leads to.

mod ground;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use ground::Ground;

/// A burst is over when nothing has changed for this long,
const QUIET: Duration = Duration::from_millis(150);
/// or when it has lasted this long.
const LONGEST: Duration = Duration::from_secs(2);

/// Paths told at once; whoever changes more than that has changed everything.
const PATHS_KEPT: usize = 1024;

#[derive(Debug, thiserror::Error)]
#[error("cannot watch {}: {source}{}", path.display(), advice(source))]
pub(crate) struct WatchError {
    path: PathBuf,
    source: io::Error,
}

impl WatchError {
    fn new(path: impl AsRef<Path>, source: impl Into<io::Error>) -> WatchError {
        WatchError { path: path.as_ref().to_owned(), source: source.into() }
    }
}

/// The kernel's own words for its limits on watching speak of disks and files.
fn advice(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC) => "; raise fs.inotify.max_user_watches",
        Some(Errno::MFILE) => "; raise fs.inotify.max_user_instances",
        _ => "",
    }
}

#[derive(Debug)]
pub(crate) struct Watch {
    events: AsyncFd<Arc<OwnedFd>>,
    ground: Ground,
    changes: Changes,
}

impl Watch {
    /// Watches files, which need not exist yet, and directories with all that is below them.
    /// Needs a runtime.
    pub fn new(paths: Vec<PathBuf>) -> Result<Watch, WatchError> {
        let ground = Ground::new(paths)?;
        let events = listen(ground.events()).map_err(|error| WatchError::new("files", error))?;
        Ok(Watch { events, ground, changes: Changes::default() })
    }

    /// Waits until something changes, and then until the burst is over. What changed before it was
    /// called is told too, and nothing is lost when the future is dropped.
    pub async fn changed(&mut self) -> Vec<PathBuf> {
        while self.changes.paths.is_empty() {
            self.take_in().await;
        }
        let mut burst = Burst::begin(Instant::now());
        while Instant::now() < burst.end() {
            let more = tokio::time::timeout_at(burst.end(), self.take_in());
            if more.await.is_ok() && std::mem::take(&mut self.changes.are_fresh) {
                burst.go_on(Instant::now());
            }
        }
        std::mem::take(&mut self.changes.paths).into_iter().collect()
    }

    async fn take_in(&mut self) {
        let Ok(mut ready) = self.events.readable().await else {
            // The runtime is ending, and this future with it.
            return std::future::pending().await;
        };
        if self.ground.read_events(&mut self.changes) {
            ready.clear_ready();
        }
    }
}

#[allow(
    deprecated,
    reason = "what replaces it is unsafe, for types that do not own their descriptor"
)]
fn listen(events: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(events, Interest::READABLE)
}

/// What is to be told.
#[derive(Debug, Default)]
struct Changes {
    paths: BTreeSet<PathBuf>,
    /// Has anything changed since this was last asked?
    are_fresh: bool,
}

impl Changes {
    fn note(&mut self, path: PathBuf) {
        self.are_fresh = true;
        if self.paths.len() < PATHS_KEPT {
            self.paths.insert(path);
        }
    }
}

/// When a burst of changes is over.
#[derive(Clone, Copy, Debug)]
struct Burst {
    quiet: Instant,
    latest: Instant,
}

impl Burst {
    fn begin(now: Instant) -> Burst {
        Burst { quiet: now + QUIET, latest: now + LONGEST }
    }

    fn go_on(&mut self, now: Instant) {
        self.quiet = now + QUIET;
    }

    fn end(self) -> Instant {
        self.quiet.min(self.latest)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            Place(tempfile::tempdir().expect("a directory"))
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn write(&self, path: &str) -> PathBuf {
            let path = self.path(path);
            fs::create_dir_all(path.parent().expect("below the place")).expect("directories");
            fs::write(&path, "x = 1\n").expect("a file");
            path
        }

        fn rename(&self, from: &str, to: &str) {
            fs::rename(self.path(from), self.path(to)).expect("a rename");
        }

        fn watch(&self, paths: &[&str]) -> Watch {
            let paths = paths.iter().map(|path| self.path(path)).collect();
            Watch::new(paths).expect("it watches")
        }
    }

    /// All that is told until this path is.
    async fn until(watch: &mut Watch, path: &Path) -> BTreeSet<PathBuf> {
        let mut told = BTreeSet::new();
        let look = async {
            while !told.contains(path) {
                told.extend(watch.changed().await);
            }
        };
        let told_in_time = tokio::time::timeout(LIMIT, look).await;
        told_in_time.unwrap_or_else(|_| panic!("never told of {}", path.display()));
        told
    }

    #[tokio::test]
    async fn a_file_that_is_written_is_told() {
        let place = Place::new();
        let file = place.write("ostler.toml");
        let mut watch = place.watch(&["ostler.toml"]);
        place.write("ostler.toml");
        assert_eq!(until(&mut watch, &file).await, [file].into());
    }

    #[tokio::test]
    async fn a_file_that_is_replaced_is_told_each_time() {
        let place = Place::new();
        let file = place.write("hello.conf");
        let mut watch = place.watch(&["hello.conf"]);
        for _ in 0..3 {
            place.write("4913");
            place.rename("4913", "hello.conf");
            until(&mut watch, &file).await;
        }
    }

    #[tokio::test]
    async fn a_file_that_comes_into_being_is_told() {
        let place = Place::new();
        let mut watch = place.watch(&["hello.py"]);
        let file = place.write("hello.py");
        until(&mut watch, &file).await;
        fs::remove_file(&file).expect("it is there");
        until(&mut watch, &file).await;
    }

    #[tokio::test]
    async fn the_target_of_a_link_is_told_as_the_link() {
        let place = Place::new();
        place.write("real/one.toml");
        let link = place.path("ostler.toml");
        std::os::unix::fs::symlink("real/one.toml", &link).expect("a link");
        let mut watch = place.watch(&["ostler.toml"]);
        place.write("real/one.toml");
        until(&mut watch, &link).await;
    }

    #[tokio::test]
    async fn neighbours_of_a_file_are_not_told() {
        let place = Place::new();
        let mut watch = place.watch(&["hello.py"]);
        place.write("other.py");
        let file = place.write("hello.py");
        assert_eq!(until(&mut watch, &file).await, [file].into());
    }

    #[tokio::test]
    async fn of_a_directory_sources_are_told_and_nothing_else() {
        let place = Place::new();
        place.write("src/old/deep/a.py");
        place.write("src/venv/pyvenv.cfg");
        let mut watch = place.watch(&["src"]);
        for unheard in [
            "src/data.json",
            "src/.#a.py",
            "src/.git/a.py",
            "src/old/__pycache__/a.py",
            "src/node_modules/a.py",
            "src/venv/a.py",
            "beside.py",
        ] {
            place.write(unheard);
        }
        let deep = place.write("src/old/deep/a.py");
        let last = place.write("src/pyproject.toml");
        assert_eq!(until(&mut watch, &last).await, [deep, last].into());
    }

    #[tokio::test]
    async fn a_new_directory_is_watched_and_what_is_in_it_told() {
        let place = Place::new();
        fs::create_dir(place.path("src")).expect("a directory");
        let mut watch = place.watch(&["src"]);
        let at_once = place.write("src/new/deeper/a.py");
        until(&mut watch, &at_once).await;
        let later = place.write("src/new/deeper/b.py");
        until(&mut watch, &later).await;
    }

    #[tokio::test]
    async fn a_directory_that_moves_is_told_under_its_new_name_and_no_more_when_it_has_left() {
        let place = Place::new();
        place.write("src/one/a.py");
        let mut watch = place.watch(&["src"]);
        place.rename("src/one", "src/two");
        until(&mut watch, &place.path("src/two/a.py")).await;
        let again = place.write("src/two/b.py");
        assert_eq!(until(&mut watch, &again).await, [again].into());

        place.rename("src/two", "elsewhere");
        until(&mut watch, &place.path("src/two")).await;
        place.write("elsewhere/c.py");
        let last = place.write("src/last.py");
        assert_eq!(until(&mut watch, &last).await, [last].into());
    }

    #[tokio::test]
    async fn a_directory_that_is_made_anew_is_watched_again() {
        let place = Place::new();
        place.write("src/a.py");
        let mut watch = place.watch(&["src"]);
        place.rename("src", "aside");
        until(&mut watch, &place.path("src")).await;
        fs::create_dir(place.path("src")).expect("a directory");
        let file = place.write("src/a.py");
        until(&mut watch, &file).await;
        place.write("aside/b.py");
        let last = place.write("src/b.py");
        assert_eq!(until(&mut watch, &last).await, [last].into());
    }

    #[tokio::test]
    async fn what_changed_meanwhile_is_told_at_once_and_only_once() {
        let place = Place::new();
        let mut watch = place.watch(&["a.py", "b.py"]);
        let both = [place.write("a.py"), place.write("b.py"), place.write("a.py")];
        let told = tokio::time::timeout(LIMIT, watch.changed()).await.expect("told");
        assert_eq!(told, both[..2]);
    }

    #[tokio::test]
    async fn a_dropped_future_loses_nothing() {
        let place = Place::new();
        let mut watch = place.watch(&["a.py"]);
        let file = place.write("a.py");
        let mut told = Vec::new();
        while told.is_empty() && watch.changes.paths.is_empty() {
            let soon = tokio::time::timeout(Duration::from_millis(1), watch.changed()).await;
            // On a machine that is slow enough, the burst is over.
            told = soon.unwrap_or_default();
        }
        if told.is_empty() {
            until(&mut watch, &file).await;
        }
    }

    #[tokio::test]
    async fn what_cannot_be_watched_is_refused_by_name() {
        let place = Place::new();
        let missing = place.path("nowhere/ostler.toml");
        let error = Watch::new(vec![missing]).expect_err("there is no such directory").to_string();
        assert!(error.contains("nowhere") && error.contains("No such file"), "{error}");
        let full = WatchError::new("src", Errno::NOSPC).to_string();
        assert!(full.ends_with("; raise fs.inotify.max_user_watches"), "{full}");
    }

    #[test]
    fn a_burst_goes_on_while_it_is_not_quiet_but_not_for_ever() {
        let begun = Instant::now();
        let mut burst = Burst::begin(begun);
        assert_eq!(burst.end(), begun + QUIET);
        burst.go_on(begun + QUIET / 2);
        assert_eq!(burst.end(), begun + QUIET / 2 + QUIET);
        burst.go_on(begun + LONGEST - QUIET / 2);
        assert_eq!(burst.end(), begun + LONGEST);
    }
}
