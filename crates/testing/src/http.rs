//! A client of a service: one connection for each request.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time;

#[derive(Clone)]
pub struct Client {
    pub address: SocketAddr,
    headers: Vec<(&'static str, String)>,
}

/// A response that was read.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.text).expect("JSON")
    }

    /// Returns the value of an answer that was not refused.
    #[track_caller]
    pub fn good<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, 200, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_str(&self.text).expect("the type of the API")
    }

    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|it| it.to_str().expect("text"));
        value.unwrap_or_default()
    }

    /// Checks that it is a `Status`, and returns its message.
    #[track_caller]
    pub fn refused(&self, code: u16) -> String {
        assert_eq!(self.status, code, "{}", self.text);
        let json = self.json();
        assert_eq!(
            (&json["kind"], &json["code"]),
            (&"Status".into(), &code.into())
        );
        json["message"].as_str().expect("a message").to_owned()
    }
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let headers = Vec::new();
        Self { address, headers }
    }

    /// Sends a header with each request.
    pub fn with(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut client = self.clone();
        client.headers.push((name, value.into()));
        client
    }

    pub fn token(&self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "").await
    }

    pub async fn act(&self, action: &impl Serialize) -> Answer {
        let body = serde_json::to_string(action).expect("JSON");
        let client = self.with("content-type", "application/json");
        client.send(Method::POST, "/api/v1/actions", &body).await
    }

    pub async fn send(&self, method: Method, path: &str, body: &str) -> Answer {
        let (response, _connection) = self.begin(method, path, body).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(body.to_vec()).expect("UTF-8"),
        }
    }

    /// Begins a stream.
    pub async fn watch(&self, path: &str) -> Stream {
        let (response, connection) = self.begin(Method::GET, path, "").await;
        Stream {
            status: response.status().as_u16(),
            body: response.into_body(),
            read: String::new(),
            _connection: connection,
        }
    }

    async fn begin(
        &self,
        method: Method,
        path: &str,
        body: &str,
    ) -> (Response<Incoming>, JoinSet<()>) {
        let stream = TcpStream::connect(self.address).await.expect("connected");
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.expect("a connection");
        let mut connections = JoinSet::new();
        connections.spawn(async move { drop(connection.await) });
        let mut request = Request::builder().method(method).uri(path);
        if !self.headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned())));
        let response = sender.send_request(request.expect("a request")).await;
        (response.expect("a response"), connections)
    }
}

/// A stream of server-sent events; dropping it closes the connection.
pub struct Stream {
    pub status: u16,
    body: Incoming,
    read: String,
    _connection: JoinSet<()>,
}

impl Stream {
    /// Waits for the end.
    pub async fn ends(&mut self) {
        let ended = async { while self.next().await.is_some() {} };
        let ended = time::timeout(Duration::from_secs(30), ended).await;
        ended.expect("the stream ends");
    }

    /// Returns the next event as its name and its data; none at the end.
    pub async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some((block, rest)) = self.read.split_once("\n\n") {
                let field = |name| block.lines().find_map(|line| line.strip_prefix(name));
                let event = field("event: ").unwrap_or_default().to_owned();
                let data = field("data: ").unwrap_or_default().to_owned();
                self.read = rest.to_owned();
                return Some((event, data));
            }
            let frame = self.body.frame().await?.ok()?;
            let data = frame.into_data().expect("data");
            self.read += std::str::from_utf8(&data).expect("UTF-8");
        }
    }
}
