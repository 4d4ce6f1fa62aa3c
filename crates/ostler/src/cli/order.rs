//! Orders to a pool, and what the pool says of itself afterwards.

use bytes::Bytes;
use hyper::Method;
use serde_json::Value;

use super::call::path_segment;
use super::client::Client;
use super::exit::Failure;
use super::stats::Pool;
use super::{list, output, problem};
use crate::text::one_line;

/// A pool as the server describes it, and as it was understood.
#[derive(Debug)]
pub(super) struct Told {
    pub body: Bytes,
    pub pool: Pool,
}

impl Told {
    fn of(body: Bytes) -> Result<Self, Failure> {
        let pool = list::understood(serde_json::from_slice(&body))?;
        Ok(Self { body, pool })
    }

    /// The server's own words, or these.
    pub fn show(&self, json: bool, words: &str) -> Result<(), Failure> {
        match json {
            true => output::pass_on_line(&self.body),
            false => output::print(&format!("{}\n", one_line(words))),
        }
    }
}

/// Gives an order, such as `pause`, with what belongs to it.
pub(super) async fn give(
    client: &mut Client,
    pool: &str,
    order: &str,
    with: Option<&Value>,
) -> Result<Told, Failure> {
    let path = format!("/api/pools/{}/{order}", path_segment(pool));
    let body = with.map_or_else(Bytes::new, |with| Bytes::from(with.to_string()));
    let (status, body) = client.ask(Method::POST, &path, body).await?;
    match status.is_success() {
        true => Told::of(body),
        false => Err(problem::failure(status, &body)),
    }
}

pub(super) async fn look(client: &mut Client, pool: &str) -> Result<Told, Failure> {
    Told::of(list::get(client, &format!("/api/pools/{}", path_segment(pool))).await?)
}

/// What a pool holds: `2 requests wait, 1 runs`.
pub(super) fn holds(pool: &Pool) -> String {
    let waiting = match pool.queue_length {
        0 => "nothing waits".to_owned(),
        1 => "1 request waits".to_owned(),
        n => format!("{n} requests wait"),
    };
    let running = match pool.running {
        0 => "nothing runs".to_owned(),
        1 => "1 runs".to_owned(),
        n => format!("{n} run"),
    };
    format!("{waiting}, {running}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pool_holds_is_said_in_whole_words() {
        for (queue_length, running, words) in [
            (0, 0, "nothing waits, nothing runs"),
            (1, 1, "1 request waits, 1 runs"),
            (7, 2, "7 requests wait, 2 run"),
        ] {
            assert_eq!(holds(&Pool { queue_length, running, ..Pool::default() }), words);
        }
    }
}
