//! How much of a worker's output reaches the server's log: a worker that writes without end must
//! not drown what the others say.

use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Rate {
    per_window: u32,
    began: Option<Instant>,
    logged: u32,
    held_back: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// And so many lines before it were held back, which is to be told once.
    Logged {
        held_back: u64,
    },
    HeldBack,
}

impl Rate {
    pub fn new(per_second: u32) -> Self {
        Rate { per_window: per_second, began: None, logged: 0, held_back: 0 }
    }

    pub fn admit(&mut self, now: Instant) -> Admission {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= WINDOW) {
            self.began = Some(now);
            self.logged = 0;
        }
        if self.logged >= self.per_window {
            self.held_back += 1;
            return Admission::HeldBack;
        }
        self.logged += 1;
        Admission::Logged { held_back: self.settle() }
    }

    /// How many were held back and not told of.
    pub fn settle(&mut self) -> u64 {
        std::mem::take(&mut self.held_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_held_back_and_told_of_once() {
        let mut rate = Rate::new(2);
        let start = Instant::now();
        let within: Vec<_> = (0..5).map(|_| rate.admit(start)).collect();
        let logged = Admission::Logged { held_back: 0 };
        assert_eq!(within[..2], [logged, logged]);
        assert!(within[2..].iter().all(|admission| *admission == Admission::HeldBack));
        assert_eq!(rate.admit(start + WINDOW), Admission::Logged { held_back: 3 });
        assert_eq!(rate.admit(start + WINDOW), logged);
        assert_eq!(rate.admit(start + WINDOW), Admission::HeldBack);
        assert_eq!((rate.settle(), rate.settle()), (1, 0));
    }
}
