//! The cluster's HTTP front end: compresses lists, can pause and pace watches.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use flate2::{Compression, write::GzEncoder};
use futures::stream;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use lariat_cluster::{ClusterService, ResponseBody};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service;

use super::flow::{self, Flow, Gate};
use crate::pods::stamp::Stamper;

/// Answers smaller than this are not compressed, as on a real server.
const GZIP_FROM: usize = 128 * 1024;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Serves a cluster over HTTP/1.1 and HTTP/2, until it is dropped.
pub(super) struct Front {
    address: SocketAddr,
    flow: watch::Sender<Flow>,
    loads: Arc<AtomicUsize>,
    _accepting: JoinSet<()>,
}

/// What every connection needs.
struct Door {
    cluster: ClusterService,
    flow: watch::Receiver<Flow>,
    /// How many lists and watches of pods were asked for.
    loads: Arc<AtomicUsize>,
    stamper: Stamper,
}

impl Front {
    pub(super) async fn listen(cluster: ClusterService) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let flow = watch::Sender::new(Flow::Free);
        let loads = Arc::<AtomicUsize>::default();
        let door = Arc::new(Door {
            cluster,
            flow: flow.subscribe(),
            loads: Arc::clone(&loads),
            stamper: Stamper::new(),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, door));
        Ok(Self {
            address,
            flow,
            loads,
            _accepting: accepting,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns how many lists and watches of pods were asked for so far.
    pub(super) fn loads(&self) -> usize {
        self.loads.load(Ordering::Relaxed)
    }

    /// Sets how watch data is sent; while it is held back, new requests wait too.
    pub(super) fn set(&self, flow: Flow) {
        self.flow.send_replace(flow);
    }
}

async fn accept(listener: TcpListener, door: Arc<Door>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(speak(stream, Arc::clone(&door)));
    }
}

async fn speak(stream: TcpStream, door: Arc<Door>) {
    // It fails only for a connection that is gone already.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let door = Arc::clone(&door);
        async move { door.answer(request).await }
    });
    let server = auto::Builder::new(TokioExecutor::new());
    // Clients break off when they have seen enough.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

impl Door {
    async fn answer(self: Arc<Self>, mut request: Request<Incoming>) -> io::Result<Response<Body>> {
        // Those of one pod have its name at the end.
        if request.method() == Method::GET && request.uri().path().ends_with("/pods") {
            self.loads.fetch_add(1, Ordering::Relaxed);
        }
        // A list or a new watch would otherwise show the held changes too early.
        flow::released(&mut self.flow.clone()).await;
        let wants_gzip = takes_gzip(request.headers());
        // What the cluster itself compresses could not be stamped.
        request.headers_mut().remove(ACCEPT_ENCODING);
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query
            .split('&')
            .any(|part| part.starts_with("watch=") && part != "watch=false");
        let response = self.cluster.clone().call(request).await?;
        let (mut parts, body) = response.into_parts();
        if is_watch {
            return Ok(Response::from_parts(parts, self.stream(body)));
        }
        let mut whole = body.collect().await?.to_bytes();
        if wants_gzip && whole.len() >= GZIP_FROM {
            whole = gzip(&whole)?;
            parts
                .headers
                .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        // Set again, since the length of the cluster is that of the plain body.
        parts.headers.insert(CONTENT_LENGTH, whole.len().into());
        let body = Full::new(whole).map_err(|never: Infallible| match never {});
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }

    /// Passes a watch on, line by line.
    fn stream(self: Arc<Self>, body: ResponseBody) -> Body {
        let gate = Gate::new(self.flow.clone());
        let frames = stream::unfold((self, body, gate), async |(door, mut body, mut gate)| {
            let frame = body.frame().await?;
            let is_paced = gate.pass().await;
            // The time is read only at a pace; the lines of the storm are not searched for it.
            let ready = if is_paced {
                frame.map(|frame| frame.map_data(|line| door.stamped(line)))
            } else {
                frame
            };
            Some((ready, (door, body, gate)))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// Writes the present time into a line that has a place for it.
    fn stamped(&self, line: Bytes) -> Bytes {
        let mut stamped = BytesMut::from(line);
        self.stamper.stamp(&mut stamped);
        stamped.freeze()
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get_all(ACCEPT_ENCODING).iter();
    encodings
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("gzip"))
}

fn gzip(bytes: &[u8]) -> io::Result<Bytes> {
    // The level of a real server.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(1));
    io::Write::write_all(&mut encoder, bytes)?;
    Ok(encoder.finish()?.into())
}
