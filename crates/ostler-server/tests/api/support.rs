//! What the tests of the API share: an inn with one pool and its door, a client, and waiting for
//! facts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use ostler_jobs::{JobSettings, Jobs};
use ostler_runtime::core::{Backoff, Settings};
use ostler_runtime::{Directory, EventLog, Pool, PoolSpec, Program};
use ostler_server::{Server, ServerSettings, Stopper};
use ostler_store::Store;
use ostler_store::ledger::{Ledger, LedgerSettings, Place};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;

/// Nothing here takes seconds; a test that waits this long has failed.
pub const LIMIT: Duration = Duration::from_secs(60);

pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| panic!("never seen: {what}"))
}

/// Waits until something is so.
pub async fn until(what: &str, mut fact: impl AsyncFnMut() -> bool) {
    let look = async {
        while !fact().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    within(what, look).await;
}

/// Settings under which a restart costs no time and an unwilling process little.
pub fn brisk(size: u32) -> Settings {
    Settings {
        backoff: Backoff { first: Duration::from_millis(1), ..Settings::default().backoff },
        cancel_grace: Duration::from_millis(500),
        stop_grace: Duration::from_millis(100),
        ..Settings::of_size(size)
    }
}

/// A server with the pool `test`, and a yard where its workers leave traces.
pub struct Inn {
    pub address: SocketAddr,
    pub ledger: Ledger,
    pub directory: Directory,
    pub yard: tempfile::TempDir,
    socket: PathBuf,
    stopper: Stopper,
    serving: JoinHandle<()>,
    pools: ostler_server::Pools,
}

/// An answer as a whole.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    pub fn replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    /// Its JSON, if it has that status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The code of a problem of that status.
    #[track_caller]
    pub fn problem(&self, status: u16) -> String {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        problem["code"].as_str().expect("a code").to_owned()
    }
}

/// One request to be sent.
#[derive(Debug, Clone)]
pub struct Ask {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

pub fn ask(method: &str, path: &str) -> Ask {
    let method = method.parse().expect("a method");
    Ask { method, path: path.to_owned(), headers: Vec::new(), body: Bytes::new() }
}

pub fn get(path: &str) -> Ask {
    ask("GET", path)
}

pub fn post(path: &str, body: &Value) -> Ask {
    ask("POST", path).body(body)
}

impl Ask {
    pub fn body(mut self, body: &Value) -> Self {
        self.body = body.to_string().into();
        self.header("content-type", "application/json")
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", key)
    }

    fn request(&self) -> Request<Full<Bytes>> {
        let mut request =
            Request::builder().method(&self.method).uri(&self.path).header("host", "localhost");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(self.body.clone())).expect("a request")
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ask: &Ask,
) -> Response<Incoming> {
    let io = TokioIo::new(stream);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(io).await.expect("a connection");
    // Ends with the answer's body.
    tokio::spawn(connection);
    sender.send_request(ask.request()).await.expect("an answer")
}

async fn whole(response: Response<Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    Answer { status: head.status.as_u16(), headers: head.headers, body }
}

pub async fn send(address: SocketAddr, ask: &Ask) -> Answer {
    within("an answer", async {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        whole(exchange(stream, ask).await).await
    })
    .await
}

fn worker_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers").join(name)
}

impl Inn {
    /// With one pool of so many workers, all of them ready.
    pub async fn of_size(size: u32) -> Inn {
        Inn::with(brisk(size), |_| {}).await
    }

    pub async fn with(settings: Settings, change: impl FnOnce(&mut PoolSpec)) -> Inn {
        let ledger = Ledger::in_memory(LedgerSettings::default());
        let yard = tempfile::tempdir().expect("a directory");
        Inn::over(ledger, yard, settings, change).await
    }

    /// One whose ledger is in a file of the yard, as the server before has left it.
    pub async fn stored_in(yard: tempfile::TempDir) -> Inn {
        let place = Place::Sqlite(yard.path().join("ostler.db"));
        let store = Store::open(&place).await.expect("it is free");
        let ledger = store.ledger(LedgerSettings::default()).await.expect("it opens");
        Inn::over(ledger, yard, brisk(1), |_| {}).await
    }

    /// One whose ledger is in a file of its own.
    pub async fn in_sqlite() -> Inn {
        Inn::stored_in(tempfile::tempdir().expect("a directory")).await
    }

    /// One whose ledger is in a database of its own.
    pub async fn in_postgres() -> Inn {
        let server = std::env::var("OSTLER_TEST_POSTGRES")
            .expect("a PostgreSQL server: run this by ./test, or under `tests/postgres run`");
        let name = format!("inn_{}", std::process::id());
        let created = std::process::Command::new("psql")
            .args([&server, "-qc", &format!("CREATE DATABASE {name}")])
            .status();
        assert!(created.expect("psql is there").success());
        let place = Place::Postgres(server.replace("/postgres?", &format!("/{name}?")));
        let store = Store::open(&place).await.expect("it is new");
        let ledger = store.ledger(LedgerSettings::default()).await.expect("it opens");
        let yard = tempfile::tempdir().expect("a directory");
        Inn::over(ledger, yard, brisk(1), |_| {}).await
    }

