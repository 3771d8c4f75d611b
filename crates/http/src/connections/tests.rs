use std::net::SocketAddr;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

use super::*;

/// A server with few places.
struct Server {
    address: SocketAddr,
    /// Receives a value for each request of `/slow` that has reached its handler.
    entered: mpsc::UnboundedReceiver<()>,
    release: Arc<Notify>,
    stopping: CancellationToken,
    serving: JoinSet<()>,
}

impl Server {
    async fn start(capacity: Capacity) -> Self {
        let (enter, entered) = mpsc::unbounded_channel();
        let release = Arc::new(Notify::new());
        let held = Arc::clone(&release);
        let slow = move || async move {
            enter.send(()).unwrap();
            held.notified().await;
        };
        let router = Router::new()
            .route("/livez", get(|| async { "alive" }))
            .route("/fast", get(|| async { "fast" }))
            .route("/slow", get(slow));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = CancellationToken::new();
        let stop = stopping.clone();
        let served = move |stream, place| {
            let (router, stop) = (router.clone(), stop.clone());
            async move { requests("a test", watched(stream), router, place, stop).await }
        };
        let table = Table::new(capacity);
        let stopped = stopping.clone();
        let mut serving = JoinSet::new();
        serving.spawn(async move { accept("a test", listener, table, stopped, served).await });
        Self {
            address,
            entered,
            release,
            stopping,
            serving,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request on a connection of its own; returns the status line, or nothing if it was closed.
    async fn get(&self, path: &str) -> String {
        let mut stream = self.connect().await;
        send(&mut stream, path).await;
        status(&mut stream).await
    }

    async fn stop(mut self) {
        self.release.notify_waiters();
        self.stopping.cancel();
        self.serving.join_next().await.unwrap().unwrap();
    }
}

async fn send(stream: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

async fn status(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') {
        let mut piece = [0; 256];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
        }
    }
    let line = answer.split(|byte| *byte == b'\r').next();
    String::from_utf8_lossy(line.unwrap_or_default()).into_owned()
}

#[tokio::test]
async fn silent_connections_keep_no_probe_waiting() {
    let server = Server::start(Capacity {
        requests: 3,
        probes: 1,
    })
    .await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(server.connect().await);
    }
    for _ in 0..3 {
        assert_eq!(server.get("/livez").await, "HTTP/1.1 200 OK");
        assert_eq!(server.get("/fast").await, "HTTP/1.1 200 OK");
    }
    // The first were closed for those that came later.
    assert_eq!(status(&mut silent[0]).await, "");
    server.stop().await;
}

#[tokio::test]
async fn probe_is_answered_while_all_connections_are_busy() {
    let mut server = Server::start(Capacity {
        requests: 2,
        probes: 1,
    })
    .await;
    let mut busy = [server.connect().await, server.connect().await];
    for stream in &mut busy {
        send(stream, "/slow").await;
        server.entered.recv().await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(server.get("/livez").await, "HTTP/1.1 200 OK");
        let refused = server.get("/fast").await;
        assert_eq!(refused, "HTTP/1.1 503 Service Unavailable");
    }
    server.release.notify_one();
    server.release.notify_one();
    for stream in &mut busy {
        assert_eq!(status(stream).await, "HTTP/1.1 200 OK");
    }
    assert_eq!(server.get("/fast").await, "HTTP/1.1 200 OK");
    server.stop().await;
}

#[cfg(feature = "tls")]
#[tokio::test(start_paused = true)]
async fn tls_connection_ends_when_the_client_does_not_read() {
    let (acceptor, connector) = tls();
    let (ours, theirs) = tokio::io::duplex(4_096);
    // The response fits into the buffer of TLS, so that only the flush waits for the client.
    let router = Router::new().route("/large", get(|| async { "x".repeat(16 << 10) }));
    let place = Table::new(CAPACITY)
        .admit(std::net::Ipv4Addr::LOCALHOST.into())
        .unwrap();
    let serving = async {
        let stream = acceptor.accept(WriteTimeout::new(ours, STALLED)).await;
        requests(
            "a test",
            stream.unwrap(),
            router,
            place,
            CancellationToken::new(),
        )
        .await;
    };
    let client = async {
        let name = "localhost".try_into().unwrap();
        let mut stream = connector.connect(name, theirs).await.unwrap();
        let request = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        stream.flush().await.unwrap();
        stream
    };
    // The client keeps its end open, and reads nothing.
    let ended = time::timeout(2 * STALLED, async { tokio::join!(serving, client) });
    assert!(ended.await.is_ok(), "the connection is still open");
}

/// Returns a server and a client that trust each other.
#[cfg(feature = "tls")]
fn tls() -> (tokio_rustls::TlsAcceptor, tokio_rustls::TlsConnector) {
    use rustls::pki_types::PrivateKeyDer;

    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let chain = vec![certificate.der().clone()];
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server).into(), Arc::new(client).into())
}
