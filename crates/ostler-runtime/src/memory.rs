//! How much memory processes hold, each with everything it has started.
//!
//! One pass over /proc learns who is whose child; then only those that belong to a worker are
//! asked for their size. So the cost is that of the machine's processes, once, however many
//! workers there are: ask for those of all pools together. It reads files and blocks; callers
//! give it a thread.
//!
//! The size is resident memory. A page that two processes share counts in both, so what a fork
//! has in common with its parent is counted twice: the sum is never too small, and it is what
//! people compare with `ps`. It knows pids, not pools, and decides nothing.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, RawDir, SeekFrom, openat, seek};

/// The name that the kernel shows for a worker's shim.
const SHIM: &[u8] = b"ostler-shim";

/// Room for the directory's entries per system call.
const LISTING: usize = 32 * 1024;

/// Counts processes, and keeps its buffers from one time to the next.
#[derive(Debug)]
pub struct Census {
    proc: OwnedFd,
    page: u64,
    listing: Vec<u8>,
    people: People,
}

impl Census {
    /// Fails where there is no /proc.
    pub fn new() -> io::Result<Census> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = openat(CWD, c"/proc", flags, Mode::empty())?;
        Ok(Census {
            proc,
            page: rustix::param::page_size() as u64,
            listing: Vec::with_capacity(LISTING),
            people: People::default(),
        })
    }

    /// The bytes held by each of these processes and all that descend from it. A worker's orphans
    /// fall to its shim, and count as the worker's. Whoever has ended by now is not in the answer;
    /// a pid that has become another process's is, so the key must tell one process from the next.
    pub fn take<K: Copy>(&mut self, roots: &[(K, i32)]) -> Vec<(K, u64)> {
        self.list();
        let found = self.people.settle(roots.iter().map(|(_, pid)| *pid));
        let mut bytes = vec![0; roots.len()];
        for (pid, root) in self.people.counted() {
            bytes[root] += self.page * resident_pages(&self.proc, pid).unwrap_or(0);
        }
        let sums = roots.iter().zip(bytes).map(|((key, _), bytes)| (*key, bytes));
        sums.zip(found).filter_map(|(sum, found)| found.then_some(sum)).collect()
    }

    fn list(&mut self) {
        self.people.all.clear();
        if seek(&self.proc, SeekFrom::Start(0)).is_err() {
            return;
        }
        self.listing.clear();
        let mut entries = RawDir::new(&self.proc, self.listing.spare_capacity_mut());
        while let Some(Ok(entry)) = entries.next() {
            let pid = number(entry.file_name().to_bytes());
            // One that has ended since it was listed has no children any more.
            let person = pid.and_then(|pid| read_person(&self.proc, pid as i32));
            self.people.all.extend(person);
        }
        self.people.sort();
    }
}

/// A process, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Person {
    pid: i32,
    parent: i32,
    is_shim: bool,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unknown,
    /// Below nobody who was asked for.
    Outside,
    /// The shim above this root: not counted itself, but what falls to it is.
    Above(usize),
    /// This root, or below it.
    Inside(usize),
}

/// All processes of the machine at about one moment.
#[derive(Debug, Default)]
struct People {
    /// By pid.
    all: Vec<Person>,
    /// The way up that is being walked.
    way: Vec<usize>,
}

impl People {
    fn sort(&mut self) {
        // The kernel lists them so; a merge of what is sorted costs one look at each.
        self.all.sort_by_key(|person| person.pid);
    }

    /// Finds everyone's place below these roots. Says which roots exist.
    fn settle(&mut self, roots: impl Iterator<Item = i32>) -> Vec<bool> {
        let found = roots.enumerate().map(|(root, pid)| self.place_root(root, pid)).collect();
        for index in 0..self.all.len() {
            self.settle_one(index);
        }
        found
    }

    fn place_root(&mut self, root: usize, pid: i32) -> bool {
        let Some(index) = self.find(pid) else { return false };
        self.all[index].place = Place::Inside(root);
        // A root whose shim was killed is for a moment the child of the root shim, below which
        // there are all the others.
        let parent = self.find(self.all[index].parent);
        if let Some(shim) = parent.filter(|&parent| self.all[parent].is_shim) {
            self.all[shim].place = Place::Above(root);
        }
        true
    }

