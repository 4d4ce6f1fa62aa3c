//! One HTTP connection to the server, over its unix socket or TCP.
//!
//! Knows how to reach it and how to say that it is not there; knows nothing of what is asked.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HOST;
use hyper::http::request;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use crate::config::BODY_CEILING;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The control plane answers in milliseconds, also under load; this long a silence is no answer.
pub(super) const CONTROL_TIMEOUT: Duration = Duration::from_secs(10);

/// No setting lets a server send more than this in one answer; a little room is for its frame.
pub(super) const ANSWER_MAX: usize = BODY_CEILING as usize + 64 * 1024;

#[derive(Debug)]
pub(super) struct Client {
    endpoint: Endpoint,
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    pub async fn connect(endpoint: Endpoint) -> Result<Self, Failure> {
        let connecting = async {
            match &endpoint {
                Endpoint::Unix(path) => Self::shake(UnixStream::connect(path).await?).await,
                Endpoint::Tcp { host, port } => {
                    Self::shake(TcpStream::connect((host.as_str(), *port)).await?).await
                }
            }
        };
        let connected = timeout(CONNECT_TIMEOUT, connecting)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match connected {
            Ok((sender, driver)) => Ok(Self { endpoint, sender, driver }),
            Err(error) => Err(unreachable(&endpoint, &error)),
        }
    }

    async fn shake<S>(stream: S) -> io::Result<(SendRequest<Full<Bytes>>, JoinHandle<()>)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Its errors reach the caller through the request that they break.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok((sender, driver))
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Begins a request for this server.
    pub fn request(&self, method: Method, path: &str) -> request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.endpoint.host_header())
            .header(hyper::header::USER_AGENT, concat!("ostler/", env!("CARGO_PKG_VERSION")))
    }

    pub async fn send(
        &mut self,
        request: request::Builder,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = request
            .body(Full::new(body))
            .map_err(|error| Failure::usage(format!("this cannot be sent: {error}")))?;
        self.sender.send_request(request).await.map_err(|error| {
            Failure::failed(format!(
                "the server at {} closed the connection before it answered ({error}); \
                 if this was a call, it may have run",
                self.endpoint
            ))
        })
    }

    /// A short question of the control plane, with its whole answer.
    pub async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let request = self.request(method, path);
        self.ask_by(request, body, CONTROL_TIMEOUT).await
    }

    /// The same with a request of one's own, and as much time as it may take.
    pub async fn ask_by(
        &mut self,
        mut request: request::Builder,
        body: Bytes,
        patience: Duration,
    ) -> Result<(StatusCode, Bytes), Failure> {
        if !body.is_empty() {
            request = request.header(hyper::header::CONTENT_TYPE, "application/json");
        }
        let answer = async {
            let response = self.send(request, body).await?;
            Ok((response.status(), collect(response.into_body()).await?))
        };
        match timeout(patience, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::new(
                Exit::Timeout,
                format!("the server at {} does not answer", self.endpoint),
            )),
        }
    }
}

/// The whole body, within the bound.
pub(super) async fn collect(body: Incoming) -> Result<Bytes, Failure> {
    let limited = Limited::new(body, ANSWER_MAX).collect().await;
    limited
        .map(|body| body.to_bytes())
        .map_err(|error| Failure::failed(format!("the answer broke off before its end ({error})")))
}

fn unreachable(endpoint: &Endpoint, error: &io::Error) -> Failure {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied, TimedOut};
    match error.kind() {
        NotFound | ConnectionRefused => Failure::new(
            Exit::NotRunning,
            format!("no server answers at {endpoint}; start one with: ostler serve FILE.py"),
        ),
        PermissionDenied => Failure::new(
            Exit::Refused,
            format!("the socket {endpoint} belongs to another user; run this as that user"),
        ),
        TimedOut => Failure::new(
            Exit::Timeout,
            format!("the server at {endpoint} does not accept connections"),
        ),
        _ => Failure::failed(format!("cannot reach the server at {endpoint}: {error}")),
    }
}
