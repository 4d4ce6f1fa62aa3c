//! One connection that stays open, and one question at a time on it.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::Failure;

#[derive(Debug)]
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// What of a job is read here.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    pub id: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Batch {
    pub jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    pub items: Vec<Job>,
    pub next_cursor: Option<String>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Its errors reach the caller through the request that they break.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, driver })
    }

    pub async fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: String,
    ) -> Result<T, Failure> {
        self.ask(Method::POST, path, body).await
    }

    pub async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Failure> {
        self.ask(Method::GET, path, String::new()).await
    }

    async fn ask<T: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<T, Failure> {
        let request = Request::builder().method(method).uri(path).header(HOST, "localhost");
        let request = request.header(CONTENT_TYPE, "application/json");
        // The answer before may have been read before its connection was done with it.
        self.sender.ready().await?;
        let response = self.sender.send_request(request.body(Full::from(body))?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body);
            return Err(format!("{path} was answered {status}: {text}").into());
        }
        Ok(serde_json::from_slice(&body)?)
    }

    /// The ids of a list, all its pages.
    pub async fn ids(&mut self, list: &str) -> Result<Vec<String>, Failure> {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        loop {
            let page: Page = self.get(&format!("{list}&limit=500{cursor}")).await?;
            ids.extend(page.items.into_iter().map(|job| job.id));
            match page.next_cursor {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(ids),
            }
        }
    }
}
