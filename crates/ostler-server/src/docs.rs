//! A page that shows the API and lets one try a call. It is one file without anything from
//! elsewhere, so it works offline and can be forbidden to load what it does not bring along.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};

const PAGE: &str = include_str!("docs.html");

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn page() -> Response {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(PAGE)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        for foreign in ["http://", "https://", "src=", "@import", "innerHTML"] {
            assert!(!PAGE.contains(foreign), "{foreign}");
        }
    }
}
