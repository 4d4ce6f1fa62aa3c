//! `ostler reload`: the server reads its configuration anew, and says what differs.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::ReloadArgs;
use super::client::{Client, collect};
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::table::Table;
use super::{list, output, problem};
use crate::config::units::show_duration;
use crate::text::one_line;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reloaded {
    changes: Vec<Change>,
    /// Keys that count only when the server starts.
    restart_needed: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Change {
    pool: String,
    what: String,
    keys: Vec<String>,
    /// Its workers are being replaced.
    rolled: bool,
}

pub(super) async fn run(args: &ReloadArgs) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let answer = tokio::time::timeout(args.timeout, ask(&mut client, &args.pools)).await;
    let (status, body) = answer.unwrap_or_else(|_| Err(no_answer(args.timeout)))?;
    if !status.is_success() {
        return Err(refused(status, &body));
    }
    if args.json {
        output::pass_on_line(&body)?;
        return Ok(Exit::Ok);
    }
    let reloaded = list::understood(serde_json::from_slice(&body))?;
    output::print(&render(&reloaded))?;
    Ok(Exit::Ok)
}

/// The answer comes when the new workers have proved themselves, however long that takes.
async fn ask(client: &mut Client, pools: &[String]) -> Result<(StatusCode, Bytes), Failure> {
    let body = match pools {
        [] => json!({}),
        pools => json!({ "pools": pools }),
    };
    let request = client.request(Method::POST, "/api/reload");
    let request = request.header(CONTENT_TYPE, "application/json");
    let response = client.send(request, Bytes::from(body.to_string())).await?;
    Ok((response.status(), collect(response.into_body()).await?))
}

fn no_answer(timeout: Duration) -> Failure {
    Failure::new(
        Exit::Timeout,
        format!(
            "the new workers have not proved themselves within {}, and may do so yet; \
             see: ostler events -f",
            show_duration(timeout)
        ),
    )
}

/// That the new configuration is not good enough is what this command is asked to find out.
fn refused(status: StatusCode, body: &[u8]) -> Failure {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |key: &str| problem[key].as_str().unwrap_or_default();
    match text("code") {
        "reload_failed" => {
            let pool = format!("pool `{}`", text("pool"));
            let detail = text("detail").trim_end();
            let why = detail.strip_prefix(&format!("{pool}: ")).unwrap_or(detail);
            Failure::failed(format!("not reloaded, {pool} stays as it was: {why}"))
        }
        "invalid_configuration" => Failure::failed(format!(
            "the configuration is not valid; everything stays as it was\n{}",
            text("detail").trim_end()
        )),
        _ => problem::failure(status, body),
    }
}

fn render(reloaded: &Reloaded) -> String {
    let mut table = Table::new(["POOL", "", "KEYS", "WHAT HAPPENS"]);
    for change in &reloaded.changes {
        table.row([
            change.pool.clone(),
            change.what.clone(),
            change.keys.join(", "),
            happens(change).to_owned(),
        ]);
    }
    let mut out = table.render();
    if !reloaded.restart_needed.is_empty() {
        let keys = reloaded.restart_needed.join(", ");
        out.push_str(&one_line(&format!("not before the server is started again: {keys}")));
        out.push('\n');
    }
    if reloaded.changes.iter().all(|change| change.what == "unchanged") {
        out.push_str("nothing differs from what is in force\n");
    }
    out
}

fn happens(change: &Change) -> &'static str {
    match (change.what.as_str(), change.rolled) {
        ("added", _) => "it starts",
        ("removed", _) => "it drains and ends",
        (_, true) => "its workers are being replaced",
        ("changed", false) => "in force, no worker is replaced",
        (_, false) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reloaded(value: Value) -> Reloaded {
        serde_json::from_value(value).expect("an answer")
    }

    #[test]
    fn every_difference_is_told_with_what_comes_of_it() {
        let shown = render(&reloaded(json!({
            "changes": [
                { "pool": "a", "what": "changed", "keys": ["max", "ttl"], "rolled": false },
                { "pool": "bee", "what": "changed", "keys": ["env"], "rolled": true },
                { "pool": "c", "what": "added", "rolled": false },
                { "pool": "d", "what": "removed", "rolled": false },
                { "pool": "e", "what": "unchanged", "keys": [], "rolled": false },
            ],
            "restart_needed": ["server.listen", "store.path"],
        })));
        let expected = "\
POOL             KEYS      WHAT HAPPENS
a     changed    max, ttl  in force, no worker is replaced
bee   changed    env       its workers are being replaced
c     added                it starts
d     removed              it drains and ends
e     unchanged
not before the server is started again: server.listen, store.path
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn nothing_new_is_said_to_be_nothing_new() {
        let same = json!({ "changes": [{ "pool": "a", "what": "unchanged" }] });
        assert!(render(&reloaded(same)).ends_with("nothing differs from what is in force\n"));
    }

    #[test]
    fn a_configuration_that_is_not_good_enough_is_a_failure_with_its_reason() {
        let failure = |status: u16, problem: Value| {
            let status = StatusCode::from_u16(status).expect("a status");
            refused(status, problem.to_string().as_bytes())
        };
        let broken = json!({ "code": "reload_failed", "pool": "py", "detail": "pool `py`: exit code 1\nlast" });
        let broken = failure(409, broken);
        assert_eq!(broken.exit, Exit::Failed);
        let words = "not reloaded, pool `py` stays as it was: exit code 1\nlast";
        assert_eq!(broken.message(), words);
        let wrong = json!({ "code": "invalid_configuration", "detail": "x.toml:1:1: no\n" });
        let wrong = failure(422, wrong);
        assert_eq!(wrong.exit, Exit::Failed);
        let words = "the configuration is not valid; everything stays as it was\nx.toml:1:1: no";
        assert_eq!(wrong.message(), words);
        let unknown = failure(404, json!({ "code": "pool_not_found", "title": "Not Found" }));
        assert_eq!(unknown.exit, Exit::Refused);
    }
}
