//! How fast the core is when nothing goes wrong: one thread, an ideal shell, steady load. What
//! counts is the ratio between small and large, which does not depend on the machine.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use ostler_core::{
    Answer, Command, Event, Pool, ProcessId, Ready, Recording, RequestId, RequestSpec, Settings,
    Time,
};

const EVENTS: u64 = 2_000_000;
const OWNERS: u64 = 16;
const SHAPES: [(u32, u32); 4] = [(2, 0), (500, 0), (2, 100_000), (500, 100_000)];

/// Events per second with so many workers and so many requests that always wait.
pub fn measure(workers: u32, queued: u32, events: u64) -> f64 {
    let mut shell = Shell::open(workers, queued);
    let begun = Busy::now();
    for _ in 0..events / 2 {
        shell.call();
        shell.answer();
    }
    events as f64 / begun.elapsed().as_secs_f64()
}

/// Time that this thread has had a processor: others on the machine do not count. Where the
/// system does not tell, the time on the wall.
struct Busy {
    begun: Instant,
    on_processor: Option<Duration>,
}

impl Busy {
    fn now() -> Self {
        Busy { begun: Instant::now(), on_processor: Busy::so_far() }
    }

    fn elapsed(&self) -> Duration {
        let busy = Busy::so_far().zip(self.on_processor).map(|(now, then)| now - then);
        busy.filter(|busy| !busy.is_zero()).unwrap_or_else(|| self.begun.elapsed())
    }

    fn so_far() -> Option<Duration> {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        stat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }
}

pub fn report() -> String {
    let mut text =
        String::from("the core alone, one thread, no faults, per second of processor time\n");
    let rates = SHAPES.map(|(workers, queued)| {
        let rate = measure(workers, queued, EVENTS);
        let _ = writeln!(text, "{workers:>5} workers, {queued:>7} queued: {rate:>12.0} events/s");
        rate
    });
    let _ = writeln!(text, "500 workers cost {:.2} times what 2 cost", rates[0] / rates[1]);
    let _ = writeln!(text, "500 workers cost {:.2} times what 2 cost, queued", rates[2] / rates[3]);
    let _ = writeln!(text, "100000 queued cost {:.2} times what 0 cost", rates[0] / rates[2]);
    let _ = writeln!(text, "100000 queued cost {:.2} times, 500 workers", rates[1] / rates[3]);
    text
}

/// Does at once what it is told, and answers in the order of assignment.
struct Shell {
    pool: Pool,
    commands: Vec<Command>,
    held: VecDeque<(ProcessId, RequestId, u32)>,
    reports: VecDeque<Event>,
    now: Time,
    next: u64,
}

impl Shell {
    fn open(workers: u32, queued: u32) -> Self {
        let settings = Settings {
            queue_max: u32::MAX,
            queue_timeout: Duration::from_secs(1 << 20),
            prefetch: 0,
            heartbeat: None,
            ..Settings::of_size(workers)
        };
        let mut shell = Shell {
            pool: Pool::new(settings),
            commands: Vec::new(),
            held: VecDeque::new(),
            reports: VecDeque::new(),
            now: Time::ZERO,
            next: 1,
        };
        shell.tell(Event::PoolStarted);
        // Half of the workers stay busy when nobody waits, all of them otherwise.
        let busy = if queued == 0 { workers / 2 } else { workers };
        for _ in 0..busy + queued {
            shell.call();
        }
        shell
    }

    fn call(&mut self) {
        let spec = RequestSpec {
            deadline: Time::ZERO.after(Duration::from_secs(1 << 20)),
            owner: self.next % OWNERS,
            fingerprint: self.next,
            ..RequestSpec::until(Time::ZERO)
        };
        let request = RequestId(self.next);
        self.next += 1;
        self.tell(Event::RequestArrived { request, spec });
    }

    fn answer(&mut self) {
        let (process, request, attempt) = self.held.pop_front().expect("a call came before");
        let answer = Answer::Completed;
        self.tell(Event::Answered { process, request, attempt, answer, streamed: false });
    }

    /// One event, and at once the reports of whatever the core had done for it.
    fn tell(&mut self, event: Event) {
        let mut next = Some(event);
        while let Some(event) = next {
            self.now = self.now.after(Duration::from_micros(1));
            let mut commands = std::mem::take(&mut self.commands);
            self.pool.handle(self.now, event, &mut commands);
            for command in commands.drain(..) {
                self.obey(command);
            }
            self.commands = commands;
            next = self.reports.pop_front();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Assign { request, attempt, process, .. } => {
                self.held.push_back((process, request, attempt));
            }
            Command::Record { record, .. } => {
                let result = Recording::Stored;
                self.reports.push_back(Event::Recorded { record, result });
            }
            Command::Spawn { process, .. } => {
                let ready = Ready {
                    capacity: None,
                    heartbeat: false,
                    gives_back: true,
                    saves_sessions: false,
                };
                self.reports.push_back(Event::ProcessReady { process, ready });
            }
            _ => {}
        }
    }
}
