//! Requests that kill: one that brought down two processes by a crash of their own is refused for
//! a while. A request is known by its fingerprint, which the shell takes of function and payload.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::Exit;
use crate::time::Time;

/// Kills after which a request is refused.
const KILLS: u32 = 2;
/// Suspects that are remembered at a time; the one longest ago makes room.
const SUSPECTS_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    suspects: BTreeMap<u64, Suspect>,
}

#[derive(Debug)]
struct Suspect {
    kills: u32,
    until: Time,
    exit: Exit,
}

impl Quarantine {
    /// A process crashed while it worked on this request alone. True: from now on it is refused.
    pub fn blame(&mut self, now: Time, fingerprint: u64, exit: Exit, period: Duration) -> bool {
        if period.is_zero() || fingerprint == 0 {
            return false;
        }
        self.suspects.retain(|_, suspect| suspect.until > now);
        if self.suspects.len() >= SUSPECTS_MAX && !self.suspects.contains_key(&fingerprint) {
            let first = self.suspects.iter().min_by_key(|(_, suspect)| suspect.until);
            let first = first.map(|(fingerprint, _)| *fingerprint);
            first.and_then(|fingerprint| self.suspects.remove(&fingerprint));
        }
        let suspect =
            self.suspects.entry(fingerprint).or_insert(Suspect { kills: 0, until: now, exit });
        suspect.kills += 1;
        suspect.exit = exit;
        suspect.until = now.after(period);
        suspect.kills >= KILLS
    }

    /// How its last process ended and how long it stays refused, if it is.
    pub fn holds(&self, now: Time, fingerprint: u64) -> Option<(Exit, Duration)> {
        if self.suspects.is_empty() {
            return None;
        }
        let suspect = self.suspects.get(&fingerprint)?;
        (suspect.kills >= KILLS && suspect.until > now)
            .then(|| (suspect.exit, suspect.until.since(now)))
    }
}

impl Exit {
    /// Whether the process ended itself, as far as its exit can tell: a signal that only another
    /// process sends says nothing about the request.
    pub fn own(self) -> bool {
        const ILL: i32 = 4;
        const TRAP: i32 = 5;
        const ABRT: i32 = 6;
        const BUS: i32 = 7;
        const FPE: i32 = 8;
        const SEGV: i32 = 11;
        const SYS: i32 = 31;
        match self {
            // How a program ends that was told to by SIGHUP, SIGINT or SIGTERM.
            Exit::Code(129 | 130 | 143) | Exit::Unknown => false,
            Exit::Code(_) | Exit::OutOfMemory => true,
            Exit::Signal(signal) => {
                matches!(signal, ILL | TRAP | ABRT | BUS | FPE | SEGV | SYS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Time {
        Time::ZERO.after(Duration::from_secs(seconds))
    }

    #[test]
    fn the_second_kill_within_the_period_counts() {
        let mut quarantine = Quarantine::default();
        assert!(!quarantine.blame(at(0), 7, Exit::Signal(11), PERIOD));
        assert_eq!(quarantine.holds(at(0), 7), None);
        assert!(quarantine.blame(at(59), 7, Exit::Signal(11), PERIOD));
        assert_eq!(quarantine.holds(at(60), 8), None);
        let left = Duration::from_secs(1);
        assert_eq!(quarantine.holds(at(118), 7), Some((Exit::Signal(11), left)));
        assert_eq!(quarantine.holds(at(119), 7), None);
    }

    #[test]
    fn kills_far_apart_are_not_added_up() {
        let mut quarantine = Quarantine::default();
        assert!(!quarantine.blame(at(0), 7, Exit::Code(1), PERIOD));
        assert!(!quarantine.blame(at(60), 7, Exit::Code(1), PERIOD));
    }

    #[test]
    fn suspects_are_bounded_and_the_oldest_makes_room() {
        let mut quarantine = Quarantine::default();
        for fingerprint in 0..=SUSPECTS_MAX as u64 {
            let now = Time::from_nanos(fingerprint);
            quarantine.blame(now, fingerprint, Exit::Code(1), PERIOD);
        }
        assert_eq!(quarantine.suspects.len(), SUSPECTS_MAX);
        assert!(!quarantine.suspects.contains_key(&0));
    }

    #[test]
    fn only_a_crash_of_its_own_is_held_against_a_request() {
        for exit in [Exit::Signal(11), Exit::Signal(6), Exit::Code(0), Exit::Code(1)] {
            assert!(exit.own(), "{exit:?}");
        }
        for exit in [Exit::Signal(9), Exit::Signal(15), Exit::Code(143), Exit::Unknown] {
            assert!(!exit.own(), "{exit:?}");
        }
    }
}
