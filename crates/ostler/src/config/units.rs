//! Durations and sizes as people write them: `10s`, `1.5h`, `64MiB`.
//!
//! Separate because the configuration and the command line share it. It knows no keys and no
//! bounds; whoever asks decides what is too much.

use std::time::Duration;

const DURATION_UNITS: &[(&str, f64)] = &[
    ("ms", 1e-3),
    ("s", 1.0),
    ("sec", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
];

const SIZE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// The units that a duration may carry.
pub fn duration_units() -> impl Iterator<Item = &'static str> {
    DURATION_UNITS.iter().map(|(name, _)| *name)
}

/// The units that a size may carry.
pub fn size_units() -> impl Iterator<Item = &'static str> {
    SIZE_UNITS.iter().map(|(name, _)| *name)
}

/// Longer than any timeout that makes sense; keeps `Instant + Duration` from overflowing.
const LONGEST_SECONDS: f64 = 366.0 * 86_400.0;

/// Above this a `f64` no longer holds every whole number.
const LARGEST_BYTES: f64 = 9_007_199_254_740_992.0;

/// Why a text is not a duration or a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error("`{0}` does not begin with a number")]
    NoNumber(String),
    #[error("unknown unit `{unit}`")]
    UnknownUnit { unit: String, known: Vec<&'static str> },
    #[error("`{0}` is not a whole number of bytes")]
    NotWhole(String),
    #[error("`{0}` is out of range")]
    OutOfRange(String),
}

/// Reads `10`, `10s`, `200ms`, `1.5 h`. A bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text)?;
    seconds(number * factor(unit, DURATION_UNITS, 1.0)?)
        .ok_or_else(|| UnitError::OutOfRange(text.to_owned()))
}

/// Seconds as a duration; `None` for what is negative, endless or not a number.
pub fn seconds(value: f64) -> Option<Duration> {
    (0.0..=LONGEST_SECONDS).contains(&value).then(|| Duration::from_secs_f64(value))
}

/// Reads `1024`, `64MiB`, `16 MiB`, `64kB`. A bare number is bytes.
pub fn size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    let bytes = number * factor(unit, SIZE_UNITS, 1.0)?;
    if !(0.0..=LARGEST_BYTES).contains(&bytes) {
        return Err(UnitError::OutOfRange(text.to_owned()));
    }
    if bytes.fract() != 0.0 {
        return Err(UnitError::NotWhole(text.to_owned()));
    }
    Ok(bytes as u64)
}

/// A duration as short text that [`duration`] reads back: `200ms`, `90s`, `1h`.
pub fn show_duration(value: Duration) -> String {
    let millis = value.as_millis();
    match millis {
        0 => "0s".to_owned(),
        _ if !millis.is_multiple_of(1_000) => format!("{millis}ms"),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ => format!("{}s", millis / 1_000),
    }
}

/// A size as short text, in the largest unit that keeps it exact.
pub fn show_size(bytes: u64) -> String {
    [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
        .into_iter()
        .find(|(factor, _)| bytes >= *factor && bytes.is_multiple_of(*factor))
        .map_or_else(|| format!("{bytes} B"), |(factor, unit)| format!("{} {unit}", bytes / factor))
}

fn split(text: &str) -> Result<(f64, &str), UnitError> {
    let text = text.trim();
    let end =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number =
        digits.replace('_', "").parse().map_err(|_| UnitError::NoNumber(text.to_owned()))?;
    Ok((number, unit.trim()))
}

fn factor(unit: &str, units: &[(&'static str, f64)], bare: f64) -> Result<f64, UnitError> {
    if unit.is_empty() {
        return Ok(bare);
    }
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor).ok_or_else(|| {
        UnitError::UnknownUnit {
            unit: unit.to_owned(),
            known: units.iter().map(|(name, _)| *name).collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_carry_a_unit() {
        for (text, millis) in [
            ("0", 0),
            ("10", 10_000),
            ("0.5", 500),
            ("10s", 10_000),
            ("200ms", 200),
            ("5m", 300_000),
            ("5 min", 300_000),
            ("1h", 3_600_000),
            ("1.5 h", 5_400_000),
            (" 2d ", 172_800_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn sizes_are_bytes_or_carry_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("4_096", 4_096),
            ("64MiB", 64 << 20),
            ("16 MiB", 16 << 20),
            ("64kB", 64_000),
            ("64KB", 64_000),
            ("1.5KiB", 1_536),
            ("1GiB", 1 << 30),
            ("7 B", 7),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_unit_is_named() {
        assert_eq!(duration("soon"), Err(UnitError::NoNumber("soon".into())));
        assert_eq!(duration("-1s"), Err(UnitError::NoNumber("-1s".into())));
        assert_eq!(duration(""), Err(UnitError::NoNumber(String::new())));
        assert_eq!(duration("9999d"), Err(UnitError::OutOfRange("9999d".into())));
        assert_eq!(size("1.0001KiB"), Err(UnitError::NotWhole("1.0001KiB".into())));
        assert!(matches!(size("3 Mib"), Err(UnitError::UnknownUnit { unit, .. }) if unit == "Mib"));
        assert!(
            matches!(duration("3 weeks"), Err(UnitError::UnknownUnit { unit, .. }) if unit == "weeks")
        );
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same_value() {
        for millis in [0, 1, 200, 1_000, 1_500, 60_000, 90_000, 3_600_000, 86_400_000] {
            let value = Duration::from_millis(millis);
            assert_eq!(duration(&show_duration(value)), Ok(value));
        }
        for bytes in [0, 1, 1_023, 1_024, 1_536, 64 << 20, 3 << 30, 64_000] {
            assert_eq!(size(&show_size(bytes)), Ok(bytes));
        }
    }
}
