//! What workers have written, read back or followed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use ostler_runtime::{Line, LogLevel, Output};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::{IntoParams, ToSchema};

use crate::answer::ok;
use crate::list::{self, Page};
use crate::openapi::ProblemBody;
use crate::problem::Problem;
use crate::query::Params;
use crate::segment::Segment;
use crate::server::Shared;
use crate::sse::{self, Source, last_event_id};
use crate::time::rfc3339;
use crate::whereabouts;

/// One line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineBody<'a> {
    /// Counts the worker's lines, from 1.
    pub number: u64,
    #[schema(format = DateTime)]
    pub at: String,
    /// stdout, stderr, or log: a message of the SDK's.
    pub stream: &'static str,
    /// trace, debug, info, warning or error.
    pub level: &'static str,
    /// Which of the worker's processes wrote it.
    pub generation: u32,
    /// The request that it was working on, if there was just one.
    pub request_id: Option<&'a str>,
    pub text: &'a str,
}

impl<'a> LineBody<'a> {
    fn of(line: &'a Line) -> Self {
        LineBody {
            number: line.number,
            at: rfc3339(line.at),
            stream: line.stream.name(),
            level: match line.level {
                LogLevel::Trace => "trace",
                LogLevel::Debug => "debug",
                LogLevel::Info => "info",
                LogLevel::Warning => "warning",
                LogLevel::Error => "error",
            },
            generation: line.generation,
            request_id: line.request.as_deref(),
            text: &line.text,
        }
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogQuery {
    /// The last so many.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Those after this number instead, as far as they are kept.
    #[param(maximum = 18446744073709551615u64)]
    cursor: Option<u64>,
    /// Go on with what comes, as server-sent events.
    #[serde(default)]
    follow: bool,
}

/// What a worker has written: the last lines, oldest first. With `follow=true` a stream of `line` events.
#[utoipa::path(get, path = "/api/workers/{id}/logs", tag = "workers",
    operation_id = "workers.logs",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`"), LogQuery),
    responses((status = 200, body = Page<LineBody>),
              (status = 404, description = "worker_not_found", body = ProblemBody,
               content_type = "application/problem+json"),
              (status = 422, description = "validation", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn read(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(query): Params<LogQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (pool, name) = whereabouts::remembered(&shared, &id)?;
    let output = pool.worker_output(&name).ok_or_else(|| whereabouts::not_found(&id))?;
    let limit = list::limit(query.limit)?;
    let after = last_event_id(&headers)?.or(query.cursor);
    let lines = excerpt(output.after(after.unwrap_or(0)), after, limit);
    if !query.follow {
        let items = lines.items.iter().map(|line| LineBody::of(line)).collect();
        return Ok(ok(Page { items, next_cursor: lines.next_cursor }).into_response());
    }
    // The stream begins where an answer would have.
    let seen = lines.items.first().map_or_else(|| last_number(&output), |line| line.number - 1);
    let closing = shared.closing.subscribe();
    Ok(sse::stream(Tail { news: output.watch(), output, seen, closing }))
}

/// The last lines, or the first after a number.
fn excerpt(mut lines: Vec<Arc<Line>>, after: Option<u64>, limit: usize) -> Page<Arc<Line>> {
    if after.is_none() {
        lines.drain(..lines.len().saturating_sub(limit));
    }
    Page::cut(lines.into_iter(), limit, |line| line.number.to_string())
}

fn last_number(output: &Output) -> u64 {
    *output.watch().borrow()
}

struct Tail {
    output: Arc<Output>,
    news: watch::Receiver<u64>,
    seen: u64,
    /// The stream ends with the server.
    closing: watch::Receiver<bool>,
}

impl Source for Tail {
    async fn write(&mut self, out: &mut BytesMut) -> bool {
        let seen = self.seen;
        let goes_on = tokio::select! {
            news = self.news.wait_for(|last| *last > seen) => news.is_ok(),
            _ = self.closing.wait_for(|closing| *closing) => false,
        };
        for line in self.output.after(self.seen) {
            self.seen = line.number;
            let data = serde_json::to_vec(&LineBody::of(&line)).expect("plain data");
            sse::put(out, Some(line.number), "line", &data);
        }
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use ostler_runtime::Stream;

    use super::*;

    fn lines(numbers: std::ops::RangeInclusive<u64>) -> Vec<Arc<Line>> {
        let line = |number| Line {
            number,
            at: Timestamp::UNIX_EPOCH,
            stream: Stream::Stdout,
            level: LogLevel::Info,
            generation: 1,
            request: None,
            text: String::new(),
        };
        numbers.map(|number| Arc::new(line(number))).collect()
    }

    fn numbers(page: &Page<Arc<Line>>) -> Vec<u64> {
        page.items.iter().map(|line| line.number).collect()
    }

    #[test]
    fn without_a_cursor_the_last_lines_are_shown() {
        let page = excerpt(lines(1..=5), None, 2);
        assert_eq!((numbers(&page), page.next_cursor), (vec![4, 5], None));
    }

    #[test]
    fn with_a_cursor_the_next_lines_are_shown() {
        let page = excerpt(lines(3..=5), Some(2), 2);
        assert_eq!((numbers(&page), page.next_cursor), (vec![3, 4], Some("4".to_owned())));
    }
}
