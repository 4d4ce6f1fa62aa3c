//! One trial: start, kill, look. And many of them: the table.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use crate::rig;
use crate::tree::{self, Process, Tree};
use crate::truth::Truth;

/// The bound of the promise on a machine that is not starved.
const PROMISED: Duration = Duration::from_secs(1);
/// The bound of the test: late is counted, left behind fails.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    C1,
    C2,
    C3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Server,
    Worker,
    Shim,
    Root,
    ForkServer,
}

/// What a trial has shown.
#[derive(Default)]
struct Outcome {
    /// From the victim's death until nothing of its own was left.
    own_part: Option<Duration>,
    /// From the server's death until nothing at all was left.
    all: Duration,
    /// The most processes seen at once.
    peak: usize,
    asked: usize,
    answered: usize,
}

impl Outcome {
    fn is_late(&self) -> bool {
        self.all > PROMISED || self.own_part.is_some_and(|time| time > PROMISED)
    }
}

/// All trials for one victim. Panics when one of them left something behind.
pub fn run(level: Level, victim: Victim) {
    let trials = number("OSTLER_KILL_TRIALS").unwrap_or(50);
    let seed = number("OSTLER_KILL_SEED").unwrap_or_else(seed_of_now);
    let mut decoys = ["ostler: shim w-1", "ostler: root shim trial"].map(Decoy::new);
    let mut random = Random(seed | 1);
    let mut outcomes = Vec::new();
    for trial in 0..trials {
        // Every second pool of a victim that both kinds have is made by a fork server.
        let forks = victim == Victim::ForkServer || trial % 2 == 1;
        match Trial::start(level, forks, &format!("{level:?}-{victim:?}-{trial}")).play(
            victim,
            trial == 0,
            &mut random,
        ) {
            Some(outcome) => outcomes.push(outcome),
            None => break,
        }
    }
    for decoy in &mut decoys {
        assert!(decoy.is_alive(), "a stranger was killed");
    }
    print_table(level, victim, seed, &outcomes);
    // A starved machine delays a few; a second line that works in place of the first delays most.
    let late = outcomes.iter().filter(|outcome| outcome.is_late()).count();
    assert!(late * 4 <= outcomes.len(), "{late} of {} trials took too long", outcomes.len());
    // Server, root shim, and for each worker its shim, itself and four descendants that can be
    // counted: a rig whose workers are harmless would prove nothing.
    let peak = outcomes.iter().map(|outcome| outcome.peak).max();
    assert!(peak.is_none_or(|peak| peak >= 2 + 3 * 6), "only {peak:?} processes were seen");
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seed_of_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}

/// A process of somebody else that looks like one of ours.
struct Decoy(Child);

impl Decoy {
    fn new(name: &str) -> Decoy {
        let mut command = Command::new("sleep");
        command.arg0(name).arg("600");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Decoy(command.spawn().expect("sleep runs"))
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("not waited for by others").is_none()
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn print_table(level: Level, victim: Victim, seed: u64, outcomes: &[Outcome]) {
    let mut times: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| outcome.own_part.into_iter().chain([outcome.all]))
        .collect();
    times.sort_unstable();
    let late = outcomes.iter().filter(|outcome| outcome.is_late()).count();
    let millis = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    println!(
        "{level:?} {victim:?}: {} trials, {late} left at 1 s, empty after {:.1} ms (p50), {:.1} ms (max), \
         others serving {}/{}, seed {seed}",
        outcomes.len(),
        millis(times.get(times.len() / 2)),
        millis(times.last()),
        outcomes.iter().map(|outcome| outcome.answered).sum::<usize>(),
        outcomes.iter().map(|outcome| outcome.asked).sum::<usize>(),
    );
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

struct Trial {
    level: Level,
    forks: bool,
    truth: Truth,
    server: Child,
    commands: ChildStdin,
    lines: Receiver<String>,
    up: Vec<String>,
    ready: bool,
    refused: bool,
}

impl Trial {
    fn start(level: Level, forks: bool, name: &str) -> Trial {
        let truth = Truth::new(name);
        let own = std::env::current_exe().expect("this program has a path");
        let mut server = Command::new(own)
            .args([rig::ROLE, &format!("{level:?}"), if forks { "fork" } else { "plain" }])
            .args([python(), truth.cgroup()])
            .current_dir(truth.directory())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the rig starts");
        let stdout = server.stdout.take().expect("piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Trial {
            level,
            forks,
            truth,
            commands: server.stdin.take().expect("piped"),
            server,
            lines,
            up: Vec::new(),
            ready: false,
            refused: false,
        }
    }

    /// None where the system refuses the level. The first trial is always of a whole pool.
    fn play(mut self, victim: Victim, first: bool, random: &mut Random) -> Option<Outcome> {
        self.wait_for_the_instant(first, random);
        let mut outcome = Outcome { peak: self.truth.processes().len(), ..Outcome::default() };
        if victim != Victim::Server {
            self.kill_part(victim, random, &mut outcome);
        }
        self.hear(Duration::ZERO);
        outcome.peak = outcome.peak.max(self.truth.processes().len());
        let killed = Instant::now();
        self.server.kill().expect("the server is ours");
        self.server.wait().expect("the server is ours");
        outcome.all = self.empty_since(killed, |_| true);
        if self.refused {
            println!("skipped: this system refuses {:?}", self.level);
            return None;
        }
        // A root shim that was killed leaves its directories to the next server.
        if victim != Victim::Root {
            assert_eq!(self.truth.cgroups_below(), 0, "cgroups are left");
        }
        Some(outcome)
    }

    /// Half of the instants fall anywhere into the start, half shortly after it.
    fn wait_for_the_instant(&mut self, after_start: bool, random: &mut Random) {
        if after_start || random.below(2) == 0 {
            self.hear_until(|trial| trial.ready);
            self.hear(Duration::from_micros(random.below(10_000)));
        } else {
            let start = if self.forks { 120_000 } else { 40_000 };
            self.hear(Duration::from_micros(random.below(start)));
        }
    }

    fn hear(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Ok(line) =
            self.lines.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.note(&line);
        }
    }

    fn hear_until(&mut self, enough: impl Fn(&Trial) -> bool) {
        while !enough(self) {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => self.note(&line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.fail("the server has stopped talking", &self.truth.processes())
                }
            }
        }
    }

