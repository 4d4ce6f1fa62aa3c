//! When a schedule fires: the classic five fields in a time zone, or a period.
//!
//! A day fits if it fits the day of the month or the day of the week, where both are said; where one
//! begins with `*` the other alone decides. A time that the clocks skip fires at the next time that
//! there is; one that they show twice fires once.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// The longest time between two leap days, and a little more.
const DAYS_MAX: usize = 8 * 366 + 31;
const EVERY_MIN: SignedDuration = SignedDuration::from_secs(1);
const EVERY_MAX: SignedDuration = SignedDuration::from_secs(366 * 24 * 3600);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cron {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Fields(Fields),
    Every(SignedDuration),
}

/// Bit n: n fits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// The day of the month, or that of the week, is left open.
    days_open: bool,
}

impl Cron {
    /// The error says what does not fit.
    pub fn parse(text: &str, zone: &str) -> Result<Cron, String> {
        let zone = parse_zone(zone)?;
        let text = text.trim();
        let rule = match text.strip_prefix('@') {
            Some(name) => parse_named(name)?,
            None => Rule::Fields(Fields::parse(text)?),
        };
        Ok(Cron { rule, zone })
    }

    /// The first time after `now`. Periods are counted from `from`. None: there is none.
    pub fn next(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(period) => next_period(from, now, *period),
            Rule::Fields(fields) => fields.next(now, &self.zone),
        }
    }
}

fn parse_zone(name: &str) -> Result<TimeZone, String> {
    if name.eq_ignore_ascii_case("UTC") || name.is_empty() {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name).map_err(|_| {
        format!("there is no time zone `{name}` on this machine; use a name like `Europe/Berlin`")
    })
}

fn parse_named(name: &str) -> Result<Rule, String> {
    if let Some(period) = name.strip_prefix("every ") {
        return parse_period(period.trim());
    }
    let fields = match name {
        "hourly" => "0 * * * *",
        "daily" | "midnight" => "0 0 * * *",
        "weekly" => "0 0 * * 0",
        "monthly" => "0 0 1 * *",
        "yearly" | "annually" => "0 0 1 1 *",
        _ => {
            return Err(format!(
                "`@{name}` is not known; there are @hourly, @daily, @weekly, @monthly, @yearly and \
                 `@every 90s`"
            ));
        }
    };
    Ok(Rule::Fields(Fields::parse(fields)?))
}

fn parse_period(text: &str) -> Result<Rule, String> {
    let wrong = || format!("`@every {text}`: a period is like 90s, 5m or 1h30m, 1s to 366 days");
    let period: SignedDuration = text.parse().map_err(|_| wrong())?;
    match (EVERY_MIN..=EVERY_MAX).contains(&period) {
        true => Ok(Rule::Every(period)),
        false => Err(wrong()),
    }
}

fn next_period(from: Timestamp, now: Timestamp, period: SignedDuration) -> Option<Timestamp> {
    let passed = now.duration_since(from).as_millis().max(0);
    let periods = passed / period.as_millis() + 1;
    let ahead = SignedDuration::from_millis(i64::try_from(periods * period.as_millis()).ok()?);
    from.checked_add(ahead).ok()
}

