//! A client of a service over HTTP: one connection for each request.

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

/// A client of the service at an address.
#[derive(Debug, Clone)]
pub struct Client {
    /// Where the service listens.
    pub address: SocketAddr,
    headers: Vec<(&'static str, String)>,
}

/// A response that was read.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub text: String,
}

impl Answer {
    /// Returns the body, which is JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.text).expect("JSON")
    }

    /// Returns the value of an answer that was not refused.
    #[must_use]
    #[track_caller]
    pub fn good<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, 200, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_str(&self.text).expect("the type of the API")
    }

    /// Returns the value of a header, empty if there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|it| it.to_str().expect("text"));
        value.unwrap_or_default()
    }

    /// Returns the names of the objects of a list.
    ///
    /// Objects that every namespace has are left out.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let json = self.json();
        let objects = json["objects"].as_array().expect("objects");
        let names = objects.iter().map(|it| it["metadata"]["name"].as_str());
        let names = names.map(|name| name.expect("a name").to_owned());
        names.filter(|name| name != "kube-root-ca.crt").collect()
    }

    /// Checks that it is a `Status`, and returns its message.
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "many tests only check")]
    pub fn refused(&self, code: u16) -> String {
        assert_eq!(self.status, code, "{}", self.text);
        let json = self.json();
        assert_eq!(
            (&json["kind"], &json["code"], &json["status"]),
            (&"Status".into(), &code.into(), &"Failure".into()),
        );
        assert_eq!(self.header("content-type"), "application/json");
        json["message"].as_str().expect("a message").to_owned()
    }
}

impl Client {
    /// Creates a client that sends no headers of its own.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let headers = Vec::new();
        Self { address, headers }
    }

    /// Sends a header with each request.
    #[must_use]
    pub fn with(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut client = self.clone();
        client.headers.push((name, value.into()));
        client
    }

    /// Sends a bearer token with each request.
    #[must_use]
    pub fn token(&self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    /// Gets what a path has.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "").await
    }

    /// Posts a value as JSON.
    pub async fn post(&self, path: &str, value: &impl Serialize) -> Answer {
        let body = serde_json::to_string(value).expect("JSON");
        let client = self.with("content-type", "application/json");
        client.send(Method::POST, path, &body).await
    }

    /// Sends a request.
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
            headers: response.headers().clone(),
            body: response.into_body(),
            read: String::new(),
            id: String::new(),
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
#[derive(Debug)]
pub struct Stream {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The id of the last event.
    pub id: String,
    body: Incoming,
    read: String,
    _connection: JoinSet<()>,
}

impl Stream {
    /// Waits for the end.
    pub async fn ends(&mut self) {
        let ended = async { while self.block().await.is_some() {} };
        let ended = time::timeout(Duration::from_secs(30), ended).await;
        ended.expect("the stream ends");
    }

    /// Returns the next event as its name and its data; none at the end.
    pub async fn event(&mut self) -> Option<(String, String)> {
        let block = self.block().await?;
        let field = |name| block.lines().find_map(|line| line.strip_prefix(name));
        let of = |name| field(name).unwrap_or_default().to_owned();
        Some((of("event: "), of("data: ")))
    }

    /// Returns the data of the next event that has some, as JSON; none at the end.
    pub async fn next(&mut self) -> Option<Json> {
        loop {
            let block = self.block().await?;
            let mut data = None;
            for line in block.lines() {
                if let Some(id) = line.strip_prefix("id: ") {
                    id.clone_into(&mut self.id);
                }
                data = data.or(line.strip_prefix("data: "));
            }
            if let Some(data) = data {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    /// Returns the next event of a watch as its type and the name of its object.
    pub async fn change(&mut self) -> String {
        let event = self.next().await.expect("it goes on");
        let text = |json: &Json| json.as_str().unwrap_or("?").to_owned();
        let name = text(&event["object"]["metadata"]["name"]);
        format!("{} {name}", text(&event["type"]))
    }

    /// Returns the lines up to an empty one; none at the end.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.read.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.read = rest;
                return Some(block);
            }
            let frame = self.body.frame().await?.ok()?;
            let data = frame.into_data().expect("data");
            self.read += std::str::from_utf8(&data).expect("UTF-8");
        }
    }
}
