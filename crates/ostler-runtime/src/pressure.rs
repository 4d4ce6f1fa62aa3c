//! Whether the machine is short of memory, from what the kernel says of it.
//!
//! Two signs: the share of the last ten seconds in which somebody waited for memory (PSI), and how
//! much could be had without swapping. A kernel without PSI leaves the second alone. Reading is
//! here, and so is the judgement, apart: [`Strain`] is a function of what was read, so that a
//! machine in need is not needed to test it. What follows from it is not known here.

use std::fs;
use std::path::{Path, PathBuf};

/// Percent of the last ten seconds.
const HIGH_PRESSURE: f64 = 20.0;
const LOW_PRESSURE: f64 = 10.0;

/// Percent of all memory.
const LITTLE_ROOM: f64 = 5.0;
const ENOUGH_ROOM: f64 = 8.0;

/// Percent of the last ten seconds in which some, or all, that could have run waited for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    pub some_avg10: f64,
    pub full_avg10: f64,
}

/// Memory that could be had without swapping, of all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub available: u64,
    pub total: u64,
}

/// Where to read: the machine's files, and those of the cgroup that this process was started in.
#[derive(Clone, Debug)]
pub struct Pressure {
    meminfo: PathBuf,
    sources: Vec<PathBuf>,
}

impl Pressure {
    pub fn find() -> Pressure {
        let cgroup = own_cgroup().map(|cgroup| cgroup.join("memory.pressure"));
        let machine = PathBuf::from("/proc/pressure/memory");
        Pressure {
            meminfo: PathBuf::from("/proc/meminfo"),
            sources: std::iter::once(machine).chain(cgroup).collect(),
        }
    }

    /// The worst of the machine and the cgroup: a container may be short of memory on a machine
    /// that has plenty. None where the kernel does not say.
    pub fn read(&self) -> Option<Reading> {
        let texts = self.sources.iter().filter_map(|path| fs::read_to_string(path).ok());
        texts.filter_map(|text| Reading::parse(&text)).reduce(Reading::worst)
    }

    pub fn room(&self) -> Option<Room> {
        Room::parse(&fs::read_to_string(&self.meminfo).ok()?)
    }
}

/// Where systemd and containers mount cgroup v2; elsewhere the machine's figures do.
fn own_cgroup() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(path))
}

impl Reading {
    /// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same with `full`.
    fn parse(text: &str) -> Option<Reading> {
        let average = |kind: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
            line.split_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
        };
        Some(Reading { some_avg10: average("some ")?, full_avg10: average("full ").unwrap_or(0.0) })
    }

    fn worst(self, other: Reading) -> Reading {
        Reading {
            some_avg10: self.some_avg10.max(other.some_avg10),
            full_avg10: self.full_avg10.max(other.full_avg10),
        }
    }
}

impl Room {
    fn parse(text: &str) -> Option<Room> {
        let bytes = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
            kib.checked_mul(1024)
        };
        let total = bytes("MemTotal:").filter(|total| *total > 0)?;
        Some(Room { available: bytes("MemAvailable:")?, total })
    }

    fn percent(self) -> f64 {
        100.0 * self.available as f64 / self.total as f64
    }
}

/// Whether there is need. It begins at one mark and ends at another, so that figures that hover
/// around a mark do not switch it back and forth.
///
/// ```text
///         some avg10 ≥ 20 %, or less than 5 % available
///      Low ───────────────────────────────────────────▶ High
///          ◀───────────────────────────────────────────
///         some avg10 < 10 %, and 8 % available or more
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strain {
    #[default]
    Low,
    High,
}

impl Strain {
    /// What it is after this reading. A sign that cannot be read holds nothing up: without any,
    /// the need is over, because nothing would ever end it.
    pub fn after(self, pressure: Option<Reading>, room: Option<Room>) -> Strain {
        let waited = pressure.map(|reading| reading.some_avg10);
        let percent = room.map(Room::percent);
        let high = match self {
            Strain::Low => {
                waited.is_some_and(|waited| waited >= HIGH_PRESSURE)
                    || percent.is_some_and(|percent| percent < LITTLE_ROOM)
            }
            Strain::High => {
                waited.is_some_and(|waited| waited >= LOW_PRESSURE)
                    || percent.is_some_and(|percent| percent < ENOUGH_ROOM)
            }
        };
        if high { Strain::High } else { Strain::Low }
    }