    /// Walks up to somebody whose place is known, and gives everyone on the way the same.
    fn settle_one(&mut self, index: usize) {
        self.way.clear();
        let mut next = Some(index);
        let mut place = Place::Outside;
        while let Some(index) = next {
            match self.all[index].place {
                Place::Unknown => {}
                Place::Outside => break,
                Place::Above(root) | Place::Inside(root) => {
                    place = Place::Inside(root);
                    break;
                }
            }
            // Not only a guess: parents that were read at different times may form a circle, and
            // whoever comes here again is to stop.
            self.all[index].place = Place::Outside;
            self.way.push(index);
            next = self.find(self.all[index].parent);
        }
        for index in &self.way {
            self.all[*index].place = place;
        }
    }

    fn find(&self, pid: i32) -> Option<usize> {
        self.all.binary_search_by_key(&pid, |person| person.pid).ok()
    }

    /// Whoever counts, and for which root.
    fn counted(&self) -> impl Iterator<Item = (i32, usize)> {
        self.all.iter().filter_map(|person| match person.place {
            Place::Inside(root) => Some((person.pid, root)),
            Place::Unknown | Place::Outside | Place::Above(_) => None,
        })
    }
}

fn read_person(proc: &OwnedFd, pid: i32) -> Option<Person> {
    let mut buffer = [MaybeUninit::uninit(); 256];
    parse_stat(pid, read(proc, pid, b"/stat\0", &mut buffer)?)
}

/// `pid (name) state parent …`. The name may hold anything, brackets too; what follows is
/// numbers, and more of them than are needed or read.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Person> {
    let open = stat.iter().position(|&byte| byte == b'(')?;
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let parent = stat.get(close + 1..)?.split(|&byte| byte == b' ').nth(2)?;
    Some(Person {
        pid,
        parent: number(parent)? as i32,
        is_shim: stat.get(open + 1..close)? == SHIM,
        place: Place::Unknown,
    })
}

/// From `statm`, not from `stat`, which newer kernels estimate. None: it has ended.
fn resident_pages(proc: &OwnedFd, pid: i32) -> Option<u64> {
    let mut buffer = [MaybeUninit::uninit(); 128];
    let statm = read(proc, pid, b"/statm\0", &mut buffer)?;
    number(statm.split(|&byte| byte == b' ').nth(1)?)
}

