//! What stands in the cells of tables: times, sizes, and a dash where there is nothing.

use std::time::Duration;

use jiff::Timestamp;

pub(super) fn or_dash(cell: Option<String>) -> String {
    cell.filter(|cell| !cell.is_empty()).unwrap_or_else(|| "-".to_owned())
}

/// A moment to the millisecond, in UTC. What is not a time stays as it came.
pub(super) fn moment(at: &str) -> String {
    at.parse::<Timestamp>().map_or_else(|_| at.to_owned(), |at| format!("{at:.3}"))
}

/// How long ago something was.
pub(super) fn since(at: &str, now: Timestamp) -> Option<String> {
    Some(age(between(at.parse().ok()?, now).as_secs_f64()))
}

/// The time between two moments, none if they are the wrong way round.
pub(super) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// The two largest units of a time span: `3h 12m`.
pub(super) fn age(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) => format!("{minutes}m {rest}s"),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// A short time span with three digits that count: `87.1 µs`, `1.25 ms`, `12.0 s`.
pub(super) fn span(span: Duration) -> String {
    let (value, unit) = match span.as_secs_f64() {
        seconds if seconds >= 1.0 => (seconds, "s"),
        seconds if seconds >= 1e-3 => (seconds * 1e3, "ms"),
        seconds => (seconds * 1e6, "µs"),
    };
    let decimals = match value {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

pub(super) fn memory(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes / 1_024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_show_their_two_largest_units() {
        for (seconds, shown) in
            [(-1.0, "0s"), (59.9, "59s"), (61.0, "1m 1s"), (3_600.0, "1h 0m"), (90_000.0, "1d 1h")]
        {
            assert_eq!(age(seconds), shown);
        }
    }

    #[test]
    fn spans_show_three_digits_and_the_unit_that_fits() {
        for (nanos, shown) in [
            (0, "0.00 µs"),
            (87_123, "87.1 µs"),
            (1_250_000, "1.25 ms"),
            (250_000_000, "250 ms"),
            (12_000_000_000, "12.0 s"),
        ] {
            assert_eq!(span(Duration::from_nanos(nanos)), shown);
        }
    }

    #[test]
    fn moments_have_one_length_and_nonsense_stays() {
        assert_eq!(moment("2026-01-02T03:04:05.678901Z"), "2026-01-02T03:04:05.678Z");
        assert_eq!(moment("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05.000Z");
        assert_eq!(moment("soon"), "soon");
    }
}
