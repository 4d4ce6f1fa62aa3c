//! One process, attended from spawn to clearance: its streams are read, its output is captured,
//! and what becomes of it is reported in the order that the core relies on: all that it said
//! before its exit, its exit before its clearance.

use std::sync::Arc;
use std::time::Duration;

use ostler_core::{Action, Event, Exit as CoreExit, OrderId, ProcessId, SpawnFailure};
use tokio::task::JoinSet;

use crate::chronicle::EndOfProcess;
use crate::containment::{Cause, Contained, Exit, Report, SpawnError};
use crate::driver::Driver;
use crate::failure::describe_exit;
use crate::launcher::Recipe;
use crate::link::Link;
use crate::output::{self, Stream};
use crate::reader;
use crate::rendezvous::Rendezvous;

/// A closed stream is usually the first sign of an exit. Only when none follows is it worth a word.
const EXIT_FOLLOWS: Duration = Duration::from_secs(1);
/// A root shim that cannot be had now may be had later.
const ROOT_RETRY: Duration = Duration::from_secs(1);
/// A root shim forks in milliseconds.
const SPAWN_LIMIT: Duration = Duration::from_secs(10);
/// Lines of its output that tell why a process did not come up.
const LAST_WORDS: usize = 10;
/// What a dead process has written is read within this time, whoever else holds its pipes.
const OUTPUT_FOLLOWS: Duration = Duration::from_millis(200);

pub(crate) async fn attend(driver: Arc<Driver>, process: ProcessId, edition: u32) {
    let recipe = driver.launcher.recipe(edition);
    match start(&driver, &recipe, process).await {
        Ok((contained, rendezvous)) => {
            Attendance::begin(driver, &recipe, process, contained, rendezvous).await
        }
        Err(error) => {
            let cause = failure(&error);
            driver.launcher.is_condemned(process);
            driver.launcher.note_failure(error.to_string());
            tracing::error!(worker = driver.launcher.name(process), "cannot start: {error}");
            driver.report(Event::SpawnFailed { process, cause });
        }
    }
}

/// Looks after the pool's root shim. Without one a pool has lost its second line: there is a new
/// one at once, and the workers under the old one are replaced, one by one. When every worker is
/// gone the root shim goes too, and only then has the pool stopped.
pub(crate) async fn keep_root(driver: Arc<Driver>) {
    let mut readiness = driver.readiness.subscribe();
    for alarm in 0.. {
        let Ok(root) = driver.launcher.root().await else { break };
        tokio::select! {
            () = root.lost() => {}
            _ = readiness.wait_for(|ready| ready.cleared) => break,
        }
        while driver.launcher.root().await.is_err() {
            tokio::select! {
                () = tokio::time::sleep(ROOT_RETRY) => {}
                _ = readiness.wait_for(|ready| ready.cleared) => break,
            }
        }
        recycle_all(&driver, alarm);
    }
    drop(readiness.wait_for(|ready| ready.cleared).await);
    driver.launcher.close().await;
    driver.readiness.send_modify(|ready| ready.stopped = true);
}

fn recycle_all(driver: &Driver, alarm: u64) {
    let workers = driver.look(|core, _| core.workers().map(|w| w.id).collect::<Vec<_>>());
    for (number, worker) in workers.into_iter().enumerate() {
        // Nobody waits for the reply, so the number need only be nobody else's.
        let order = OrderId(u64::MAX - (alarm << 16) - number as u64);
        driver.report(Event::Ordered { order, action: Action::Recycle(worker) });
    }
}

async fn start(
    driver: &Driver,
    recipe: &Recipe,
    process: ProcessId,
) -> Result<(Contained, Option<Rendezvous>), SpawnError> {
    let (spec, rendezvous) = driver.launcher.prepare(recipe, process)?;
    let root = driver.launcher.root().await?;
    match tokio::time::timeout(SPAWN_LIMIT, root.spawn(spec)).await {
        Ok(spawned) => Ok((spawned?, rendezvous)),
        // A root shim that does not answer is stopped or stuck: a new one takes its place.
        Err(_) => {
            root.kill();
            Err(SpawnError::RootShimLost)
        }
    }
}

fn failure(error: &SpawnError) -> SpawnFailure {
    let exhausted = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];
    match error {
        SpawnError::System { source, .. }
            if source.raw_os_error().is_some_and(|errno| exhausted.contains(&errno)) =>
        {
            SpawnFailure::Exhausted
        }
        _ => SpawnFailure::Broken,
    }
}

struct Attendance {
    driver: Arc<Driver>,
    link: Arc<Link>,
    readers: JoinSet<reader::Stream>,
    captures: JoinSet<()>,
    reports: crate::containment::Reports,
    usage: Option<EndOfProcess>,
    /// Processes that the kernel had killed for want of memory when this one came.
    oom_kills: u64,
}

