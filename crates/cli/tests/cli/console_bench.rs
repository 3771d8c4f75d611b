//! A cluster with a console, and requests to both.

use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::ChildStderr;
use tokio::time::timeout;

use crate::program::{Served, TIMEOUT, lariat};

pub(crate) const JSON: &str = "Content-Type: application/json\r\n";

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// A cluster with a console.
pub(crate) struct Bench {
    pub(crate) served: Served,
    /// Address and port of the console.
    pub(crate) console: String,
    /// The program writes there, and must find it open.
    _stderr: Lines<BufReader<ChildStderr>>,
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

impl Bench {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let always = [
            "cluster",
            "--listen",
            "127.0.0.1:0",
            "--console",
            "127.0.0.1:0",
        ];
        let mut served = Served::of(&mut lariat(&[&always, arguments].concat())).await;
        let mut lines = BufReader::new(served.child.stderr.take().expect("it is piped")).lines();
        let console = loop {
            let line = timeout(TIMEOUT, lines.next_line()).await;
            let line = line.expect("it says something").expect("it can be read");
            let line = line.expect("it says where the console is");
            if let Some(url) = line.strip_prefix("console: http://") {
                break url.trim_end_matches('/').to_owned();
            }
        };
        Self {
            served,
            console,
            _stderr: lines,
        }
    }

    pub(crate) fn cluster(&self) -> &str {
        self.served.url.strip_prefix("http://").expect("it is HTTP")
    }

    /// Asks the console.
    pub(crate) async fn console(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let answer = ask(&self.console, method, path, headers, body).await;
        answer.expect("it answers")
    }

    pub(crate) async fn state(&self) -> Json {
        let answer = self.console("GET", "/api/v1/state", "", "").await;
        assert_eq!(answer.code, 200, "{answer:?}");
        answer.json()
    }

    /// Switches a fault on, and returns its id.
    pub(crate) async fn add(&self, path: &str, fault: Json) -> String {
        let answer = self.console("POST", path, JSON, &fault.to_string()).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        answer.json()["id"].as_str().expect("a text").to_owned()
    }

    pub(crate) async fn remove(&self, id: &str) {
        let path = format!("/api/v1/faults/{id}");
        let answer = self.console("DELETE", &path, "", "").await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }

    pub(crate) async fn once(&self, what: &str) {
        let answer = self
            .console("POST", &format!("/api/v1/{what}"), "", "")
            .await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }

    /// Asks the cluster, and returns the status code; `None` if the connection breaks.
    pub(crate) async fn code(&self, path: &str) -> Option<u16> {
        self.code_of(path, "shop/1").await
    }

    pub(crate) async fn code_of(&self, path: &str, client: &str) -> Option<u16> {
        let agent = format!("User-Agent: {client}\r\n");
        let answer = ask(self.cluster(), "GET", path, &agent, "").await;
        answer.map(|answer| answer.code)
    }

    pub(crate) async fn create(&self, name: &str) -> Json {
        let object = json!({"metadata": {"name": name}});
        let path = "/api/v1/namespaces/default/configmaps";
        let answer = ask(self.cluster(), "POST", path, JSON, &object.to_string()).await;
        let answer = answer.expect("it answers");
        assert_eq!(answer.code, 201, "{answer:?}");
        answer.json()
    }

    /// Opens a watch that has begun.
    pub(crate) async fn watch(&self, path: &str) -> TcpStream {
        let headers = "User-Agent: shop/1\r\n";
        let mut stream = send(self.cluster(), "GET", path, headers, "").await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.expect("it answers");
        assert_eq!(&answer, b"HTTP/1.1 200");
        stream
    }
}

pub(crate) async fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let host = if headers.contains("Host:") {
        String::new()
    } else {
        format!("Host: {address}\r\n")
    };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("it reads");
    stream
}

/// Sends a request and reads the answer; `None` if there is none.
pub(crate) async fn ask(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<Answer> {
    let text = rest(send(address, method, path, headers, body).await).await;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        code,
        head: head.to_lowercase(),
        body: body.to_owned(),
    })
}

/// Reads to the end, or until the connection breaks.
pub(crate) async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await;
    let _broken = read.expect("it ends");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until a text comes.
pub(crate) async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    loop {
        let so_far = String::from_utf8_lossy(&read).into_owned();
        if so_far.contains(text) {
            return so_far;
        }
        let more = timeout(TIMEOUT, stream.read_buf(&mut read)).await;
        let more = more.unwrap_or_else(|_| panic!("{text} does not come: {so_far}"));
        assert_ne!(more.expect("it can be read"), 0, "it goes on: {so_far}");
    }
}

pub(crate) fn find<'a>(items: &'a Json, member: &str, value: &str) -> &'a Json {
    let items = items.as_array().expect("a list");
    let found = items.iter().find(|item| item[member] == value);
    found.unwrap_or_else(|| panic!("no {member} {value} in {items:?}"))
}
