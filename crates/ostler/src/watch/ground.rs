//! The directories that are watched, and what an event in one of them means.
//!
//! The kernel knows directories by number and files by name, and watches no tree: each directory
//! has its own watch, a new one is added as soon as it is heard of, and what was in it by then is
//! told, since nobody heard it come.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::{Changes, WatchError};

/// Directories watched at most, by one watch.
const DIRECTORIES: usize = 4096;

/// Events taken in before others get their turn.
const EVENTS_AT_ONCE: usize = 1024;

const HEARD: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR);

const APPEARED: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_TO);

#[derive(Debug)]
pub(super) struct Ground {
    inotify: Arc<OwnedFd>,
    /// By the kernel's number.
    directories: HashMap<i32, Directory>,
    /// Everything asked for, and whether with all that is below it.
    asked: HashMap<PathBuf, Reach>,
    limit: usize,
    said_full: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    File,
    Tree,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// What was asked for by name, and how it was called then.
    names: HashMap<OsString, PathBuf>,
    is_in_tree: bool,
}

impl Ground {
    pub fn new(paths: Vec<PathBuf>) -> Result<Ground, WatchError> {
        Ground::with_limit(paths, DIRECTORIES)
    }

    fn with_limit(paths: Vec<PathBuf>, limit: usize) -> Result<Ground, WatchError> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(|error| WatchError::new("files", error))?;
        let reach = |path: &PathBuf| if path.is_dir() { Reach::Tree } else { Reach::File };
        let mut ground = Ground {
            inotify: Arc::new(inotify),
            directories: HashMap::new(),
            asked: paths.into_iter().map(|path| (path.clone(), reach(&path))).collect(),
            limit,
            said_full: false,
        };
        // Nothing has changed yet.
        ground.watch_all(&mut Changes::default())?;
        Ok(ground)
    }

    /// Readable when there are events.
    pub fn events(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.inotify)
    }

    fn watch_all(&mut self, changes: &mut Changes) -> Result<(), WatchError> {
        for (path, reach) in self.asked.clone() {
            self.watch_name(&path, &path)?;
            // A link's file is changed where it is.
            let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if real != path {
                self.watch_name(&real, &path)?;
            }
            if reach == Reach::Tree {
                self.watch_tree(path, changes)?;
            }
        }
        Ok(())
    }

    /// Listens for `path` in the directory that holds it; it is told as `told`.
    fn watch_name(&mut self, path: &Path, told: &Path) -> Result<(), WatchError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let directory = self.watch_directory(parent, HEARD);
        let directory = directory.map_err(|error| WatchError::new(parent, error))?;
        directory.names.insert(name.to_owned(), told.to_owned());
        Ok(())
    }

    /// Watches a directory and all that is below it, the nearest first, and notes the files that
    /// are there.
    fn watch_tree(&mut self, top: PathBuf, changes: &mut Changes) -> Result<(), WatchError> {
        let mut flags = HEARD;
        let mut queue = VecDeque::from([top]);
        while let Some(path) = queue.pop_front() {
            if self.directories.len() >= self.limit {
                self.say_full(&path);
                return Ok(());
            }
            match self.watch_directory(&path, flags) {
                Ok(directory) => directory.is_in_tree = true,
                // Gone again, a link, or not ours to read.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => continue,
                Err(error) => return Err(WatchError::new(&path, error)),
            }
            // Below the top, links are not followed: they may lead in a circle.
            flags = HEARD | WatchFlags::DONT_FOLLOW;
            look_into(&path, &mut queue, changes);
        }
        Ok(())
    }

    fn watch_directory(&mut self, path: &Path, flags: WatchFlags) -> Result<&mut Directory, Errno> {
        let number = inotify::add_watch(&self.inotify, path, flags)?;
        let directory = self.directories.entry(number);
        Ok(directory.or_insert_with(|| Directory {
            path: path.to_owned(),
            names: names_in(path, self.asked.keys()),
            is_in_tree: false,
        }))
    }

    fn say_full(&mut self, path: &Path) {
        if !std::mem::replace(&mut self.said_full, true) {
            let (limit, path) = (self.limit, path.display());
            tracing::warn!(
                "watching {limit} directories, no more: changes in {path} and others are not seen"
            );
        }
    }

    /// A directory has left: so have those below it, wherever they are now.
    fn forget(&mut self, path: &Path) {
        let inotify = &self.inotify;
        self.directories.retain(|number, directory| {
            let leaves = directory.is_in_tree && directory.path.starts_with(path);
            if leaves {
                let _ = inotify::remove_watch(inotify, *number);
            }
            !leaves
        });
    }

    /// Takes in what has happened. False: there may be more.
    pub fn read_events(&mut self, changes: &mut Changes) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(self.events(), &mut buffer);
        let mut taken = 0;
        while taken < EVENTS_AT_ONCE || !events.is_buffer_empty() {
            let Ok(event) = events.next() else { return true };
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            self.on_event(event.wd(), event.events(), name, changes);
            taken += 1;
        }
        false
    }

    fn on_event(
        &mut self,
        number: i32,
        what: ReadFlags,
        name: Option<&OsStr>,
        changes: &mut Changes,
    ) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.on_events_lost(changes);
        } else if what.contains(ReadFlags::IGNORED) {
            self.on_directory_lost(number);
        } else if let (Some(directory), Some(name)) = (self.directories.get(&number), name) {
            let asked = directory.names.get(name).cloned();
            let found = directory.is_in_tree && !is_skipped(name);
            let found = found.then(|| directory.path.join(name));
            if let Some(path) = asked {
                self.on_asked_for(path, what, changes);
            }
            if let Some(path) = found {
                self.on_found(path, what, changes);
            }
        }
    }

    /// One in a tree is heard of when it comes again; above it nobody listens for others.
    fn on_directory_lost(&mut self, number: i32) {
        let lost = self.directories.remove(&number).filter(|lost| !lost.is_in_tree);
        if let Some(lost) = lost {
            let path = lost.path.display();
            tracing::warn!("{path} is gone; changes there are not seen until a restart");
        }
    }

    fn on_events_lost(&mut self, changes: &mut Changes) {
        self.asked.keys().for_each(|path| changes.note(path.clone()));
        let again = self.watch_all(changes);
        complain(again);
    }

    fn on_asked_for(&mut self, path: PathBuf, what: ReadFlags, changes: &mut Changes) {
        changes.note(path.clone());
        if self.asked.get(&path) == Some(&Reach::Tree) {
            self.on_directory(path, what, changes);
        }
    }

    fn on_found(&mut self, path: PathBuf, what: ReadFlags, changes: &mut Changes) {
        if what.contains(ReadFlags::ISDIR) {
            // One that moves takes its files along, and of them nothing is heard.
            if what.contains(ReadFlags::MOVED_FROM) {
                changes.note(path.clone());
            }
            self.on_directory(path, what, changes);
        } else if is_source(&path) {
            changes.note(path);
        }
    }

    fn on_directory(&mut self, path: PathBuf, what: ReadFlags, changes: &mut Changes) {
        if what.contains(ReadFlags::MOVED_FROM) {
            self.forget(&path);
        } else if what.intersects(APPEARED) && !is_virtual_environment(&path) {
            complain(self.watch_tree(path, changes));
        }
    }
}

