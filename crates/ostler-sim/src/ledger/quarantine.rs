//! Which requests killed: counted from exits that were told, by a rule written down again.

use std::collections::BTreeMap;
use std::time::Duration;

use ostler_core::{Exit, Settings, Time};

use super::process::{Held, Row};

/// Kills that keep a request out.
const KILLS: u32 = 2;
/// Of a request that cannot be told from others.
const UNKNOWN: u64 = 0;
/// Signals that a process brings upon itself.
const OWN_SIGNALS: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
/// How a program ends that gave way to a signal from outside.
const GAVE_WAY: [i32; 3] = [129, 130, 143];

#[derive(Debug, Default)]
pub(super) struct Kills {
    rows: BTreeMap<u64, Suspect>,
}

#[derive(Debug, Clone, Copy)]
struct Suspect {
    kills: u32,
    last: Time,
    exit: Exit,
}

impl Kills {
    /// A process that nobody had stopped ended; what it was working on may be the cause, if that
    /// was one request alone.
    pub fn note(
        &mut self,
        now: Time,
        row: &Row,
        exit: Exit,
        settings: &Settings,
        fingerprint: impl Fn(&Held) -> u64,
    ) {
        let mut running = row.held.iter().take(row.capacity);
        let (Some(alone), None) = (running.next(), running.next()) else { return };
        let fingerprint = fingerprint(alone);
        if !own(exit) || fingerprint == UNKNOWN {
            return;
        }
        let suspect = Suspect { kills: 0, last: now, exit };
        let suspect = self.rows.entry(fingerprint).or_insert(suspect);
        if now >= suspect.last.after(settings.quarantine) {
            suspect.kills = 0;
        }
        *suspect = Suspect { kills: suspect.kills + 1, last: now, exit };
    }

    /// How the last of them ended and how long the request is kept out, if it is.
    pub fn hold(
        &self,
        now: Time,
        fingerprint: u64,
        settings: &Settings,
    ) -> Option<(Exit, Duration)> {
        let suspect = self.rows.get(&fingerprint).filter(|suspect| suspect.kills >= KILLS)?;
        let left = suspect.last.after(settings.quarantine).since(now);
        (!left.is_zero()).then_some((suspect.exit, left))
    }
}

fn own(exit: Exit) -> bool {
    match exit {
        Exit::Code(code) => !GAVE_WAY.contains(&code),
        Exit::Signal(signal) => OWN_SIGNALS.contains(&signal),
        Exit::OutOfMemory => true,
        Exit::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use ostler_core::{ProcessId, RequestId, WorkerId};

    use super::*;

    const SEGV: Exit = Exit::Signal(11);

    fn at(seconds: u64) -> Time {
        Time::ZERO.after(Duration::from_secs(seconds))
    }

    fn settings() -> Settings {
        let quarantine = Duration::from_secs(60);
        Settings { capacity: 2, quarantine, ..Settings::of_size(1) }
    }

    /// A process of capacity two with these requests.
    fn working_on(requests: &[u64]) -> Row {
        let id = ProcessId { worker: WorkerId(1), generation: 1 };
        let mut row = Row::new(at(0), id, false, &settings());
        row.held = requests.iter().map(|id| Held::of(RequestId(*id), at(0))).collect();
        row
    }

    fn after(deaths: &[(u64, Exit, &[u64])]) -> Kills {
        let mut kills = Kills::default();
        for (second, exit, running) in deaths {
            let row = working_on(running);
            kills.note(at(*second), &row, *exit, &settings(), |held| held.request.0);
        }
        kills
    }

    #[test]
    fn two_deaths_within_the_time_keep_a_request_out() {
        let kills = after(&[(0, SEGV, &[7]), (59, Exit::OutOfMemory, &[7])]);
        let left = Duration::from_secs(60);
        assert_eq!(kills.hold(at(59), 7, &settings()), Some((Exit::OutOfMemory, left)));
        assert_eq!(kills.hold(at(119), 7, &settings()), None);
    }

    #[test]
    fn neighbours_signals_from_outside_and_long_ago_do_not_count() {
        let beside = after(&[(0, SEGV, &[7, 8]), (1, SEGV, &[7, 8])]);
        assert_eq!(beside.hold(at(1), 7, &settings()), None);
        let outside = after(&[(0, Exit::Signal(9), &[7]), (1, Exit::Code(143), &[7])]);
        assert_eq!(outside.hold(at(1), 7, &settings()), None);
        let long_ago = after(&[(0, SEGV, &[7]), (60, SEGV, &[7])]);
        assert_eq!(long_ago.hold(at(60), 7, &settings()), None);
    }
}