    fn note(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("up", name)) => self.up.push(name.to_owned()),
            Some(("level", level)) => self.refused |= level != format!("{:?}", self.level),
            _ => self.ready |= line == "ready",
        }
    }

    fn kill_part(&mut self, victim: Victim, random: &mut Random, outcome: &mut Outcome) {
        let Some((process, name)) = self.kill_victim(victim, random) else {
            return;
        };
        let killed = Instant::now();
        let up_before = self.up.clone();
        let is_own = |process: &Process| match (victim, &name) {
            (Victim::Worker | Victim::Shim, Some(name)) => {
                tree::worker_in(&process.command).as_ref() == Some(name)
            }
            _ => false,
        };
        let all_of_it = |other: &Process| other.pid == process.pid || is_own(other);
        outcome.own_part = Some(self.empty_since(killed, all_of_it));
        self.ping(
            &up_before,
            name.filter(|_| matches!(victim, Victim::Worker | Victim::Shim)),
            outcome,
        );
    }

    /// Looks until there is such a process, then kills it. What was up by then is known.
    fn kill_victim(
        &mut self,
        victim: Victim,
        random: &mut Random,
    ) -> Option<(Process, Option<String>)> {
        let since = Instant::now();
        while since.elapsed() < LIMIT {
            self.hear(Duration::ZERO);
            let tree = Tree::look(&self.truth, self.server.id() as i32, self.forks);
            let candidates = match victim {
                Victim::Root => tree.root().into_iter().collect(),
                Victim::ForkServer => tree.fork_server().into_iter().collect(),
                Victim::Shim => tree.shims(),
                Victim::Worker => tree.workers(),
                Victim::Server => Vec::new(),
            };
            if candidates.is_empty() {
                continue;
            }
            let chosen = candidates[random.below(candidates.len() as u64) as usize];
            let name = tree.worker_name(chosen);
            if tree::kill(&self.truth, chosen.pid) {
                return Some((chosen.clone(), name));
            }
        }
        self.fail(&format!("no {victim:?} has come up"), &self.truth.processes())
    }

    /// Everyone who was up before the kill, and is not the victim, must answer.
    fn ping(&mut self, up: &[String], victim: Option<String>, outcome: &mut Outcome) {
        self.hear_until(|trial| trial.ready);
        writeln!(self.commands, "ping").expect("the server listens");
        let mut answers = Vec::new();
        loop {
            match self.lines.recv_timeout(LIMIT * 2) {
                Ok(line) if line == "end" => break,
                Ok(line) => answers.push(line),
                Err(_) => self.fail("the server does not answer", &self.truth.processes()),
            }
        }
        for name in up.iter().filter(|name| Some(*name) != victim.as_ref()) {
            outcome.asked += 1;
            if answers.contains(&format!("pong {name}")) {
                outcome.answered += 1;
            } else {
                self.fail(
                    &format!("{name} has stopped serving: {answers:?}"),
                    &self.truth.processes(),
                );
            }
        }
    }

    /// Waits until none of `whose` is left; the time it took.
    fn empty_since(&self, killed: Instant, whose: impl Fn(&Process) -> bool) -> Duration {
        loop {
            let mut left = self.truth.processes();
            left.retain(|&pid| tree::describe(pid).is_some_and(|process| whose(&process)));
            let passed = killed.elapsed();
            if left.is_empty() {
                return passed;
            }
            if passed > LIMIT {
                self.fail(&format!("left after {passed:?}"), &left);
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    fn fail(&self, what: &str, left: &[i32]) -> ! {
        for &pid in left {
            let state = tree::state(pid);
            eprintln!("  {state:?} {:?}", tree::describe(pid));
        }
        self.truth.clear();
        panic!("{:?}, fork server {}: {what}", self.level, self.forks);
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The interpreter itself: a launcher script would take longer than the trial.
fn python() -> &'static str {
    static PYTHON: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    PYTHON.get_or_init(|| {
        let found =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let found = found.expect("python3 is installed").stdout;
        String::from_utf8_lossy(&found).trim().to_owned()
    })
}
