//! What a worker has written: to stdout, to stderr, and as log messages. By line, with the request
//! it was working on; the last of it is kept, across its processes and after their death.

mod capture;
mod rate;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use jiff::Timestamp;
use ostler_proto::LogLevel;
use tokio::sync::watch;

pub(crate) use capture::capture;
use rate::{Admission, Rate};

/// A longer line is cut into pieces.
pub(crate) const LINE_MAX: usize = 8 << 10;
/// Lines are small: what they cost beside their text.
const LINE_COST: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputSettings {
    pub kept_bytes: usize,
    /// How many lines per second of one worker reach the server's log. Those beyond are kept here
    /// like the others.
    pub logged_per_second: u32,
}

impl Default for OutputSettings {
    fn default() -> Self {
        OutputSettings { kept_bytes: 64 << 10, logged_per_second: 1_000 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// A message of the protocol.
    Log,
}

impl Stream {
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
            Stream::Log => "log",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Rises by one with each line of the worker, from 1.
    pub number: u64,
    pub at: Timestamp,
    pub stream: Stream,
    pub level: LogLevel,
    pub generation: u32,
    /// The request that the worker was working on, if there was just one.
    pub request: Option<Arc<str>>,
    pub text: String,
}

/// The output of one worker.
#[derive(Debug)]
pub struct Output {
    worker: Arc<str>,
    kept_bytes: usize,
    kept: Mutex<Kept>,
    /// The number of the last line.
    news: watch::Sender<u64>,
}

#[derive(Debug)]
struct Kept {
    lines: VecDeque<Arc<Line>>,
    bytes: usize,
    last_number: u64,
    rate: Rate,
}

impl Output {
    pub fn new(worker: Arc<str>, settings: OutputSettings) -> Self {
        Output {
            worker,
            kept_bytes: settings.kept_bytes,
            kept: Mutex::new(Kept {
                lines: VecDeque::new(),
                bytes: 0,
                last_number: 0,
                rate: Rate::new(settings.logged_per_second),
            }),
            news: watch::Sender::new(0),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no code panics here")
    }

    pub(crate) fn note(
        &self,
        stream: Stream,
        level: LogLevel,
        generation: u32,
        request: Option<Arc<str>>,
        text: String,
    ) {
        let (line, admission) = {
            let mut kept = self.kept();
            kept.last_number += 1;
            let number = kept.last_number;
            let at = Timestamp::now();
            let line = Arc::new(Line { number, at, stream, level, generation, request, text });
            kept.push(Arc::clone(&line), self.kept_bytes);
            (line, kept.rate.admit(Instant::now()))
        };
        self.log(&line, admission);
        self.news.send_replace(line.number);
    }

    /// Notes a text of any length, line by line.
    pub(crate) fn note_text(
        &self,
        stream: Stream,
        level: LogLevel,
        generation: u32,
        request: Option<Arc<str>>,
        text: &str,
    ) {
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            let mut rest = line;
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(rest.floor_char_boundary(LINE_MAX));
                self.note(stream, level, generation, request.clone(), piece.to_owned());
                rest = more;
            }
        }
    }

    fn log(&self, line: &Line, admission: Admission) {
        let Admission::Logged { held_back } = admission else { return };
        self.tell_held_back(held_back);
        let (worker, stream) = (&*self.worker, line.stream.name());
        let request = line.request.as_deref();
        let text = &line.text;
        match line.level {
            LogLevel::Trace => {
                tracing::trace!(target: "ostler::worker", worker, stream, request, "{text}");
            }
            LogLevel::Debug => {
                tracing::debug!(target: "ostler::worker", worker, stream, request, "{text}");
            }
            LogLevel::Info => {
                tracing::info!(target: "ostler::worker", worker, stream, request, "{text}");
            }
            LogLevel::Warning => {
                tracing::warn!(target: "ostler::worker", worker, stream, request, "{text}");
            }
            LogLevel::Error => {
                tracing::error!(target: "ostler::worker", worker, stream, request, "{text}");
            }
        }
    }

    fn tell_held_back(&self, lines: u64) {
        if lines > 0 {
            let worker = &*self.worker;
            tracing::warn!(target: "ostler::worker", worker, "… {lines} lines were not logged");
        }
    }

    /// A process has written its last: what was held back is told now.
    pub(crate) fn settle(&self) {
        let held_back = self.kept().rate.settle();
        self.tell_held_back(held_back);
    }

    /// The texts of the last lines, oldest first.
    pub fn tail(&self, lines: usize) -> Vec<String> {
        let kept = self.kept();
        let skip = kept.lines.len().saturating_sub(lines);
        kept.lines.iter().skip(skip).map(|line| line.text.clone()).collect()
    }

    /// The last lines of one process that are such, oldest first.
    pub fn last_of(&self, process: u32, lines: usize, such: impl Fn(&Line) -> bool) -> Vec<String> {
        let kept = self.kept();
        let own = kept.lines.iter().rev().filter(|line| line.generation == process && such(line));
        let mut last: Vec<String> = own.take(lines).map(|line| line.text.clone()).collect();
        last.reverse();
        last
    }

    /// What is kept of the lines after this one, oldest first; all of it after 0.
    pub fn after(&self, number: u64) -> Vec<Arc<Line>> {
        let kept = self.kept();
        let seen = kept.lines.partition_point(|line| line.number <= number);
        kept.lines.iter().skip(seen).cloned().collect()
    }

    /// Changes with each line, to the number of the last.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }
}

impl Kept {
    fn push(&mut self, line: Arc<Line>, kept_bytes: usize) {
        self.bytes += cost(&line);
        self.lines.push_back(line);
        while self.bytes > kept_bytes {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= cost(&oldest);
        }
    }
}

fn cost(line: &Line) -> usize {
    line.text.len() + LINE_COST
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output() -> Output {
        Output::new("py-1".into(), OutputSettings::default())
    }

    fn write(output: &Output, stream: Stream, generation: u32, text: &str) {
        output.note(stream, LogLevel::Info, generation, None, text.to_owned());
    }

    #[test]
    fn callers_of_a_crash_see_the_stderr_of_that_process_only() {
        let output = output();
        write(&output, Stream::Stderr, 1, "an older process");
        write(&output, Stream::Stdout, 2, "hello");
        write(&output, Stream::Stderr, 2, "one");
        write(&output, Stream::Log, 2, "a message");
        write(&output, Stream::Stderr, 2, "two");
        write(&output, Stream::Stderr, 2, "three");
        assert_eq!(output.last_of(2, 2, |line| line.stream == Stream::Stderr), ["two", "three"]);
        assert_eq!(
            output.last_of(1, 20, |line| line.stream == Stream::Stderr),
            ["an older process"]
        );
        assert_eq!(output.tail(2), ["two", "three"]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_its_numbers_go_on() {
        let output = output();
        for _ in 0..3_000 {
            write(&output, Stream::Stdout, 1, &"x".repeat(48));
        }
        let kept = output.after(0);
        assert_eq!(kept.len(), (64 << 10) / (48 + LINE_COST));
        assert_eq!(kept.last().unwrap().number, 3_000);
        assert_eq!(output.after(2_999).len(), 1);
        assert!(output.after(3_000).is_empty());
    }

    #[test]
    fn empty_lines_are_bounded_too() {
        let output = output();
        for _ in 0..100_000 {
            write(&output, Stream::Stdout, 1, "");
        }
        assert_eq!(output.after(0).len(), (64 << 10) / LINE_COST);
    }

    #[tokio::test]
    async fn a_follower_is_told_of_each_line() {
        let output = output();
        let mut news = output.watch();
        write(&output, Stream::Log, 1, "something");
        news.changed().await.unwrap();
        let number = *news.borrow_and_update();
        assert_eq!(output.after(number - 1)[0].text, "something");
    }
}
