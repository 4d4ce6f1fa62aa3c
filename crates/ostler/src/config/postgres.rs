//! The address of a PostgreSQL database, which may hold a password.
//!
//! A type of its own so that the password cannot be printed by accident: only [`PostgresUrl::reveal`]
//! gives it away, and only whoever connects has a use for that. What the parts mean beyond their
//! shape is the database's business.

use std::fmt;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// What stands in the place of a password.
const MASK: &str = "***";

#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// Reads an address. The error says what it is that is wrong, and never the address.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or("must begin with postgres://")?;
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("has a space or a control character; write it as %20 and the like");
        }
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = before.split_once('/').unwrap_or((before, ""));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if host.is_empty() && !query.split('&').any(|pair| pair.starts_with("host=")) {
            return Err("does not say which host");
        }
        if database.is_empty() {
            return Err("does not say which database");
        }
        Ok(Self(text.to_owned()))
    }

    /// The whole of it, for whoever connects.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Without its password.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, query) = self.0.split_once('?').unwrap_or((&self.0, ""));
        f.write_str(&without_password(before))?;
        let mut separator = '?';
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split('=').next().unwrap_or_default();
            match name.to_ascii_lowercase().contains("password") {
                true => write!(f, "{separator}{name}={MASK}")?,
                false => write!(f, "{separator}{pair}")?,
            }
            separator = '&';
        }
        Ok(())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `scheme://user:***@host/…`. A password may hold an `@` or a `/` of its own: all up to the last
/// `@` is taken for it.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@').map(|(user, host)| (user.split_once(':'), host)) {
        Some((Some((user, _)), host)) => format!("{scheme}://{user}:{MASK}@{host}"),
        _ => url.to_owned(),
    }
}

/// A line of a file with every password in an address struck out, as long as it was.
pub(super) fn struck_out(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(['"', '\'', ' ']).unwrap_or(after.len());
        let (address, tail) = after.split_at(end);
        out.push_str(&starred(address));
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn starred(address: &str) -> String {
    let stars = |text: &str| "*".repeat(text.chars().count());
    let (before, query) = match address.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (address, None),
    };
    let before = match before.rsplit_once('@').map(|(user, host)| (user.split_once(':'), host)) {
        // What only names a variable tells nothing, and is what the reader has to see.
        Some((Some((user, password)), host)) if !password.starts_with("${") => {
            format!("{user}:{}@{host}", stars(password))
        }
        _ => before.to_owned(),
    };
    let query = query.map(|query| {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if name.to_ascii_lowercase().contains("password") => {
                format!("{name}={}", stars(value))
            }
            _ => pair.to_owned(),
        });
        format!("?{}", pairs.collect::<Vec<_>>().join("&"))
    });
    format!("{before}{}", query.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, shown) in [
            ("postgres://h/d", "postgres://h/d"),
            ("postgres://u@h:1/d", "postgres://u@h:1/d"),
            ("postgresql://u:p@h/d?sslmode=off", "postgresql://u:***@h/d?sslmode=off"),
            ("postgres://u:p@q/r:s@h/d", "postgres://u:***@h/d"),
            ("postgres:///d?host=/run&password=x", "postgres:///d?host=/run&password=***"),
        ] {
            let read = PostgresUrl::parse(url).expect(url);
            assert_eq!(
                (read.to_string(), format!("{read:?}")),
                (shown.to_owned(), shown.to_owned())
            );
            assert_eq!(read.reveal(), url);
        }
    }

    #[test]
    fn an_address_says_who_and_where() {
        for (url, wrong) in [
            ("mysql://h/d", "must begin with postgres://"),
            ("host=h dbname=d", "must begin with postgres://"),
            ("postgres:///d", "does not say which host"),
            ("postgres://u:p@/d", "does not say which host"),
            ("postgres://h", "does not say which database"),
            ("postgres://h/", "does not say which database"),
            (
                "postgres://u:a b@h/d",
                "has a space or a control character; write it as %20 and the like",
            ),
        ] {
            assert_eq!(PostgresUrl::parse(url), Err(wrong), "{url}");
        }
    }

    #[test]
    fn a_line_keeps_its_length_and_loses_its_passwords() {
        for (line, shown) in [
            ("url = \"postgres://u:hunter2@h/d\" # x", "url = \"postgres://u:*******@h/d\" # x"),
            ("a://u:${P}@h b://u:é@h", "a://u:${P}@h b://u:*@h"),
            ("u = 'p:///d?password=abc&host=x'", "u = 'p:///d?password=***&host=x'"),
            ("http://h:80/", "http://h:80/"),
        ] {
            assert_eq!(struck_out(line), shown);
        }
    }
}