impl Fields {
    fn parse(text: &str) -> Result<Fields, String> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let &[minutes, hours, days, months, weekdays] = parts.as_slice() else {
            return Err(format!(
                "`{text}` has {} fields; there are five: minute, hour, day of the month, month, \
                 day of the week",
                parts.len()
            ));
        };
        let fields = Fields {
            minutes: parse_field(minutes, &MINUTE)?,
            hours: parse_field(hours, &HOUR)?,
            days: parse_field(days, &DAY)?,
            months: parse_field(months, &MONTH)?,
            weekdays: sunday_once(parse_field(weekdays, &WEEKDAY)?),
            days_open: days.starts_with('*') || weekdays.starts_with('*'),
        };
        match fields.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC) {
            Some(_) => Ok(fields),
            None => Err(format!("`{text}` never comes: no such day is in any of those months")),
        }
    }

    fn next(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = now.to_zoned(zone.clone()).datetime();
        let mut day = start.date();
        for _ in 0..DAYS_MAX {
            if self.fits(day) {
                let first = if day == start.date() { start.time() } else { Time::midnight() };
                let found = self.times(first).find_map(|time| {
                    instant(DateTime::from_parts(day, time), zone).filter(|at| *at > now)
                });
                if found.is_some() {
                    return found;
                }
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    fn fits(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, weekday_number(date.weekday()));
        let fits = if self.days_open { day && weekday } else { day || weekday };
        fits && has(self.months, date.month())
    }

    /// Those of a day, from `first` on.
    fn times(&self, first: Time) -> impl Iterator<Item = Time> + '_ {
        let hours = (first.hour()..24).filter(|hour| has(self.hours, *hour));
        hours.flat_map(move |hour| {
            let from = if hour == first.hour() { first.minute() } else { 0 };
            let minutes = (from..60).filter(|minute| has(self.minutes, *minute));
            minutes.map(move |minute| Time::constant(hour, minute, 0, 0))
        })
    }
}

/// When the clocks of a zone show that.
fn instant(shown: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(shown);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
            ambiguous.earlier().ok()
        }
        // The clocks jump over it: the jump itself is the next time that there is.
        AmbiguousOffset::Gap { .. } => {
            let before = ambiguous.earlier().ok()?;
            zone.following(before).next().map(|jump| jump.timestamp())
        }
    }
}

fn has(bits: u64, value: i8) -> bool {
    bits & (1 << value) != 0
}

fn weekday_number(weekday: Weekday) -> i8 {
    weekday.to_sunday_zero_offset()
}

/// 7 is Sunday too.
fn sunday_once(bits: u64) -> u64 {
    if bits & (1 << 7) != 0 { (bits & !(1 << 7)) | 1 } else { bits }
}

struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    /// Of `min` and those after it.
    names: &'static [&'static str],
}

const MINUTE: Field = Field { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { name: "hour", min: 0, max: 23, names: &[] };
const DAY: Field = Field { name: "day of the month", min: 1, max: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Field = Field {
    name: "day of the week",
    min: 0,
    max: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

fn parse_field(text: &str, field: &Field) -> Result<u64, String> {
    let mut bits = 0;
    for part in text.split(',') {
        bits |= parse_part(part, field)?;
    }
    Ok(bits)
}

/// `*`, `5`, `mon-fri`, and each of them with a step.
fn parse_part(part: &str, field: &Field) -> Result<u64, String> {
    let wrong =
        || format!("`{part}` does not fit the {} ({}-{})", field.name, field.min, field.max);
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(step.parse::<u32>().map_err(|_| wrong())?)),
        None => (part, None),
    };
    let (first, last) = match range.split_once('-') {
        _ if range == "*" => (field.min, field.highest()),
        Some((first, last)) => (field.value(first), field.value(last)),
        // `5/15` goes on to the end, as `5` alone does not.
        None if step.is_some() => (field.value(range), field.highest()),
        None => (field.value(range), field.value(range)),
    };
    let step = step.unwrap_or(1);
    if step == 0 || first < field.min || last > field.max || first > last {
        return Err(wrong());
    }
    Ok((first..=last).step_by(step as usize).fold(0, |bits, value| bits | 1 << value))
}

impl Field {
    /// Beyond every bound if it is none.
    fn value(&self, text: &str) -> u32 {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        match named {
            Some(index) => self.min + index as u32,
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().unwrap_or(u32::MAX)
            }
            None => u32::MAX,
        }
    }

    /// Sunday is not counted twice.
    fn highest(&self) -> u32 {
        if self.names.len() == 7 { 6 } else { self.max }
    }
}

#[cfg(test)]
mod tests;
