//! Driven connections: a watch over HTTP/1.1 whose reader drives the connection.
//!
//! hyper's client gives each connection a task, which forwards the answer chunk by chunk and is woken when a chunk was
//! taken. Each event of a watch is a chunk, so it costs two task switches, often between threads. Here the task that
//! reads the answer drives the connection too: one read of the socket returns all events that have arrived.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures::future;
use futures::task::AtomicWaker;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection};
use kube::client::Body;

use crate::socket::Socket;

/// The body of an answer with its connection; dropping it closes the connection.
pub(crate) struct DrivenBody {
    body: Incoming,
    driver: Driver,
}

/// A connection that is polled by the task that reads from it.
struct Driver {
    /// `None` once the connection has ended.
    connection: Option<Connection<Socket, Body>>,
    gate: Arc<WakeGate>,
    waker: Waker,
}

/// Wakes the reading task, except while it polls the connection.
///
/// Otherwise a chunk that arrives within a poll would wake the task that has it already.
struct WakeGate {
    state: AtomicU8,
    task: AtomicWaker,
}

const IDLE: u8 = 0;
const POLLING: u8 = 1;
const WOKEN: u8 = 2;

/// Sends a request on a connection of its own.
pub(crate) async fn send(
    socket: Socket,
    request: Request<Body>,
) -> Result<Response<DrivenBody>, hyper::Error> {
    let (mut sender, connection) = http1::handshake(socket).await?;
    let mut driver = Driver::new(connection);
    let mut sent = std::pin::pin!(sender.send_request(in_origin_form(request)));
    let answer = future::poll_fn(|cx| driver.poll(cx, |cx| sent.as_mut().poll(cx))).await?;
    Ok(answer.map(|body| DrivenBody { body, driver }))
}

/// Sets the `Host` header and reduces the URI to its path.
///
/// A server that is not a proxy expects this form.
fn in_origin_form(mut request: Request<Body>) -> Request<Body> {
    let uri = request.uri();
    if let Some(authority) = uri.authority()
        && let Ok(host) = HeaderValue::from_str(without_user(authority.as_str()))
    {
        let path = uri.path_and_query().cloned();
        request.headers_mut().entry(header::HOST).or_insert(host);
        *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
    }
    request
}

fn without_user(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

impl Driver {
    fn new(connection: Connection<Socket, Body>) -> Self {
        let gate = Arc::new(WakeGate {
            state: AtomicU8::new(IDLE),
            task: AtomicWaker::new(),
        });
        Self {
            connection: Some(connection),
            waker: Waker::from(Arc::clone(&gate)),
            gate,
        }
    }

    /// Polls for data from the connection, and drives the connection if there is none.
    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.gate.task.register(cx.waker());
        self.gate.state.store(POLLING, Ordering::Release);
        // Only the connection makes data available, so this poll needs no waker.
        let mut quietly = Context::from_waker(Waker::noop());
        let mut polled = read(&mut quietly);
        if polled.is_pending() {
            self.drive();
            polled = read(&mut quietly);
        }
        let state = self.gate.state.swap(IDLE, Ordering::AcqRel);
        // Woken while polling: the connection has more to do, or the budget of the task is used up.
        if polled.is_pending() && state == WOKEN {
            cx.waker().wake_by_ref();
        }
        polled
    }

    fn drive(&mut self) {
        if let Some(connection) = &mut self.connection {
            let mut cx = Context::from_waker(&self.waker);
            // The body reports the error of the connection too.
            if Pin::new(connection).poll(&mut cx).is_ready() {
                self.connection = None;
            }
        }
    }
}

impl Wake for WakeGate {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken =
            self.state
                .compare_exchange(POLLING, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        // Polling: the state records the wake, and the polling task sees it at the end of the poll.
        if woken == Err(IDLE) {
            self.task.wake();
        }
    }
}

impl HttpBody for DrivenBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, driver } = self.get_mut();
        driver.poll(cx, |cx| Pin::new(&mut *body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use kube::Config;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::dial;
    use crate::socket::Offer;

    /// Connects to a server played by the test, and sends a watch.
    async fn watch() -> (Response<DrivenBody>, TcpStream, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user@{}", listener.local_addr().unwrap());
        let config = Config::new(url.parse().unwrap());
        let [dialer, _] = dial::dialers(&config, [Offer::Http1, Offer::Http1]).unwrap();
        let socket = dialer.dial().await.unwrap();
        let request = Request::get(format!("{url}/api/v1/pods?watch=true"))
            .body(Body::empty())
            .unwrap();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            (
                stream,
                String::from_utf8_lossy(&head[..length]).into_owned(),
            )
        };
        let (answer, (stream, head)) = tokio::join!(send(socket, request), server);
        (answer.unwrap(), stream, head)
    }

    /// Reads all frames of each poll; returns the number of polls and of frames.
    async fn read(body: &mut DrivenBody, most: usize) -> (usize, usize) {
        let (mut polls, mut frames) = (0, 0);
        future::poll_fn(|cx| {
            polls += 1;
            while frames < most {
                let frame = std::task::ready!(Pin::new(&mut *body).poll_frame(cx));
                frame.unwrap().unwrap();
                frames += 1;
            }
            Poll::Ready(())
        })
        .await;
        (polls, frames)
    }

    #[tokio::test]
    async fn what_comes_together_is_read_together() {
        let (answer, mut server, head) = watch().await;
        assert!(
            head.starts_with("GET /api/v1/pods?watch=true HTTP/1.1\r\n"),
            "{head}"
        );
        let host = format!("host: {}", server.local_addr().unwrap());
        assert!(head.contains(&host), "{head}");
        let mut body = answer.into_body();
        let events: String = (0..100).map(|_| "5\r\nhello\r\n").collect();
        server.write_all(events.as_bytes()).await.unwrap();
        let (polls, frames) = read(&mut body, 100).await;
        assert_eq!(frames, 100);
        // One poll that waits, and one or two for what the socket had.
        assert!(polls <= 4, "polled {polls} times");
        server.write_all(b"0\r\n\r\n").await.unwrap();
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn one_chunk_wakes_once() {
        let (answer, mut server, _) = watch().await;
        let mut body = answer.into_body();
        for _ in 0..20 {
            let one = async {
                // After the first poll, which finds nothing.
                tokio::task::yield_now().await;
                server.write_all(b"5\r\nhello\r\n").await.unwrap();
            };
            let ((polls, frames), ()) = tokio::join!(read(&mut body, 1), one);
            assert_eq!(frames, 1);
            // `join` polls both when one is woken.
            assert!(polls <= 4, "polled {polls} times");
        }
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_an_error_and_the_end() {
        let (answer, mut server, _) = watch().await;
        let mut body = answer.into_body();
        server.write_all(b"5\r\nhello\r\n5\r\nhel").await.unwrap();
        drop(server);
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "hello");
        let mut rest = Vec::new();
        let error = loop {
            match body.frame().await {
                Some(Ok(frame)) => rest.push(frame),
                Some(Err(error)) => break error,
                None => panic!("it looks complete"),
            }
        };
        assert!(!error.to_string().is_empty());
        assert!(rest.len() <= 1, "what came of the second chunk");
    }

    #[tokio::test]
    async fn dropping_the_answer_closes_the_connection() {
        let (answer, mut server, _) = watch().await;
        drop(answer);
        assert_eq!(server.read(&mut [0; 16]).await.unwrap(), 0);
    }
}
