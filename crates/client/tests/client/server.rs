//! A server on a socket, whose connections do what the test says.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use lariat_client::{Http2, from_config};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;
type Play = dyn Fn(&Request<Incoming>) -> Answer + Send + Sync;

/// Answers requests on a socket until it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

/// How a server speaks.
#[derive(Clone, Copy)]
pub(crate) enum Speech {
    Http1,
    /// HTTP/2 with so many streams on a connection.
    Http2(u32),
}

impl Server {
    /// Starts a server without TLS.
    pub(crate) async fn start(
        speech: Speech,
        play: impl Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("the port is free");
        let play: Arc<Play> = Arc::new(play);
        Self::with(listener, move |stream| {
            serve(stream, speech, Arc::clone(&play))
        })
    }

    /// Serves each connection of a listener as a function says.
    pub(crate) fn with<F>(
        listener: TcpListener,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let connections = Arc::new(AtomicUsize::new(0));
        let (port, count) = (
            listener.local_addr().expect("the socket is ours").port(),
            Arc::clone(&connections),
        );
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut served = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("the socket is ours");
                count.fetch_add(1, Ordering::Relaxed);
                served.spawn(serve(stream));
            }
        });
        Self {
            port,
            connections,
            tasks,
        }
    }

    /// Returns how many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Stops the server, and returns its port for another one.
    pub(crate) async fn stop(mut self) -> u16 {
        self.tasks.shutdown().await;
        self.port
    }

    pub(crate) fn config(&self) -> kube::Config {
        let url = format!("http://127.0.0.1:{}", self.port);
        kube::Config::new(url.parse().expect("it is a URL"))
    }

    pub(crate) async fn client(&self, http2: Http2) -> Client {
        from_config(self.config(), http2)
            .await
            .expect("it is valid")
    }
}

/// Listens on a port, which another server may have had a moment before.
pub(crate) fn listen(port: u16) -> TcpListener {
    let socket = tokio::net::TcpSocket::new_v4().expect("there are sockets");
    socket.set_reuseaddr(true).expect("the socket is ours");
    socket
        .bind(([127, 0, 0, 1], port).into())
        .expect("the port is free");
    socket.listen(64).expect("the socket is ours")
}

/// Answers the requests of a connection until it ends.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    speech: Speech,
    play: Arc<Play>,
) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let play = Arc::clone(&play);
        async move { Ok::<_, Infallible>(play(&request)) }
    });
    let io = TokioIo::new(stream);
    // However it ends: clients leave as they like.
    match speech {
        Speech::Http1 => {
            let mut server = hyper::server::conn::http1::Builder::new();
            let _ = server.keep_alive(true).serve_connection(io, answer).await;
        }
        Speech::Http2(streams) => {
            let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            server.max_concurrent_streams(streams);
            let _ = server.serve_connection(io, answer).await;
        }
    }
}

pub(crate) fn whole(status: u16, body: &str) -> Answer {
    let body = Full::new(Bytes::from(body.to_owned())).boxed();
    let mut answer = Response::new(body);
    *answer.status_mut() = status.try_into().expect("it is a status");
    let json = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

/// A watch on which nothing happens.
pub(crate) fn silent() -> Answer {
    let nothing = futures::stream::pending::<Result<_, Infallible>>();
    let body = BodyExt::boxed(StreamBody::new(nothing));
    let mut answer = Response::new(Empty::new().boxed());
    *answer.body_mut() = body;
    answer
}

/// Answers watches with silence and everything else with an empty object.
pub(crate) fn quiet(request: &Request<Incoming>) -> Answer {
    if request.uri().query().unwrap_or_default().contains("watch=") {
        silent()
    } else {
        whole(200, "{}")
    }
}

/// Starts servers behind one address: the connection of each number leads to one.
pub(crate) fn balancer(
    speech: Speech,
    play: impl Fn(usize, &Request<Incoming>) -> Answer + Send + Sync + 'static,
) -> Server {
    let (play, number) = (Arc::new(play), AtomicUsize::new(0));
    Server::with(listen(0), move |stream| {
        let (play, number) = (Arc::clone(&play), number.fetch_add(1, Ordering::Relaxed));
        let play = move |request: &Request<Incoming>| play(number, request);
        serve(stream, speech, Arc::new(play))
    })
}

pub(crate) fn is_watch(request: &Request<Incoming>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.contains("watch=true")
}