/// The beginning of a process's file, as much as there is room for. `file` ends with a NUL.
fn read<'b>(
    proc: &OwnedFd,
    pid: i32,
    file: &[u8],
    buffer: &'b mut [MaybeUninit<u8>],
) -> Option<&'b [u8]> {
    let mut path = [0; 32];
    let mut rest = &mut path[..];
    io::Write::write_fmt(&mut rest, format_args!("{pid}")).ok()?;
    io::Write::write_all(&mut rest, file).ok()?;
    let path = std::ffi::CStr::from_bytes_until_nul(&path).ok()?;
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let (read, _) = rustix::io::read(&file, buffer).ok()?;
    Some(read)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::time::Duration;

    use super::*;
    use crate::containment::{Cgroup, Contained, Containment, RootOptions, RootShim, SpawnSpec};

    crate::enter_before_main!();

    const MIB: u64 = 1 << 20;
    const LIMIT: Duration = Duration::from_secs(30);

    fn person(pid: i32, parent: i32) -> Person {
        Person { pid, parent, is_shim: false, place: Place::Unknown }
    }

    fn shim(pid: i32, parent: i32) -> Person {
        Person { is_shim: true, ..person(pid, parent) }
    }

    fn settled(all: &[Person], roots: &[i32]) -> (Vec<bool>, Vec<(i32, usize)>) {
        let mut people = People { all: all.to_vec(), way: Vec::new() };
        people.sort();
        let found = people.settle(roots.iter().copied());
        (found, people.counted().collect())
    }

    #[test]
    fn descendants_count_for_the_root_above_them() {
        let all = [person(1, 0), person(10, 1), person(11, 10), person(5, 11), person(20, 1)];
        let (found, counted) = settled(&all, &[10, 20]);
        assert_eq!(found, [true, true]);
        assert_eq!(counted, [(5, 0), (10, 0), (11, 0), (20, 1)]);
    }

    #[test]
    fn what_fell_to_a_shim_counts_for_its_worker_and_the_shim_does_not() {
        let all = [person(1, 0), shim(9, 1), person(10, 9), person(30, 9), person(31, 30)];
        assert_eq!(settled(&all, &[10]).1, [(10, 0), (30, 0), (31, 0)]);
    }

    #[test]
    fn a_parent_that_is_no_shim_brings_no_brothers() {
        let all = [person(1, 0), person(10, 1), person(11, 1)];
        assert_eq!(settled(&all, &[10]).1, [(10, 0)]);
    }

    #[test]
    fn a_root_that_has_ended_is_not_found() {
        assert_eq!(settled(&[person(1, 0)], &[10]), (vec![false], vec![]));
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let all = [person(10, 12), person(11, 10), person(12, 11), person(13, 1)];
        assert_eq!(settled(&all, &[13]).1, [(13, 0)]);
    }

    #[test]
    fn a_name_may_look_like_the_fields_behind_it() {
        let read = |stat: &str| parse_stat(7, stat.as_bytes());
        assert_eq!(read("7 (a) S 1 (b) R 42 7 7 0"), Some(person(7, 42)));
        assert_eq!(read("7 (ostler-shim) S 42 7"), Some(shim(7, 42)));
        assert_eq!(read("7 ((ostler-shim)) S 42 7"), Some(person(7, 42)));
        assert_eq!(read("7 (sh"), None);
        assert_eq!(read(""), None);
    }

    async fn root() -> RootShim {
        let options = RootOptions::new("census").expect("it enters before main");
        let options =
            RootOptions { containment: Containment::Shim, cgroup: Cgroup::Off, ..options };
        RootShim::start(options).await.expect("a root shim")
    }

    /// A shell that can `hold MIB [BY]`, which says so on descriptor 3 when it does.
    async fn shell(root: &RootShim, script: &str) -> Contained {
        let hold = "hold() { exec $2 python3 -S -c '
import os, sys, signal
kept = b\"x\" * (int(sys.argv[1]) << 20)
os.write(3, b\"held\\n\")
signal.pause()' $1; }\n";
        let script = format!("{hold}{script}");
        let argv = vec!["/bin/sh".into(), "-c".into(), script.into()];
        let path = std::env::var_os("PATH").expect("a path");
        let env = vec![("PATH".into(), path)];
        let spec = SpawnSpec { env, ..SpawnSpec::new("census-1", argv) };
        root.spawn(spec).await.expect("a shell starts")
    }

    async fn until_held(process: &mut Contained, times: usize) {
        let stream = process.data.take().expect("asked for");
        stream.set_nonblocking(false).expect("a socket");
        stream.set_read_timeout(Some(LIMIT)).expect("a socket");
        let read = move || BufReader::new(stream).lines().take(times).map_while(Result::ok).count();
        assert_eq!(tokio::task::spawn_blocking(read).await.expect("it reads"), times);
    }

    #[tokio::test]
    async fn a_worker_is_as_large_as_all_it_has_started() {
        let root = root().await;
        // A grandchild, an orphan, and an orphan in a session of its own.
        let script = "(hold 20 & wait) & (hold 30 &); (hold 40 setsid &); wait";
        let mut large = shell(&root, script).await;
        let mut small = shell(&root, "hold 10").await;
        until_held(&mut large, 3).await;
        until_held(&mut small, 1).await;

        let mut census = Census::new().expect("a proc");
        let sizes = census.take(&[("large", large.pid), ("small", small.pid)]);
        let [("large", large_size), ("small", small_size)] = sizes[..] else {
            panic!("both live: {sizes:?}");
        };
        assert!((90 * MIB..200 * MIB).contains(&large_size), "{large_size}");
        assert!((10 * MIB..60 * MIB).contains(&small_size), "{small_size}");
        root.close().await;
    }

    #[tokio::test]
    async fn one_that_has_ended_is_left_out() {
        let root = root().await;
        let mut lives = shell(&root, "hold 10").await;
        let ended = shell(&root, "exit").await;
        until_held(&mut lives, 1).await;
        let mut census = Census::new().expect("a proc");
        let roots = [("ended", ended.pid), ("lives", lives.pid)];
        // It is there until its shim has reaped it.
        let begun = std::time::Instant::now();
        while census.take(&roots).len() == 2 {
            assert!(begun.elapsed() < LIMIT, "never gone");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(census.take(&roots)[0].0, "lives");
        root.close().await;
    }
}
