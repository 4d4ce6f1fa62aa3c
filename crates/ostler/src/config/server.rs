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

    pub(super) fn read(section: Section<'_>) -> Self {
        let defaults = Self::defaults(section.reading().around.root);
        let server = Self {
            listen: listen(&section).unwrap_or(defaults.listen),
            socket: socket(&section, defaults.socket),
            max_body: section.size("max_body", defaults.max_body, KIB..=BODY_CEILING),
            drain_timeout: section.duration(
                "drain_timeout",
                defaults.drain_timeout,
                Duration::ZERO..=HOUR,
            ),
            default_pool: section.string("default_pool").map(toml::Spanned::into_inner),
        };
        section.finish();
        server
    }
}

fn listen(section: &Section<'_>) -> Option<SocketAddr> {
    let text = section.string("listen")?;
    match parse_listen(text.get_ref()) {
        Ok(address) => Some(address),
        Err((message, help)) => {
            section.reading().note(text.span(), message, Some(help));
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
    let around = section.reading().around;
    let path = section.string("socket").map_or(default, |text| around.root.join(text.into_inner()));
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        section.reading().note(
            section.span_of("socket"),
            format!("the socket's path has {length} bytes, the system allows {SOCKET_PATH_MAX}"),
            Some("set `socket` in [server] to a shorter path".to_owned()),
        );
    }
    path
}
