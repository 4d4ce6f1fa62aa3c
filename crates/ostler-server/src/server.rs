//! The server: who may connect, where requests go, and how it ends.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use ostler_core::RequestId;
use ostler_jobs::Jobs;
use ostler_runtime::{EVENTS_KEPT, EventLog, Pool, made_id};
use ostler_store::ledger::Place;
use ostler_store::{SessionSettings, Sessions};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::asking::Visit;
use crate::door::{admit, given_id};
use crate::errands::Errands;
use crate::idempotency::KeyCounts;
use crate::job_metrics::JobMoves;
use crate::key_desk::KeyDesk;
use crate::payload::{Payload, problem};
use crate::problem::Problem;
use crate::reload::{Reload, ReloadProblem, ReloadReport};
use crate::roster::{Pools, Served};
use crate::tenancy::Tenancy;
use crate::terms::{REQUEST_ID, owner_number};
use crate::{call, routes, socket};

/// A client that has not sent its headers by then is not one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const GUESTS_MAX: usize = 16_384;
/// Those over the unix socket have a bound of their own: operators get in however many call.
const LOCALS_MAX: usize = 1_024;
/// Running attempts get this long; their pools may give them less.
const JOBS_GRACE: Duration = Duration::from_secs(30);
/// After the pools have stopped, answers in flight get this long to leave.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub listen: SocketAddr,
    pub socket: PathBuf,
    pub max_body: u64,
    pub version: &'static str,
    /// Meant where no pool is named; the first if none.
    pub default_pool: Option<String>,
}

#[derive(Debug)]
pub struct Shared {
    pools: Pools,
    /// What runs jobs, and the ledger behind it.
    pub(crate) jobs: Jobs,
    /// What goes on without its client.
    pub(crate) errands: Errands,
    pub(crate) keys: KeyCounts,
    pub(crate) key_desk: KeyDesk,
    pub(crate) job_moves: Arc<JobMoves>,
    default_pool: Option<String>,
    /// Where sessions and the ledger are stored, if that is known.
    pub(crate) place: OnceLock<Place>,
    /// Held by the look at all of it that is under way.
    pub(crate) checking: tokio::sync::Mutex<()>,
    pub(crate) sessions: Sessions,
    pub(crate) leases: Tenancy,
    /// Of all pools.
    pub(crate) events: Arc<EventLog>,
    /// How the configuration is read anew, if that can be done.
    pub(crate) reload: OnceLock<Reload>,
    /// Held by the one that is under way.
    pub(crate) reloading: Arc<tokio::sync::Mutex<()>>,
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
    pub fn pool(&self, name: &str) -> Result<Pool, Problem> {
        self.pools.find(name).ok_or_else(|| self.no_pool(name))
    }

    /// The one that is meant where none is named.
    pub(crate) fn default_pool(&self) -> Result<Pool, Problem> {
        if let Some(name) = &self.default_pool {
            return self.pool(name);
        }
        let first = self.pools().into_iter().next();
        first.map(|served| served.pool).ok_or_else(|| self.no_pool("default"))
    }

    /// The same with its place.
    pub(crate) fn served(&self, name: &str) -> Result<Served, Problem> {
        let found = self.pools().into_iter().find(|served| served.pool.name() == name);
        found.ok_or_else(|| self.no_pool(name))
    }

    /// Those that are served just now.
    pub(crate) fn pools(&self) -> Vec<Served> {
        self.pools.all()
    }

    pub(crate) fn pool_names(&self) -> Vec<String> {
        self.pools().into_iter().map(|served| served.pool.name().to_owned()).collect()
    }

    fn no_pool(&self, name: &str) -> Problem {
        Problem::pool_not_found(name, &self.pool_names())
    }

