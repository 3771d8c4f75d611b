//! A client of the service: one connection for each request.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    headers: Vec<(&'static str, String)>,
}

/// An answer that is read.
pub(crate) struct QueryResult {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl QueryResult {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|it| it.to_str().expect("text"));
        value.unwrap_or_default()
    }

    /// Returns the names of the objects of a list, without those that every namespace has.
    pub(crate) fn names(&self) -> Vec<String> {
        let json = self.json();
        let objects = json["objects"].as_array().expect("objects");
        let names = objects.iter().map(|it| it["metadata"]["name"].as_str());
        let names = names.map(|name| name.expect("a name").to_owned());
        names.filter(|name| name != "kube-root-ca.crt").collect()
    }

    /// Checks that it is a `Status`, and returns its message.
    pub(crate) fn refused(&self, code: u16) -> String {
        let json = self.json();
        assert_eq!(
            (self.status, &json["kind"]),
            (code, &"Status".into()),
            "{json}"
        );
        assert_eq!(json["code"], code);
        assert_eq!(json["status"], "Failure");
        assert_eq!(self.header("content-type"), "application/json");
        json["message"].as_str().expect("a message").to_owned()
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let headers = Vec::new();
        Self { address, headers }
    }

    /// Sends a header with each request.
    pub(crate) fn with(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut client = self.clone();
        client.headers.push((name, value.into()));
        client
    }

    pub(crate) fn token(&self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    pub(crate) async fn get(&self, path: &str) -> QueryResult {
        self.send(Method::GET, path).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str) -> QueryResult {
        let (response, _connection) = self.begin(method, path).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body");
        QueryResult {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.to_bytes().to_vec(),
        }
    }

    /// Begins a watch.
    pub(crate) async fn watch(&self, path: &str) -> Stream {
        let (response, connection) = self.begin(Method::GET, path).await;
        Stream {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.into_body(),
            read: String::new(),
            id: String::new(),
            _connection: connection,
        }
    }

    async fn begin(&self, method: Method, path: &str) -> (Response<Incoming>, JoinSet<()>) {
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
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        (response, connections)
    }
}

/// A watch that is read; dropping it closes the connection.
pub(crate) struct Stream {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    read: String,
    /// What the client sends as `Last-Event-ID` next.
    pub(crate) id: String,
    _connection: JoinSet<()>,
}

impl Stream {
    /// Returns the next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Json> {
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

    /// Returns the next event as its type and the name of its object.
    pub(crate) async fn change(&mut self) -> String {
        let event = self.next().await.expect("it goes on");
        let text = |json: &Json| json.as_str().unwrap_or("?").to_owned();
        let name = text(&event["object"]["metadata"]["name"]);
        format!("{} {name}", text(&event["type"]))
    }

    /// Returns the lines up to an empty one.
    pub(crate) async fn block(&mut self) -> Option<String> {
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
