//! Calls webhooks, over HTTPS.
//!
//! Each call has a connection of its own. Texts of errors are those of Go's HTTP client.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use lariat_apimachinery::client_config::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::verifier::Bundle;
use super::{PostError, services, verifier};
use crate::server::Server;

/// Whether webhooks are called.
pub(crate) const IS_BUILT: bool = true;

/// The longest answer of a webhook, in bytes: as much as a client may send.
const LONGEST_ANSWER: usize = 3 * 1024 * 1024;

/// The destination of a call.
struct Target {
    /// The host and the port of the URL.
    host: String,
    port: u16,
    path: String,
    /// The address of the host, if it is not found by its name.
    address: Option<SocketAddr>,
}

/// Posts a review and returns the body of the answer.
pub(crate) async fn post(
    server: &Server,
    client: &ClientConfig,
    timeout: Duration,
    body: Vec<u8>,
) -> Result<Vec<u8>, PostError> {
    let mut target = Target::of(client).map_err(PostError::Client)?;
    // As in Go, where the client is made before it connects.
    let bundle = Bundle::read(&client.authorities).map_err(PostError::Client)?;
    let url = target.url(timeout);
    let failed = |reason: String| PostError::Call(format!("Post {url:?}: {reason}"));
    if let Some((namespace, name)) = &client.service {
        let found = services::address(server, namespace, name, client.port);
        target.address = Some(found.map_err(failed)?);
    }
    let exchange = exchange(bundle, &target, timeout, body);
    let answered = time::timeout(timeout, exchange).await;
    let answer = answered
        .unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
        .map_err(failed)?;
    if answer.code.is_success() {
        return Ok(answer.body.into());
    }
    Err(PostError::Call(refused(&answer)))
}

impl Target {
    fn of(client: &ClientConfig) -> Result<Self, String> {
        if let Some((namespace, name)) = &client.service {
            return Ok(Self {
                host: format!("{name}.{namespace}.svc"),
                port: client.port,
                path: client.path.clone(),
                address: None,
            });
        }
        let url = client.url.as_deref().unwrap_or_default();
        let unparsable = || format!("Unparsable URL: {url:?}");
        let uri: Uri = url.parse().map_err(|_| unparsable())?;
        let host = uri.host().ok_or_else(unparsable)?;
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(443),
            // A query or a fragment is refused when the webhook is configured.
            path: uri.path().to_owned(),
            address: None,
        })
    }

    /// Returns the host with its port, as URLs write it.
    fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn path_and_query(&self, timeout: Duration) -> String {
        // Go's client sends its timeout along.
        format!("{}?timeout={}s", cleaned(&self.path), timeout.as_secs())
    }

    fn url(&self, timeout: Duration) -> String {
        format!(
            "https://{}{}",
            self.authority(),
            self.path_and_query(timeout)
        )
    }

    async fn connect(&self) -> Result<TcpStream, String> {
        let connected = match self.address {
            Some(address) => TcpStream::connect(address).await,
            None => {
                // An IPv6 address has brackets only in a URL.
                let host = self.host.trim_matches(['[', ']']);
                TcpStream::connect((host, self.port)).await
            }
        };
        let shown = match self.address {
            Some(address) => address.to_string(),
            None => self.authority(),
        };
        let stream = connected.map_err(|error| format!("dial tcp {shown}: {}", dialed(&error)))?;
        // A review is one small piece, which should go at once.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

/// Cleans a path as Go's client does, which joins it to `/`: `//a/../b/` becomes `/b`.
fn cleaned(path: &str) -> String {
    let mut kept = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Connects, sends, and reads the answer to its end.
async fn exchange(
    bundle: Bundle,
    target: &Target,
    timeout: Duration,
    body: Vec<u8>,
) -> Result<Answered, String> {
    let stream = target.connect().await?;
    let config = verifier::config(bundle)?;
    let name = target.host.trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await;
    let stream = stream.map_err(|error| verifier::describe(&error, &target.host))?;
    let request = Request::post(target.path_and_query(timeout))
        .header(header::HOST, target.authority())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| error.to_string())?;
    send(stream, request).await
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Answered, String> {
    let opened = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| closed(&error))?;
    let exchange = async move {
        let answer = sender.send_request(request).await;
        read(answer.map_err(|error| closed(&error))?).await
    };
    let (exchange, connection) = (std::pin::pin!(exchange), std::pin::pin!(connection));
    match select(exchange, connection).await {
        Either::Left((answer, _)) => answer,
        // What was received before the end is still to be read.
        Either::Right((_, exchange)) => exchange.await,
    }
}

async fn read(answer: http::Response<Incoming>) -> Result<Answered, String> {
    let (parts, body) = answer.into_parts();
    let whole = Limited::new(body, LONGEST_ANSWER).collect().await;
    let whole = whole.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(_) => "unexpected EOF".to_owned(),
        Err(_) => "the answer is too long".to_owned(),
    })?;
    let media_type = parts.headers.get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    Ok(Answered {
        code: parts.status,
        is_text: media_type.is_some_and(|text| text.starts_with("text/")),
        body: whole.to_bytes(),
    })
}

/// The answer of a webhook.
struct Answered {
    code: StatusCode,
    is_text: bool,
    body: Bytes,
}

/// Returns the error of an answer that is one.
///
/// Source: `NewGenericServerResponse` in `k8s.io/apimachinery/pkg/api/errors`.
fn refused(answer: &Answered) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let shown = match text.trim() {
        text if answer.is_text && !text.is_empty() => text,
        _ => "unknown",
    };
    let said = match answer.code.as_u16() {
        401 => "the server has asked for the client to provide credentials",
        403 => return shown.to_owned(),
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            return format!(
                "an error on the server ({shown:?}) has prevented the request from succeeding"
            );
        }
        400 => "the server rejected our request for an unknown reason",
        409 => "the server reported a conflict",
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    said.to_owned()
}

fn closed(error: &hyper::Error) -> String {
    let cause =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let kind = cause.map(io::Error::kind);
    let is_end = error.is_incomplete_message() || error.is_canceled() || error.is_closed();
    match kind {
        Some(io::ErrorKind::UnexpectedEof) => "EOF".to_owned(),
        None if is_end => "EOF".to_owned(),
        Some(io::ErrorKind::ConnectionReset) => "read: connection reset by peer".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns Go's error for a connection that could not be made.
fn dialed(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::ConnectionReset => "read: connection reset by peer".to_owned(),
        _ => error.to_string(),
    }
}
