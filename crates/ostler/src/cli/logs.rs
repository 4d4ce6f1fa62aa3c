//! `ostler logs`: what workers have written, the last lines of one or of many, and what comes.

mod tail;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::args::LogsArgs;
use super::call::path_segment;
use super::cells::{moment, or_dash};
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::list::{self, Page, Query};
use super::{output, problem, workers};
use crate::text::one_line;

/// One line and whose it is.
#[derive(Debug)]
struct Line {
    worker: String,
    members: Map<String, Value>,
}

/// A line as far as it is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shown {
    at: String,
    stream: String,
    level: String,
    request_id: Option<String>,
    text: String,
}

/// Whose lines are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    All,
    Pool(String),
    Worker(String),
}

impl Whose {
    fn is(&self, pool: &str, worker: &str) -> bool {
        match self {
            Self::All => true,
            Self::Pool(wanted) => wanted == pool,
            Self::Worker(wanted) => wanted == worker,
        }
    }
}

pub(super) async fn run(args: &LogsArgs) -> Result<Exit, Failure> {
    let endpoint = Endpoint::find(&args.server)?;
    let mut client = Client::connect(endpoint.clone()).await?;
    // Begun before the names are read: a worker that comes in between is in one of the two.
    let arrivals = match args.follow {
        true => Some(tail::arrivals(&endpoint, None).await?),
        false => None,
    };
    let (whose, names) = find(&mut client, args.of.as_deref()).await?;
    let mut lines = Vec::new();
    let mut places = Vec::new();
    for name in names {
        let read = last_lines(&mut client, &name, args.lines).await?;
        places.push((name, read.iter().map(Line::number).max().unwrap_or(0)));
        lines.extend(read);
    }
    // Stable, so that lines of one worker stay in their order.
    lines.sort_by(|a, b| a.at().cmp(b.at()));
    let skipped = lines.len().saturating_sub(args.lines as usize);
    for line in &lines[skipped..] {
        line.show(args.json)?;
    }
    match arrivals {
        Some(arrivals) => tail::follow(&endpoint, &whose, places, arrivals, args.json).await,
        None => Ok(Exit::Ok),
    }
}

/// Whose lines a word means. What is no pool may be a worker that is gone: it is still known by
/// its name.
async fn find(client: &mut Client, of: Option<&str>) -> Result<(Whose, Vec<String>), Failure> {
    let all = workers::names(client, None).await?;
    let whose = match of {
        None => Whose::All,
        Some(name) if all.iter().any(|(pool, _)| pool == name) => Whose::Pool(name.to_owned()),
        Some(name) => Whose::Worker(known(client, name).await?),
    };
    let names = match &whose {
        Whose::Worker(name) => vec![name.clone()],
        whose => {
            let wanted = all.into_iter().filter(|(pool, worker)| whose.is(pool, worker));
            wanted.map(|(_, worker)| worker).collect()
        }
    };
    Ok((whose, names))
}

/// The name of a worker that is given by its name or its id.
async fn known(client: &mut Client, of: &str) -> Result<String, Failure> {
    let path = format!("/api/workers/{}", path_segment(of));
    let (status, body) = client.ask(Method::GET, &path, Bytes::new()).await?;
    let name = serde_json::from_slice::<Value>(&body).ok();
    let name = name.and_then(|worker| worker["name"].as_str().map(str::to_owned));
    Ok(name.filter(|_| status.is_success()).unwrap_or_else(|| of.to_owned()))
}

async fn last_lines(client: &mut Client, name: &str, limit: u16) -> Result<Vec<Line>, Failure> {
    let path = format!("/api/workers/{}/logs", path_segment(name));
    let query = Query::of(&path).with("limit", &limit.to_string());
    let (status, body) = client.ask(Method::GET, query.as_str(), Bytes::new()).await?;
    match status {
        StatusCode::NOT_FOUND => Err(Failure::failed(format!(
            "there is no pool and no worker `{name}`; see: ostler workers"
        ))),
        status if !status.is_success() => Err(problem::failure(status, &body)),
        _ => {
            let page: Page = list::understood(serde_json::from_slice(&body))?;
            Ok(page.items.into_iter().filter_map(|item| Line::of(name, item)).collect())
        }
    }
}

impl Line {
    fn of(worker: &str, item: Value) -> Option<Self> {
        match item {
            Value::Object(members) => Some(Self { worker: worker.to_owned(), members }),
            _ => None,
        }
    }

    fn at(&self) -> &str {
        self.members.get("at").and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self) -> u64 {
        self.members.get("number").and_then(Value::as_u64).unwrap_or_default()
    }

    fn show(&self, json: bool) -> Result<(), Failure> {
        match json {
            true => output::pass_on_line(self.to_json().as_bytes()),
            false => output::print(&self.render()?),
        }
    }

    fn to_json(&self) -> String {
        let mut members = self.members.clone();
        members.insert("worker".to_owned(), self.worker.clone().into());
        Value::Object(members).to_string()
    }

    fn render(&self) -> Result<String, Failure> {
        let shown = Shown::deserialize(&self.members);
        let shown: Shown = list::understood(shown)?;
        // A message of the SDK's has a level of its own; what is printed has only its stream.
        let source = match shown.stream.as_str() {
            "log" => shown.level,
            _ => shown.stream,
        };
        let request = or_dash(shown.request_id);
        let text = shown.text.trim_end();
        let head = format!("{}  {}  {source:7}  {request}", moment(&shown.at), self.worker);
        Ok(format!("{}  {}\n", one_line(&head), one_line(text)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_shown_on_one_line_that_drives_no_terminal() {
        let item = json!({
            "number": 1, "at": "2026-01-02T03:04:05.678901Z", "stream": "stderr", "level": "info",
            "request_id": null, "text": "\u{1b}[2Joh\nno\t!",
        });
        let line = Line::of("py-1", item).expect("a line");
        let expected = "2026-01-02T03:04:05.678Z  py-1  stderr   -  \\u001b[2Joh\\nno\\t!\n";
        assert_eq!(line.render().expect("understood"), expected);
        assert!(line.to_json().contains("\"worker\":\"py-1\""));
    }

    #[test]
    fn a_message_of_the_sdk_shows_its_level() {
        let item = json!({ "at": "", "stream": "log", "level": "warning", "request_id": "r", "text": "x" });
        let line = Line::of("py-1", item).expect("a line").render().expect("understood");
        assert_eq!(line, "  py-1  warning  r  x\n");
    }
}