    fn close(&self) {
        self.events.close();
        for served in self.pools() {
            served.pool.event_log().close();
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
    /// Serves these pools, and the jobs that run on them.
    pub async fn bind(
        settings: ServerSettings,
        pools: Vec<Pool>,
        jobs: Jobs,
    ) -> Result<Server, BindError> {
        let (address, path) = (settings.listen, settings.socket.clone());
        let tcp = TcpListener::bind(address).await;
        let tcp = tcp.map_err(|source| BindError::Tcp { address, source })?;
        let unix = socket::bind(&path).await?;
        let listen = tcp.local_addr().unwrap_or(address);
        // The pools of one server share their sessions and their log.
        let first = pools.first();
        let shared = Arc::new(Shared {
            sessions: first.map_or_else(no_sessions, |pool| pool.directory().sessions()),
            events: first.map_or_else(no_events, Pool::event_log),
            pools: Pools::of(pools),
            errands: Errands::default(),
            keys: KeyCounts::default(),
            key_desk: KeyDesk::default(),
            job_moves: JobMoves::of(jobs.ledger()),
            default_pool: settings.default_pool,
            place: OnceLock::new(),
            checking: tokio::sync::Mutex::default(),
            jobs,
            leases: Tenancy::default(),
            reload: OnceLock::new(),
            reloading: Arc::default(),
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

    /// The pools that it serves, to add some or take some away.
    pub fn pools(&self) -> Pools {
        self.shared.pools.clone()
    }

    /// How the configuration is read anew when somebody asks for it. The first one counts.
    pub fn on_reload<F, A>(&self, reload: F)
    where
        F: Fn(Vec<String>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ReloadReport, ReloadProblem>> + Send + 'static,
    {
        let _ = self.shared.reload.set(Reload::by(reload));
    }

    /// Where sessions and jobs are stored, so that all of it can be checked. The first one counts.
    pub fn stored_at(&self, place: Place) {
        let _ = self.shared.place.set(place);
    }

    /// A handle by which the server is told to end.
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: Arc::clone(&self.shared) }
    }

    /// Serves until it is told to stop and every pool is gone.
    pub async fn run(self) {
        let _errands = EndOfErrands(Arc::clone(&self.shared));
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
                    let client = owner_number(&peer.ip().to_string());
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
            self.shared.errands.ended().await;
            for connections in [&mut guests, &mut locals] {
                while connections.join_next().await.is_some() {}
            }
        };
        drop(tokio::time::timeout(FAREWELL, farewell).await);
    }
}

/// Errands hold what they work for: they must be ended by somebody else.
struct EndOfErrands(Arc<Shared>);

impl Drop for EndOfErrands {
    fn drop(&mut self) {
        self.0.errands.abort();
    }
}

/// For a server that has no pool yet.
fn no_sessions() -> Sessions {
    Sessions::in_memory(SessionSettings::default())
}

fn no_events() -> Arc<EventLog> {
    Arc::new(EventLog::new(EVENTS_KEPT))
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

/// Jobs first: they take nothing new, and what runs of them ends with the pools.
async fn end_pools(shared: Arc<Shared>, mut stop: watch::Receiver<Stop>) {
    let _ = stop.wait_for(|stop| *stop != Stop::No).await;
    let (pools, jobs) = (&shared.pools, &shared.jobs);
    let now = *stop.borrow() == Stop::Now;
    let orderly = async {
        let grace = if now { Duration::ZERO } else { JOBS_GRACE };
        let ended = async {
            pools.end(now);
            pools.ended().await;
        };
        tokio::join!(jobs.stop(grace), ended);
    };
    tokio::select! {
        () = orderly => return,
        _ = stop.wait_for(|stop| *stop == Stop::Now), if !now => {}
    }
    pools.end(true);
    tokio::join!(jobs.stop(Duration::ZERO), pools.ended());
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
    let mut request = request.map(axum::body::Body::new);
    request.extensions_mut().insert(Visit { id: id.clone(), local: visitor.local });
    let mut response = match visitor.router.oneshot(request).await {
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
    response.headers_mut().insert(REQUEST_ID, id);
    response.map(Payload::Router)
}
