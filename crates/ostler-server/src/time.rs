//! Times as this API spells them.

use jiff::Timestamp;

/// RFC 3339 in UTC, to the microsecond: of one length, so that texts sort like times.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    format!("{at:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_length() {
        let whole = Timestamp::from_second(1_700_000_000).unwrap();
        let broken = Timestamp::new(1_700_000_000, 123_456_789).unwrap();
        assert_eq!(rfc3339(whole), "2023-11-14T22:13:20.000000Z");
        assert_eq!(rfc3339(broken), "2023-11-14T22:13:20.123456Z");
    }
}
