//! The server: who may connect, where requests go, and how it ends.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ostler_core::RequestId;
use ostler_runtime::{Pool, made_id};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::payload::{Payload, problem};
use crate::problem::Problem;
use crate::{call, routes};

/// A client that has not sent its headers by then is not one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const GUESTS_MAX: usize = 16_384;
/// Those over the unix socket have a bound of their own: operators get in however many call.
const LOCALS_MAX: usize = 1_024;
/// After the pools have stopped, answers in flight get this long to leave.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub listen: SocketAddr,
    pub socket: PathBuf,
    pub max_body: u64,
    pub version: &'static str,
}

#[derive(Debug)]
pub struct Shared {
    pub pools: Vec<Pool>,
    pub max_body: usize,
    pub tracebacks: bool,
    pub version: &'static str,
    pub listen: SocketAddr,
    pub started: Instant,
    requests: AtomicU64,
    pub(crate) stop: watch::Sender<Stop>,
    /// The pools are gone: whatever still streams comes to its end.
    pub(crate) closing: watch::Sender<bool>,
}

/// How the server was told to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    #[default]
    No,
    Gracefully,
    Now,
}

impl Shared {
    pub fn pool(&self, name: &str) -> Result<&Pool, Problem> {
        self.pools.iter().find(|pool| pool.name() == name).ok_or_else(|| {
            let known: Vec<String> = self.pools.iter().map(|pool| pool.name().to_owned()).collect();
            Problem::pool_not_found(name, &known)
        })
    }

    fn close(&self) {
        for pool in &self.pools {
            pool.event_log().close();
        }
        self.closing.send_replace(true);
    }

    /// An id for what is not a call.
    pub(crate) fn next_request_id(&self) -> HeaderValue {
        let number = RequestId(self.requests.fetch_add(1, Ordering::Relaxed));
        HeaderValue::from_str(&made_id(0, number)).expect("hex digits")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("cannot listen on {address}: {source}; is another server running there?")]
    Tcp { address: SocketAddr, source: io::Error },
    #[error("cannot listen on {}: {source}", path.display())]
    Socket { path: PathBuf, source: io::Error },
    #[error("a server answers at {} already; stop it with: ostler stop", path.display())]
    InUse { path: PathBuf },
}

#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    tcp: TcpListener,
    unix: UnixListener,
    socket: PathBuf,
}

impl Server {
    pub async fn bind(settings: ServerSettings, pools: Vec<Pool>) -> Result<Server, BindError> {
        let (address, path) = (settings.listen, settings.socket.clone());
        let tcp = TcpListener::bind(address).await;
        let tcp = tcp.map_err(|source| BindError::Tcp { address, source })?;
        let unix = bind_socket(&path).await?;
        let listen = tcp.local_addr().unwrap_or(address);
        let shared = Arc::new(Shared {
            pools,
            max_body: usize::try_from(settings.max_body).unwrap_or(usize::MAX),
            tracebacks: listen.ip().is_loopback(),
            version: settings.version,
            listen,
            started: Instant::now(),
            requests: AtomicU64::new(1),
            stop: watch::Sender::default(),
            closing: watch::Sender::new(false),
        });
        Ok(Server { shared, tcp, unix, socket: path })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.shared.listen
    }

    /// A handle by which the server is told to end.
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: Arc::clone(&self.shared) }
    }

    /// Serves until it is told to stop and every pool is gone.
    pub async fn run(self) {
        let router = routes::router(Arc::clone(&self.shared));
        let (mut guests, mut locals) = (JoinSet::new(), JoinSet::new());
        let mut stop = self.shared.stop.subscribe();
        let closing = self.shared.closing.subscribe();
        let pools_gone = end_pools(Arc::clone(&self.shared), stop.clone());
        tokio::pin!(pools_gone);
        loop {
            let open = guests.len() < GUESTS_MAX && *stop.borrow() == Stop::No;
            tokio::select! {
                accepted = self.tcp.accept(), if open => {
                    let Ok((stream, peer)) = accepted else { catch_breath().await; continue };
                    let _ = stream.set_nodelay(true);
                    let client = call::owner_number(&peer.ip().to_string());
                    let (shared, router) = (Arc::clone(&self.shared), router.clone());
                    let visitor = Visitor { shared, router, client, local: false };
                    guests.spawn(attend(stream, visitor, closing.clone()));
                }
                accepted = self.unix.accept(), if locals.len() < LOCALS_MAX => {
                    let Ok((stream, _)) = accepted else { catch_breath().await; continue };
                    let (shared, router) = (Arc::clone(&self.shared), router.clone());
                    let visitor = Visitor { shared, router, client: 0, local: true };
                    locals.spawn(attend(stream, visitor, closing.clone()));
                }
                Some(_) = guests.join_next() => {}
                Some(_) = locals.join_next() => {}
                _ = stop.changed() => {}
                () = &mut pools_gone => break,
            }
        }
        drop(std::fs::remove_file(&self.socket));
        self.shared.close();
        let farewell = async {
            for connections in [&mut guests, &mut locals] {
                while connections.join_next().await.is_some() {}
            }
        };
        drop(tokio::time::timeout(FAREWELL, farewell).await);
    }
}