/// What was asked for in this directory; one that comes again must know it.
fn names_in<'a>(
    directory: &Path,
    asked: impl Iterator<Item = &'a PathBuf>,
) -> HashMap<OsString, PathBuf> {
    let here = asked.filter(|path| path.parent() == Some(directory));
    here.filter_map(|path| Some((path.file_name()?.to_owned(), path.clone()))).collect()
}

fn complain(watched: Result<(), WatchError>) {
    if let Err(error) = watched {
        tracing::warn!("{error}; changes there are not seen");
    }
}

/// Directories go to the queue, sources to the changes.
fn look_into(path: &Path, queue: &mut VecDeque<PathBuf>, changes: &mut Changes) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if is_skipped(&entry.file_name()) {
            continue;
        }
        let (path, kind) = (entry.path(), entry.file_type());
        if kind.is_ok_and(|kind| kind.is_dir()) {
            queue.extend((!is_virtual_environment(&path)).then_some(path));
        } else if is_source(&path) {
            changes.note(path);
        }
    }
}

/// What is hidden (`.git`, `.venv`, `.ostler`, an editor's own files), made, or somebody else's.
fn is_skipped(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") || name == "__pycache__" || name == "node_modules"
}

fn is_virtual_environment(directory: &Path) -> bool {
    directory.join("pyvenv.cfg").exists()
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py" || extension == "toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(directories: &[&str]) -> tempfile::TempDir {
        let top = tempfile::tempdir().expect("a directory");
        for directory in directories {
            fs::create_dir_all(top.path().join(directory)).expect("a directory");
            fs::write(top.path().join(directory).join("a.py"), "").expect("a file");
        }
        top
    }

    #[test]
    fn no_more_directories_are_watched_than_the_limit_and_the_nearest_come_first() {
        let top = tree(&["src/a/deep/deeper", "src/b", "src/c"]);
        let source = top.path().join("src");
        let ground = Ground::with_limit(vec![source.clone()], 5).expect("it watches");
        let mut watched: Vec<_> = ground.directories.values().map(|known| &known.path).collect();
        watched.sort();
        let near = ["a", "b", "c"].map(|name| source.join(name));
        assert_eq!(watched, [&top.path().to_owned(), &source, &near[0], &near[1], &near[2]]);
        assert!(ground.said_full);
    }

    #[test]
    fn when_events_were_lost_everything_is_told_and_what_is_new_is_watched() {
        let top = tree(&["src/a"]);
        let named = top.path().join("ostler.toml");
        let mut ground = Ground::new(vec![top.path().join("src"), named.clone()]).expect("watches");
        let new = top.path().join("src/new");
        fs::create_dir(&new).expect("a directory");
        fs::write(new.join("b.py"), "").expect("a file");

        let mut changes = Changes::default();
        ground.on_event(-1, ReadFlags::QUEUE_OVERFLOW, None, &mut changes);
        let told = ["ostler.toml", "src", "src/a/a.py", "src/new/b.py"];
        assert_eq!(changes.paths, told.map(|path| top.path().join(path)).into());
        assert!(ground.directories.values().any(|known| known.path == new));
    }

    #[test]
    fn a_name_asked_for_is_heard_when_its_directory_comes_again() {
        let top = tree(&["src/a"]);
        let named = top.path().join("src/a/data.json");
        let paths = vec![top.path().join("src"), named.clone()];
        let mut ground = Ground::new(paths).expect("it watches");
        let mut changes = Changes::default();
        fs::remove_dir_all(top.path().join("src/a")).expect("it is there");
        fs::create_dir(top.path().join("src/a")).expect("a directory");
        while !ground.read_events(&mut changes) {}
        assert!(!changes.paths.contains(&named), "it was never there");
        fs::write(&named, "").expect("a file");
        while !ground.read_events(&mut changes) {}
        assert!(changes.paths.contains(&named));
    }

    #[test]
    fn a_directory_that_is_gone_has_no_watch() {
        let top = tree(&["src/a"]);
        let mut ground = Ground::new(vec![top.path().join("src")]).expect("it watches");
        let before = ground.directories.len();
        fs::remove_dir_all(top.path().join("src/a")).expect("it is there");
        // Removing is over when it returns, and so is the telling of it.
        while !ground.read_events(&mut Changes::default()) {}
        assert_eq!(ground.directories.len(), before - 1);
    }
}
