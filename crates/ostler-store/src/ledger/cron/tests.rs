use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The next ones after each other.
fn next(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(cron, zone).unwrap();
    let mut now = at(from);
    let times = std::iter::from_fn(|| {
        now = cron.next(now, now)?;
        Some(now.to_string())
    });
    times.take(count).collect()
}

#[test]
fn each_field_selects() {
    let from = "2026-01-01T00:00:30Z";
    let cases = [
        ("* * * * *", "2026-01-01T00:01:00Z"),
        ("*/15 * * * *", "2026-01-01T00:15:00Z"),
        ("7,3 * * * *", "2026-01-01T00:03:00Z"),
        ("0 9-17 * * *", "2026-01-01T09:00:00Z"),
        ("0 9-17/4 * * *", "2026-01-01T09:00:00Z"),
        ("5/20 3 * * *", "2026-01-01T03:05:00Z"),
        ("0 0 * mar *", "2026-03-01T00:00:00Z"),
        ("0 0 * * MON", "2026-01-05T00:00:00Z"),
        ("0 0 * * 7", "2026-01-04T00:00:00Z"),
        ("0 0 * * fri-sat", "2026-01-02T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("@hourly", "2026-01-01T01:00:00Z"),
        ("@daily", "2026-01-02T00:00:00Z"),
        ("@weekly", "2026-01-04T00:00:00Z"),
        ("@monthly", "2026-02-01T00:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@every 90s", "2026-01-01T00:02:00Z"),
        ("@every 1h30m", "2026-01-01T01:30:30Z"),
    ];
    for (cron, expected) in cases {
        assert_eq!(next(cron, "UTC", from, 1), [expected], "{cron}");
    }
}

#[test]
fn steps_go_on_from_their_start() {
    let times = next("0 9-17/4 * * *", "UTC", "2026-01-01T00:00:00Z", 4);
    let hours: Vec<&str> = times.iter().map(|time| &time[11..13]).collect();
    assert_eq!(hours, ["09", "13", "17", "09"]);
}

#[test]
fn a_day_of_the_month_or_of_the_week_is_enough_where_both_are_said() {
    let times = next("0 0 13 * fri", "UTC", "2026-02-01T00:00:00Z", 4);
    let days: Vec<&str> = times.iter().map(|time| &time[..10]).collect();
    assert_eq!(days, ["2026-02-06", "2026-02-13", "2026-02-20", "2026-02-27"]);
    let both = next("0 0 */2 * fri", "UTC", "2026-02-01T00:00:00Z", 2);
    let days: Vec<&str> = both.iter().map(|time| &time[..10]).collect();
    assert_eq!(days, ["2026-02-13", "2026-02-27"], "a field that begins with * selects as well");
}

#[test]
fn times_are_those_of_the_zone() {
    let zone = "America/New_York";
    assert_eq!(next("0 9 * * *", zone, "2026-01-15T00:00:00Z", 1), ["2026-01-15T14:00:00Z"]);
    assert_eq!(next("0 9 * * *", zone, "2026-07-15T00:00:00Z", 1), ["2026-07-15T13:00:00Z"]);
}

#[test]
fn a_time_that_the_clocks_skip_fires_at_the_next_that_there_is() {
    // In Berlin 02:00 to 03:00 does not exist on 2026-03-29.
    let times = next("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
    assert_eq!(times, ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    let times = next("0,30 1-3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 4);
    let hours: Vec<&str> = times.iter().map(|time| &time[11..16]).collect();
    assert_eq!(hours, ["00:30", "01:00", "01:30", "23:00"], "once, however many were skipped");
}

#[test]
fn a_time_that_the_clocks_show_twice_fires_once() {
    // In Berlin 02:00 to 03:00 exists twice on 2026-10-25.
    let times = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(times, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    let between = next("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1);
    assert_eq!(between, ["2026-10-26T01:30:00Z"], "also when asked between the two");
}

#[test]
fn periods_are_counted_from_their_beginning_whatever_was_missed() {
    let cron = Cron::parse("@every 10m", "UTC").unwrap();
    let from = at("2026-01-01T00:00:00Z");
    let now = at("2026-01-01T05:03:00Z");
    assert_eq!(cron.next(from, now), Some(at("2026-01-01T05:10:00Z")));
    assert_eq!(cron.next(from, at("2026-01-01T05:10:00Z")), Some(at("2026-01-01T05:20:00Z")));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let cases = [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("* * * * * *", "6 fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "day of the week"),
        ("* * * * mo", "day of the week"),
        ("5-3 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("+1 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("0 0 30 2 *", "never comes"),
        ("@fortnightly", "@hourly"),
        ("@every", "@hourly"),
        ("@every 0s", "period"),
        ("@every 500ms", "period"),
        ("@every 10 years", "period"),
    ];
    for (cron, expected) in cases {
        let error = Cron::parse(cron, "UTC").unwrap_err();
        assert!(error.contains(expected), "{cron}: {error}");
    }
    let error = Cron::parse("@daily", "Mars/Olympus").unwrap_err();
    assert!(error.contains("Mars/Olympus"), "{error}");
}
