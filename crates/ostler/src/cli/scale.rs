//! `ostler scale`: how many workers a pool has, until somebody says otherwise.

use std::num::ParseIntError;

use serde_json::{Value, json};

use super::args::ScaleArgs;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::order;
use crate::config::SIZE_MAX;

/// The fewest and the most workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    min: u32,
    max: u32,
}

/// Reads `4` or `1..8`.
pub(super) fn parse_bounds(text: &str) -> Result<Bounds, String> {
    let number = |text: &str| text.trim().parse::<u32>();
    let wrong = |_: ParseIntError| "write a number such as 4, or a range such as 1..8".to_owned();
    let bounds = match text.split_once("..") {
        Some((min, max)) => {
            Bounds { min: number(min).map_err(wrong)?, max: number(max).map_err(wrong)? }
        }
        None => number(text).map(|size| Bounds { min: size, max: size }).map_err(wrong)?,
    };
    match bounds {
        Bounds { max: 0, .. } => Err("no worker at all serves nobody; see: ostler drain".into()),
        Bounds { max, .. } if max > SIZE_MAX => Err(format!("a pool has at most {SIZE_MAX}")),
        Bounds { min, max } if min > max => Err(format!("{min} is more than {max}")),
        bounds => Ok(bounds),
    }
}

impl Bounds {
    fn body(self) -> Value {
        match self {
            Bounds { min, max } if min == max => json!({ "size": max }),
            Bounds { min, max } => json!({ "min": min, "max": max }),
        }
    }

    fn words(self) -> String {
        match self {
            Bounds { min: 1, max: 1 } => "1 worker".to_owned(),
            Bounds { min, max } if min == max => format!("{max} workers"),
            Bounds { min, max } => format!("{min} to {max} workers"),
        }
    }
}

pub(super) async fn run(args: &ScaleArgs) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let told = order::give(&mut client, &args.pool, "scale", Some(&args.bounds.body())).await?;
    let words = args.bounds.words();
    let there = told.pool.workers.len();
    told.show(args.json, &format!("{}: {words} from now on, {there} at the moment", args.pool))?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_range_says_how_many() {
        for (text, body, words) in [
            ("4", json!({ "size": 4 }), "4 workers"),
            ("1", json!({ "size": 1 }), "1 worker"),
            ("1..8", json!({ "min": 1, "max": 8 }), "1 to 8 workers"),
            ("0..1", json!({ "min": 0, "max": 1 }), "0 to 1 workers"),
            ("3..3", json!({ "size": 3 }), "3 workers"),
        ] {
            let bounds = parse_bounds(text).expect(text);
            assert_eq!((bounds.body(), bounds.words().as_str()), (body, words), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_could_be() {
        for (text, words) in [
            ("many", "such as 1..8"),
            ("1..", "such as 1..8"),
            ("..8", "such as 1..8"),
            ("-1", "such as 1..8"),
            ("1..2..3", "such as 1..8"),
            ("0", "ostler drain"),
            ("0..0", "ostler drain"),
            ("8..1", "8 is more than 1"),
            ("1..1001", "at most 1000"),
        ] {
            let error = parse_bounds(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