/// Nobody can be let in, for want of descriptors most likely: asking again at once changes nothing.
async fn catch_breath() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[derive(Debug, Clone)]
pub struct Stopper {
    shared: Arc<Shared>,
}

impl Stopper {
    /// The first time gracefully, the second time at once.
    pub fn stop(&self) {
        self.shared.stop.send_modify(|stop| {
            *stop = if *stop == Stop::No { Stop::Gracefully } else { Stop::Now };
        });
    }
}

async fn end_pools(shared: Arc<Shared>, mut stop: watch::Receiver<Stop>) {
    let _ = stop.wait_for(|stop| *stop != Stop::No).await;
    for pool in &shared.pools {
        pool.shut_down(*stop.borrow() == Stop::Now);
    }
    let all_stopped = async {
        for pool in &shared.pools {
            pool.stopped().await;
        }
    };
    tokio::pin!(all_stopped);
    tokio::select! {
        () = &mut all_stopped => return,
        _ = stop.wait_for(|stop| *stop == Stop::Now) => {}
    }
    for pool in &shared.pools {
        pool.shut_down(true);
    }
    all_stopped.await;
}

/// Who is at the other end of a connection.
#[derive(Clone)]
struct Visitor {
    shared: Arc<Shared>,
    /// Every route but the call itself.
    router: Router,
    client: u64,
    /// Over the unix socket: the file's mode has let them in.
    local: bool,
}

async fn attend(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    visitor: Visitor,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let visitor = visitor.clone();
        async move { Ok::<_, Infallible>(respond(visitor, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // A connection that breaks concerns nobody but its client.
        _ = &mut connection => return,
        _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn respond(visitor: Visitor, request: Request<Incoming>) -> Response<Payload> {
    let admitted = given_id(request.headers()).and_then(|given| {
        if !visitor.local {
            admit(&request)?;
        }
        Ok(given)
    });
    let given = match admitted {
        Ok(given) => given,
        Err(refused) => return problem(&refused, &visitor.shared.next_request_id()),
    };
    if call::route(request.uri().path()).is_some() {
        return call::serve(visitor.shared, request, visitor.client, given).await;
    }
    let id = given.unwrap_or_else(|| visitor.shared.next_request_id());
    let mut response = match visitor.router.oneshot(request.map(axum::body::Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    if let Some(told) = response.extensions_mut().remove::<Problem>() {
        let mut spelled = problem(&told, &id);
        // The router knows which methods there are.
        if let Some(allow) = response.headers_mut().remove(header::ALLOW) {
            spelled.headers_mut().insert(header::ALLOW, allow);
        }
        return spelled;
    }
    response.headers_mut().insert(call::REQUEST_ID, id);
    response.map(Payload::Router)
}

/// The id that the client gave, if it gave one.
fn given_id(headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
    let Some(given) = headers.get(call::REQUEST_ID) else { return Ok(None) };
    let printable = given.as_bytes().iter().all(u8::is_ascii_graphic);
    if printable && (1..=128).contains(&given.len()) {
        return Ok(Some(given.clone()));
    }
    let detail = "Ostler-Request-Id must be 1 to 128 printable ASCII characters";
    Err(Problem::bad_request(detail))
}

/// A web page of somebody else must not be able to talk to this server: neither under a name that
/// was made to point here, nor from its own origin.
fn admit(request: &Request<Incoming>) -> Result<(), Problem> {
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

/// A socket that only this user can reach. A file that nobody answers at is left over from a
/// server that was killed.
async fn bind_socket(path: &Path) -> Result<UnixListener, BindError> {
    let failed = |source| BindError::Socket { path: path.to_owned(), source };
    if let Some(directory) = path.parent() {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    if path.exists() {
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(BindError::InUse { path: path.to_owned() });
        }
        std::fs::remove_file(path).map_err(failed)?;
    }
    // Bound under a private mask: there is no moment at which others could connect.
    let listener = {
        let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(path);
        rustix::process::umask(mask);
        listener
    };
    listener.map_err(failed)
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
