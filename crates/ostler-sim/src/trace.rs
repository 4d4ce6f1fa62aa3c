//! The story of a world: every event, command and deed in order. Only its tail is kept; a seed
//! tells the rest again.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use ostler_core::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracing {
    /// Judge only.
    Off,
    /// Keep this many lines for whoever looks at a failure.
    Tail(usize),
    /// Print each line as it comes.
    Print,
    /// Digest every line, to compare two runs.
    Hash,
}

#[derive(Debug)]
pub struct Trace {
    tracing: Tracing,
    lines: VecDeque<String>,
    hasher: DefaultHasher,
}

impl Trace {
    pub fn new(tracing: Tracing) -> Self {
        Trace { tracing, lines: VecDeque::new(), hasher: DefaultHasher::new() }
    }

    pub fn line(&mut self, at: Time, mark: &str, what: &dyn fmt::Debug) {
        if self.tracing == Tracing::Off {
            return;
        }
        let line = format!("{:>14.6} ms {mark} {what:?}", at.as_nanos() as f64 / 1e6);
        match self.tracing {
            Tracing::Off => {}
            Tracing::Print => println!("{line}"),
            Tracing::Hash => self.hasher.write(line.as_bytes()),
            Tracing::Tail(kept) => {
                if self.lines.len() >= kept {
                    self.lines.pop_front();
                }
                self.lines.push_back(line);
            }
        }
    }

    pub fn tail(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }

    pub fn digest(&self) -> u64 {
        self.hasher.finish()
    }
}
