//! `ostler cancel`: ends a request wherever it is, and says where it was.

use bytes::Bytes;
use hyper::Method;

use super::args::CancelArgs;
use super::call::path_segment;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::requests::{self, Request};
use super::{list, output, problem};
use crate::text::one_line;

pub(super) async fn run(args: &CancelArgs) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let path = format!("/api/requests/{}/cancel", path_segment(&args.id));
    let (status, body) = client.ask(Method::POST, &path, Bytes::new()).await?;
    if !status.is_success() {
        return Err(problem::unknown_is_failed(status, &body, requests::SEE));
    }
    if args.json {
        output::pass_on_line(&body)?;
        return Ok(Exit::Ok);
    }
    let known = requests::get(&mut client, &args.id).await;
    let request: Request = match known {
        Ok(body) => list::understood(serde_json::from_slice(&body))?,
        // It was cancelled; that many others have ended since that it is forgotten.
        Err(_) => Request { id: args.id.clone(), state: "CANCELLED".into(), ..Request::default() },
    };
    output::print(&format!("{}\n", one_line(&account(&request))))?;
    Ok(Exit::Ok)
}

fn account(request: &Request) -> String {
    let id = &request.id;
    if request.state != "CANCELLED" {
        return format!("{id}: the cancel came too late, its end is {}", request.state);
    }
    let mut before =
        request.state_history.iter().rev().skip_while(|step| step.state == "CANCELLED");
    match before.next() {
        Some(step) if step.state == "PENDING" => {
            format!("{id}: cancelled while it waited; nothing ran")
        }
        Some(step) => {
            let worker = step.worker.as_deref().or(request.worker.as_deref());
            let worker = worker.unwrap_or("its worker");
            format!("{id}: cancelled while {worker} worked on it; part of it may have run")
        }
        None => format!("{id}: cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::requests::Step;
    use super::*;

    fn request(states: &[&str]) -> Request {
        let step = |state: &&str| Step {
            state: (*state).to_owned(),
            worker: (*state == "PROCESSING").then(|| "py-1".to_owned()),
            ..Step::default()
        };
        Request {
            id: "x".to_owned(),
            state: states.last().expect("a state").to_string(),
            state_history: states.iter().map(step).collect(),
            ..Request::default()
        }
    }

    #[test]
    fn it_is_said_where_the_request_was() {
        for (states, words) in [
            (&["PENDING", "CANCELLED"][..], "while it waited; nothing ran"),
            (&["PENDING", "PROCESSING", "CANCELLED"], "while py-1 worked on it"),
            (&["PENDING", "PROCESSING", "STREAMING", "CANCELLED"], "while its worker worked on it"),
            (&["PENDING", "PROCESSING", "COMPLETE"], "too late, its end is COMPLETE"),
        ] {
            let said = account(&request(states));
            assert!(said.contains(words), "{said}");
        }
    }
}
