//! Where the server is: found by the same configuration that it was started with.

use std::fmt;
use std::path::{Path, PathBuf};

use super::args::{ConfigArg, ServerArg};
use super::exit::Failure;
use crate::config::{self, DEFAULT_LISTEN, DEFAULT_SOCKET};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    Unix(PathBuf),
    Tcp { host: String, port: u16 },
}

impl Endpoint {
    /// The address of the flag, else the configuration's socket, else the usual places.
    pub fn find(arg: &ServerArg) -> Result<Self, Failure> {
        if let Some(url) = &arg.url {
            return Self::parse_url(url).map_err(Failure::usage);
        }
        let here = current_dir()?;
        match config_file(&arg.config, &here) {
            Some(file) => {
                let server = config::load_server(&file)
                    .map_err(|error| Failure::usage(error.to_string()))?;
                Ok(Self::Unix(server.socket))
            }
            None => Ok(Self::usual(&here)),
        }
    }

    fn usual(here: &Path) -> Self {
        let socket = here.join(DEFAULT_SOCKET);
        match socket.exists() {
            true => Self::Unix(socket),
            false => {
                Self::Tcp { host: DEFAULT_LISTEN.ip().to_string(), port: DEFAULT_LISTEN.port() }
            }
        }
    }

    fn parse_url(url: &str) -> Result<Self, String> {
        let wrong =
            |what: &str| format!("--url {url}: {what}; write for example http://127.0.0.1:6785");
        let uri: hyper::Uri = url.parse().map_err(|_| wrong("this is not a URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong("only http is spoken"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong("a path is not part of the address"));
        }
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| wrong("the host is missing"))?;
        Ok(Self::Tcp {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(80),
        })
    }

    /// The `Host` header for a request sent here.
    pub fn host_header(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Tcp { host, port } => format!("{host}:{port}"),
        }
    }

    /// Whether the server's process ids are those of this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => {
                host == "localhost"
                    || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { .. } => write!(f, "http://{}", self.host_header()),
        }
    }
}

/// The configuration file that is meant, if there is one.
pub(super) fn config_file(arg: &ConfigArg, here: &Path) -> Option<PathBuf> {
    let variable = std::env::var_os("OSTLER_CONFIG").filter(|value| !value.is_empty());
    config::discover(arg.config.as_deref(), variable.as_deref().map(Path::new), here)
}

pub(super) fn current_dir() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::failed(format!("the current directory is gone: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_host_and_a_port() {
        for (url, header) in [
            ("http://127.0.0.1:6785", "127.0.0.1:6785"),
            ("http://127.0.0.1:6785/", "127.0.0.1:6785"),
            ("http://[::1]:9", "[::1]:9"),
            ("http://localhost", "localhost:80"),
        ] {
            let endpoint = Endpoint::parse_url(url).expect(url);
            assert_eq!(endpoint.host_header(), header);
            assert!(endpoint.is_local(), "{url}");
        }
        for url in ["https://localhost", "localhost:80", "http://a/b", "", "http://a?x"] {
            assert!(Endpoint::parse_url(url).is_err(), "{url}");
        }
    }
}
