//! Who may come in, and under which id.

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Request, StatusCode};

use crate::problem::Problem;
use crate::terms::REQUEST_ID;

/// The id that the client gave, if it gave one.
pub(crate) fn given_id(headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
    let Some(given) = headers.get(REQUEST_ID) else { return Ok(None) };
    let printable = given.as_bytes().iter().all(u8::is_ascii_graphic);
    if printable && (1..=128).contains(&given.len()) {
        return Ok(Some(given.clone()));
    }
    let detail = "Ostler-Request-Id must be 1 to 128 printable ASCII characters";
    Err(Problem::bad_request(detail))
}

/// A web page of somebody else must not be able to talk to this server: neither under a name that
/// was made to point here, nor from its own origin.
pub(crate) fn admit(request: &Request<Incoming>) -> Result<(), Problem> {
    let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let uri = request.uri().host();
    let host = uri.or(named).unwrap_or_default();
    if !is_local_name(host) {
        let detail = format!("the host `{host}` is not this machine; use localhost or 127.0.0.1");
        return Err(Problem::new(StatusCode::FORBIDDEN, "host_not_allowed", detail));
    }
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    if !is_local_name(host) {
        let detail = format!("pages of the origin `{origin}` may not call this server");
        return Err(Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", detail));
    }
    Ok(())
}

fn is_local_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in ["localhost", "LOCALHOST:6785", "127.0.0.1:1", "[::1]:6785", "127.8.0.1"] {
            assert!(is_local_name(host), "{host}");
        }
        for host in ["", "example.com", "localhost.example.com", "10.0.0.1", "127.0.0.1.example"] {
            assert!(!is_local_name(host), "{host}");
        }
    }
}
