//! `ostler recycle`: fresh workers for old ones, one or all of a pool.

mod roll;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde::Deserialize;

use super::args::RecycleArgs;
use super::call::path_segment;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::{list, output, problem};
use crate::text::one_line;

use roll::Roll;

/// What the server has begun to replace.
#[derive(Debug, PartialEq, Eq)]
struct Ordered {
    pool: String,
    workers: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfPool {
    pool: String,
    workers: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfWorker {
    pool: String,
    name: String,
}

pub(super) async fn run(args: &RecycleArgs) -> Result<Exit, Failure> {
    let endpoint = Endpoint::find(&args.server)?;
    // Begun before the order is given: nothing that comes of it is missed.
    let events = match args.rolling {
        true => Some(roll::events(&endpoint, None).await?),
        false => None,
    };
    let mut client = Client::connect(endpoint.clone()).await?;
    let (body, ordered) = order(&mut client, &args.what).await?;
    drop(client);
    match args.json {
        true => output::pass_on_line(&body)?,
        false => output::print(&format!("{}\n", one_line(&account(&ordered))))?,
    }
    if let Some(events) = events {
        Roll::new(ordered, args.json).watch(&endpoint, events).await?;
    }
    Ok(Exit::Ok)
}

/// A word means the pool of that name, else the worker.
async fn order(client: &mut Client, what: &str) -> Result<(Bytes, Ordered), Failure> {
    let name = path_segment(what);
    let path = format!("/api/pools/{name}/recycle");
    let (status, body) = client.ask(Method::POST, &path, Bytes::new()).await?;
    if status.is_success() {
        let OfPool { pool, workers } = list::understood(serde_json::from_slice(&body))?;
        return Ok((body, Ordered { pool, workers }));
    }
    if status != StatusCode::NOT_FOUND {
        return Err(problem::failure(status, &body));
    }
    let path = format!("/api/supervisor/workers/{name}/recycle");
    let (status, body) = client.ask(Method::POST, &path, Bytes::new()).await?;
    match status {
        status if status.is_success() => {
            let OfWorker { pool, name } = list::understood(serde_json::from_slice(&body))?;
            Ok((body, Ordered { pool, workers: vec![name] }))
        }
        StatusCode::NOT_FOUND => Err(Failure::failed(format!(
            "there is no pool and no worker `{what}`; see: ostler workers"
        ))),
        status => Err(problem::failure(status, &body)),
    }
}

fn account(ordered: &Ordered) -> String {
    let Ordered { pool, workers } = ordered;
    match &workers[..] {
        [] => format!("{pool}: there is no worker to replace"),
        [one] => format!("{pool}: {one} is being replaced"),
        many => format!("{pool}: {} workers are being replaced: {}", many.len(), many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_who_is_replaced() {
        for (workers, words) in [
            (&[][..], "py: there is no worker to replace"),
            (&["py-1"], "py: py-1 is being replaced"),
            (&["py-1", "py-4"], "py: 2 workers are being replaced: py-1, py-4"),
        ] {
            let workers = workers.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(account(&Ordered { pool: "py".to_owned(), workers }), words);
        }
    }
}
