//! Connections to the server, each with one request at a time.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// One connection of HTTP/1.1.
pub(super) struct Wire {
    sender: SendRequest<Full<Bytes>>,
    _connection: JoinSet<()>,
}

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) media: &'static str,
    /// What the answer is to look like, if not whole.
    pub(super) accept: Option<&'static str>,
    pub(super) body: Bytes,
}

impl Ask {
    pub(super) fn new(method: Method, path: String, body: String) -> Self {
        Self {
            method,
            path,
            media: "application/json",
            accept: None,
            body: body.into(),
        }
    }

    pub(super) fn get(path: &str) -> Self {
        Self::new(Method::GET, path.to_owned(), String::new())
    }
}

impl Wire {
    pub(super) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Otherwise Nagle's algorithm and delayed acknowledgements would be measured.
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut task = JoinSet::new();
        task.spawn(async move { drop(connection.await) });
        Ok(Self {
            sender,
            _connection: task,
        })
    }

    /// Sends a request that must succeed; returns what answers it.
    pub(super) async fn open(&mut self, ask: Ask) -> Result<Incoming> {
        let request = Request::builder()
            .method(ask.method)
            .uri(&ask.path)
            .header("host", "localhost")
            .header("content-type", ask.media)
            .header("accept", ask.accept.unwrap_or("*/*"))
            .body(Full::new(ask.body))?;
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        if !head.status.is_success() {
            let bytes = body.collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&bytes);
            bail!("{}: {}: {text}", ask.path, head.status);
        }
        Ok(body)
    }

    /// Sends a request that must succeed, and reads the answer to its end.
    pub(super) async fn ask(&mut self, ask: Ask) -> Result<Bytes> {
        Ok(self.open(ask).await?.collect().await?.to_bytes())
    }
}