impl Attendance {
    async fn begin(
        driver: Arc<Driver>,
        recipe: &Recipe,
        process: ProcessId,
        contained: Contained,
        rendezvous: Option<Rendezvous>,
    ) {
        let link = Arc::new(Link::new(&driver, recipe, process, contained.pid, contained.handle));
        let output = Arc::clone(&link.output);
        let mut attendance = Attendance {
            link: Arc::clone(&link),
            readers: JoinSet::new(),
            captures: JoinSet::new(),
            reports: contained.reports,
            usage: None,
            oom_kills: oom_kills(),
            driver,
        };
        let pipes = [(contained.stdout, Stream::Stdout), (contained.stderr, Stream::Stderr)];
        for (pipe, stream) in pipes {
            let (driver, link) = (Arc::clone(&attendance.driver), Arc::clone(&link));
            let current = move || link.working_on().map(|exchange| driver.name_of(&exchange));
            let (generation, output) = (process.generation, Arc::clone(&output));
            let capture = output::capture(pipe, stream, generation, output, current);
            attendance.captures.spawn(capture);
        }
        attendance.driver.link_up(&link);
        if attendance.driver.launcher.is_condemned(process) {
            link.handle.sweep().await;
        }
        if let Some(rendezvous) = rendezvous {
            let (driver, link) = (Arc::clone(&attendance.driver), Arc::clone(&link));
            attendance.readers.spawn(async move {
                rendezvous.meet(driver, link).await;
                reader::Stream::Data
            });
        } else if let Some(data) = contained.data {
            reader::start(
                &attendance.driver,
                &link,
                data,
                contained.control,
                &mut attendance.readers,
            );
        }
        attendance.watch().await;
    }

    async fn watch(mut self) {
        let mut stream_closed = None;
        loop {
            tokio::select! {
                report = self.reports.next() => match report {
                    Some(Report::Exited(exit)) => self.on_exited(exit).await,
                    Some(Report::ShimLost) => {
                        tracing::warn!(worker = &*self.link.name, "the worker's shim was lost");
                    }
                    Some(Report::Clean(_)) => break,
                    Some(Report::Unproven) => {
                        tracing::error!(
                            worker = &*self.link.name,
                            "all shims of this worker were killed at once; a process that it \
                             detached may be left"
                        );
                        break;
                    }
                    None => break,
                },
                Some(ended) = self.readers.join_next(), if stream_closed.is_none() => {
                    let optional = matches!(ended, Ok(reader::Stream::Control));
                    if !optional || self.link.needs_control() {
                        stream_closed = Some(tokio::time::Instant::now() + EXIT_FOLLOWS);
                    }
                }
                () = sleep_until(stream_closed) => {
                    stream_closed = Some(far_future());
                    self.driver.report(Event::StreamClosed { process: self.link.process });
                }
            }
        }
        self.driver.unlink(self.link.process);
        self.driver.cleared(self.link.process, self.usage);
    }

    async fn on_exited(&mut self, exit: Exit) {
        // A grandchild may hold the streams open: nothing more is coming from the process itself,
        // so hang up and read what is left.
        self.link.hang_up();
        while self.readers.join_next().await.is_some() {}
        let captures = async { while self.captures.join_next().await.is_some() {} };
        drop(tokio::time::timeout(OUTPUT_FOLLOWS, captures).await);
        self.usage = exit.usage.map(|usage| EndOfProcess {
            cpu_seconds: (usage.user_micros + usage.system_micros) as f64 / 1e6,
            max_rss: usage.max_rss_kib << 10,
        });
        let exit = match exit.cause {
            Cause::Code(code) => CoreExit::Code(code),
            Cause::Signal { number: libc::SIGKILL, .. } if oom_kills() > self.oom_kills => {
                CoreExit::OutOfMemory
            }
            Cause::Signal { number, .. } => CoreExit::Signal(number),
            Cause::Unknown => CoreExit::Unknown,
        };
        if self.link.wire().is_none() {
            self.note_early_end(exit);
        }
        let (process, streamed) = (self.link.process, self.link.streamed());
        self.driver.report(Event::ProcessExited { process, exit, streamed });
        self.link.forget_flights();
    }
}

impl Attendance {
    /// It never said that it is ready: its last words are all that tells why.
    fn note_early_end(&self, exit: CoreExit) {
        let launcher = &self.driver.launcher;
        let program = launcher.program();
        let mut why = match launcher.was_late(self.link.process) {
            true => format!("`{program}` was not ready within start_timeout"),
            false => format!("`{program}` {} before it was ready", describe_exit(exit)),
        };
        for line in self.link.any_words(LAST_WORDS) {
            why.push_str("\n  ");
            why.push_str(&line);
        }
        launcher.note_failure(why);
    }
}

/// How many processes of this machine the kernel has killed for want of memory so far. A SIGKILL
/// while that number rose was most likely one of them.
fn oom_kills() -> u64 {
    let counters = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let kills = counters.lines().find_map(|line| line.strip_prefix("oom_kill "));
    kills.and_then(|kills| kills.trim().parse().ok()).unwrap_or(0)
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn far_future() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_secs(86_400 * 365)
}