    async fn over(
        ledger: Ledger,
        yard: tempfile::TempDir,
        settings: Settings,
        change: impl FnOnce(&mut PoolSpec),
    ) -> Inn {
        let directory = Directory::new();
        let events = Arc::new(EventLog::new(1_000));
        let mut spec = pool_spec("test", "tasks.py", settings, &ledger, &directory);
        spec.events = Arc::clone(&events);
        spec.processes.env.push(("YARD".to_owned(), yard.path().display().to_string()));
        change(&mut spec);
        let pool = Pool::start(spec).await.expect("a pool starts");
        let jobs = Jobs::start(ledger.clone(), directory.clone(), events, JobSettings::default());
        let socket = yard.path().join("ostler.sock");
        let settings = ServerSettings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            socket: socket.clone(),
            max_body: 4 << 20,
            version: "test",
            default_pool: None,
        };
        let server = Server::bind(settings, vec![pool], jobs).await.expect("it listens");
        let (address, stopper, pools) = (server.local_addr(), server.stopper(), server.pools());
        let serving = tokio::spawn(server.run());
        let pool = pools.find("test").expect("it is served");
        within("all are ready", pool.all_ready()).await;
        Inn { address, ledger, directory, yard, socket, stopper, serving, pools }
    }

    /// One more pool.
    pub async fn add_pool(&self, name: &str, file: &str, settings: Settings) {
        let spec = pool_spec(name, file, settings, &self.ledger, &self.directory);
        self.pools.add(Pool::start(spec).await.expect("a pool starts"));
    }

    pub async fn send(&self, ask: Ask) -> Answer {
        send(self.address, &ask).await
    }

    /// Over the unix socket.
    pub async fn send_locally(&self, ask: Ask) -> Answer {
        within("an answer", async {
            let stream = UnixStream::connect(&self.socket).await.expect("the server listens");
            whole(exchange(stream, &ask).await).await
        })
        .await
    }

    pub async fn get(&self, path: &str) -> Value {
        self.send(get(path)).await.expect(200)
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(post(path, &body)).await
    }

    /// Server-sent events of a stream up to its end: kind, id and data of each.
    pub async fn events(&self, ask: Ask) -> Vec<(String, u64, Value)> {
        let answer = self.send(ask).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = String::from_utf8(answer.body.to_vec()).expect("text");
        text.split("\n\n").filter(|event| event.contains("event: ")).map(parse_event).collect()
    }

    /// A submitted job's id.
    pub async fn submit(&self, job: Value) -> String {
        let answer = self.post("/api/jobs", job).await.expect(202);
        answer["id"].as_str().expect("an id").to_owned()
    }

    /// A job once it has its end.
    pub async fn end(&self, id: &str) -> Value {
        let mut job = Value::Null;
        until("the job ends", async || {
            job = self.get(&format!("/api/jobs/{id}")).await;
            !job["completed_at"].is_null()
        })
        .await;
        job
    }

    pub fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.yard.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until so many have left their name.
    pub async fn seen(&self, file: &str, count: usize) {
        until(&format!("{count} lines in {file}"), async || self.lines(file).len() >= count).await;
    }

    pub fn give(&self, sign: &str) {
        std::fs::write(self.yard.path().join(sign), "").expect("a sign");
    }

    /// Breaks off, wherever it is: nobody is told, and nothing is brought to its end.
    pub async fn crash(self) -> tempfile::TempDir {
        self.serving.abort();
        assert!(self.serving.await.expect_err("it was aborted").is_cancelled());
        let pool = self.pools.find("test").expect("it is served");
        drop((self.stopper, self.pools));
        pool.shut_down(true);
        within("the pool stops", pool.stopped()).await;
        self.ledger.close().await;
        self.yard
    }

    /// Whatever happened, the trail has no gap; and nothing is left.
    pub async fn close(self) {
        let report = self.ledger.verify().await.expect("it can be read");
        assert_eq!(report.findings, [], "the trail is whole");
        self.stopper.stop();
        within("the server ends", self.serving).await.expect("no panic");
        self.ledger.close().await;
    }
}

fn pool_spec(
    name: &str,
    file: &str,
    settings: Settings,
    ledger: &Ledger,
    directory: &Directory,
) -> PoolSpec {
    let program = Program::Python { file: worker_file(file), interpreter: "python3".to_owned() };
    let mut spec = PoolSpec::new(name, program, settings);
    spec.ledger = Some(ledger.clone());
    spec.directory = directory.clone();
    spec
}

fn parse_event(text: &str) -> (String, u64, Value) {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).to_owned()
    };
    let data = serde_json::from_str(&field("data")).expect("JSON");
    (field("event"), field("id").parse().expect("a number"), data)
}