    pub fn is_high(self) -> bool {
        self == Strain::High
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PSI: &str = "some avg10=23.41 avg60=9.02 avg300=2.11 total=918273\n\
                       full avg10=11.07 avg60=4.40 avg300=1.00 total=445566\n";
    const MEMINFO: &str = "MemTotal:       16000000 kB\nMemFree:          100000 kB\n\
                           MemAvailable:     640000 kB\nBuffers:            1000 kB\n";

    fn waited(some_avg10: f64) -> Option<Reading> {
        Some(Reading { some_avg10, full_avg10: 0.0 })
    }

    fn room(percent: u64) -> Option<Room> {
        Some(Room { available: percent, total: 100 })
    }

    #[test]
    fn averages_of_ten_seconds_are_read() {
        let read = Reading::parse(PSI);
        assert_eq!(read, Some(Reading { some_avg10: 23.41, full_avg10: 11.07 }));
    }

    #[test]
    fn a_file_with_the_first_line_alone_is_enough() {
        let read = Reading::parse("some avg10=1.50 avg60=0.00 avg300=0.00 total=9\n");
        assert_eq!(read, waited(1.5));
    }

    #[test]
    fn what_is_not_pressure_is_not_read() {
        for text in ["", "some", "some avg10=", "some avg60=1.00\n", "avg10=1.00\n"] {
            assert_eq!(Reading::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn available_memory_is_read_in_bytes() {
        let read = Room::parse(MEMINFO).expect("both lines are there");
        assert_eq!(read, Room { available: 640_000 * 1024, total: 16_000_000 * 1024 });
        assert_eq!(Room::parse("MemTotal: 1 kB\n"), None);
        assert_eq!(Room::parse("MemTotal: 0 kB\nMemAvailable: 0 kB\n"), None);
    }

    #[test]
    fn pressure_begins_at_20_and_ends_below_10() {
        let plenty = room(50);
        assert_eq!(Strain::Low.after(waited(19.99), plenty), Strain::Low);
        assert_eq!(Strain::Low.after(waited(20.0), plenty), Strain::High);
        assert_eq!(Strain::High.after(waited(10.0), plenty), Strain::High);
        assert_eq!(Strain::High.after(waited(9.99), plenty), Strain::Low);
    }

    #[test]
    fn want_of_room_begins_below_5_and_ends_at_8() {
        let calm = waited(0.0);
        assert_eq!(Strain::Low.after(calm, room(5)), Strain::Low);
        assert_eq!(Strain::Low.after(calm, room(4)), Strain::High);
        assert_eq!(Strain::High.after(calm, room(7)), Strain::High);
        assert_eq!(Strain::High.after(calm, room(8)), Strain::Low);
    }

    #[test]
    fn need_ends_when_both_signs_say_so() {
        assert_eq!(Strain::High.after(waited(15.0), room(50)), Strain::High);
        assert_eq!(Strain::High.after(waited(0.0), room(6)), Strain::High);
    }

    #[test]
    fn without_psi_room_alone_decides() {
        assert_eq!(Strain::Low.after(None, room(4)), Strain::High);
        assert_eq!(Strain::High.after(None, room(8)), Strain::Low);
    }

    #[test]
    fn a_machine_that_says_nothing_is_not_in_need() {
        assert_eq!(Strain::Low.after(None, None), Strain::Low);
        assert_eq!(Strain::High.after(None, None), Strain::Low);
    }

    #[test]
    fn the_worst_source_is_told_and_an_absent_one_is_not_missed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("a file");
            path
        };
        let calm = PSI.replace("23.41", "1.00").replace("11.07", "30.00");
        let pressure = Pressure {
            meminfo: file("meminfo", MEMINFO),
            sources: vec![file("machine", PSI), file("cgroup", &calm), "/nowhere".into()],
        };
        assert_eq!(pressure.read(), Some(Reading { some_avg10: 23.41, full_avg10: 30.0 }));
        assert_eq!(pressure.room(), Room::parse(MEMINFO));

        let nothing = Pressure { meminfo: "/nowhere".into(), sources: vec!["/nowhere".into()] };
        assert_eq!((nothing.read(), nothing.room()), (None, None));
    }

    #[test]
    fn this_machine_says_how_much_room_it_has() {
        let room = Pressure::find().room().expect("Linux has had it since 3.14");
        assert!(room.available > 0 && room.available <= room.total);
    }
}
