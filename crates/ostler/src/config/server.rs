//! `[server]`: where the server listens, and what holds for all pools.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::section::Section;
use super::{DEFAULT_SOCKET, HOUR, KIB, MIB, SECOND};

/// The longest path that fits into a unix socket address on Linux, its final zero not counted.
const SOCKET_PATH_MAX: usize = 107;

/// The default address for HTTP.
pub const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 6785);

/// The largest body or result that any setting allows.
pub const BODY_CEILING: u64 = 1024 * MIB;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub listen: SocketAddr,
    /// The unix socket of the command line, absolute.
    pub socket: PathBuf,
    pub max_body: u64,
    /// How long running requests may finish after the first signal.
    pub drain_timeout: Duration,
    /// The pool that is meant where none is named.
    pub default_pool: Option<String>,
}

impl Server {
    /// The defaults, for a server whose files are under `root`.
    pub fn defaults(root: &std::path::Path) -> Self {
        Self {
            listen: DEFAULT_LISTEN,
            socket: root.join(DEFAULT_SOCKET),
            max_body: 64 * MIB,
            drain_timeout: 30 * SECOND,
            default_pool: None,
        }
    }

    pub(super) fn read(section: &Section<'_>) -> Self {
        let defaults = Self::defaults(section.reading().around.root);
        Self {
            listen: listen(section).unwrap_or(defaults.listen),
            socket: socket(section, defaults.socket),
            max_body: section
                .key("max_body", "largest body of a request")
                .size(defaults.max_body, KIB..=BODY_CEILING),
            drain_timeout: section
                .key("drain_timeout", "how long running calls may take after the first signal")
                .duration(defaults.drain_timeout, Duration::ZERO..=HOUR),
            default_pool: section
                .key("default_pool", "the pool that is meant where none is named")
                .usually("the first")
                .text()
                .map(toml::Spanned::into_inner),
        }
    }
}

fn listen(section: &Section<'_>) -> Option<SocketAddr> {
    let key = section.key("listen", "address for HTTP; loopback only");
    let text = key.or_text(&DEFAULT_LISTEN.to_string()).text()?;
    match parse_listen(text.get_ref()) {
        Ok(address) => Some(address),
        Err((message, help)) => {
            section.blame_key("listen", message, help);
            None
        }
    }
}

/// Reads an address to listen on; only loopback is allowed, because requests carry no proof of who
/// sends them. The error is a message and what to do.
pub fn parse_listen(text: &str) -> Result<SocketAddr, (String, String)> {
    let address: SocketAddr = text.parse().map_err(|_| {
        (
            format!("`{text}` is not an address with a port"),
            "write for example 127.0.0.1:6785 or [::1]:6785".to_owned(),
        )
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err((
        format!("`{text}` can be reached from other machines, and callers are not authenticated"),
        "listen on 127.0.0.1 or [::1]; to serve others, put a proxy that authenticates in front"
            .to_owned(),
    ))
}

fn socket(section: &Section<'_>, default: PathBuf) -> PathBuf {
    let root = section.reading().around.root;
    let about = "unix socket for clients of this user, mode 0600 in a directory of mode 0700";
    let written = section.key("socket", about).or_text(DEFAULT_SOCKET).text();
    let path = written.map_or(default, |text| root.join(text.into_inner()));
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        section.blame_key(
            "socket",
            format!("the socket's path has {length} bytes, the system allows {SOCKET_PATH_MAX}"),
            "set `socket` in [server] to a shorter path",
        );
    }
    path
}
