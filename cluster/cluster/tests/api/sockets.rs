//! The cluster over sockets: both versions of HTTP on one port.
//!
//! These run on real time, since sockets do not know of a paused one; every wait has an end.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, After, Rule};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower_service::Service;

const TIMEOUT: Duration = Duration::from_secs(20);
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=1";

/// An HTTP/2 connection with its driver.
struct Http2 {
    requests: http2::SendRequest<Full<Bytes>>,
    _driver: JoinSet<()>,
}

async fn listening() -> Cluster {
    let cluster = Cluster::builder().listen().start().await;
    cluster.expect("there is a free port")
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    let error = Cluster::builder().listen_on(address).start().await;
    let error = error.expect_err("the port is in use");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    let start = format!("cannot listen on {address}: ");
    assert!(error.to_string().starts_with(&start), "{error}");
}

async fn connect(cluster: &Cluster) -> TcpStream {
    let url = cluster.url().expect("it listens");
    let address = url.split_once("//").expect("a URL has a scheme").1;
    TcpStream::connect(address).await.expect("it listens")
}

fn request(path: &str) -> Request<Full<Bytes>> {
    let request = Request::builder()
        .uri(format!("http://localhost{path}"))
        .header("host", "localhost");
    request.body(Full::default()).expect("it is well formed")
}

impl Http2 {
    async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (requests, connection) = handshake.await.expect("it speaks HTTP/2");
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        Self {
            requests,
            _driver: driver,
        }
    }

    async fn get(&mut self, path: &str) -> Response<Incoming> {
        let answer = timeout(TIMEOUT, self.requests.send_request(request(path)));
        answer.await.expect("it answers").expect("it answers")
    }
}

async fn create(cluster: &Cluster, name: &str) {
    let object = json!({"metadata": {"name": name}}).to_string();
    let request = Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(object)))
        .expect("it is well formed");
    let answer = cluster.service().call(request).await;
    let code = answer.expect("it is answered").status();
    assert_eq!(code, StatusCode::CREATED);
}

async fn piece(body: &mut Incoming) -> Bytes {
    let frame = timeout(TIMEOUT, body.frame()).await.expect("it comes");
    let frame = frame.expect("the watch goes on");
    frame.expect("the watch goes on").into_data().expect("data")
}

#[tokio::test]
async fn many_watches_share_one_http2_connection() {
    let cluster = listening().await;
    let mut client = Http2::over(connect(&cluster).await).await;
    let mut watches = Vec::new();
    // As many as Go's server takes.
    for _ in 0..250 {
        let watch = client.get(WATCH).await;
        assert_eq!(watch.status(), StatusCode::OK);
        watches.push(watch.into_body());
    }
    create(&cluster, "a").await;
    for watch in &mut watches {
        let line = piece(watch).await;
        assert!(line.starts_with(br#"{"type":"ADDED""#), "{line:?}");
    }
    assert_eq!(cluster.connections(), 1);
    cluster.shutdown().await;
}

#[tokio::test]
async fn http1_is_served_on_the_same_port() {
    let cluster = listening().await;
    let mut driver = JoinSet::new();
    for count in 1..=2 {
        let stream = TokioIo::new(connect(&cluster).await);
        let (mut client, connection) = http1::handshake(stream).await.expect("it speaks HTTP/1");
        driver.spawn(async move { drop(connection.await) });
        for _ in 0..2 {
            let answer = timeout(TIMEOUT, client.send_request(request("/version"))).await;
            let answer = answer.expect("it answers").expect("it answers");
            assert_eq!(answer.status(), StatusCode::OK);
            let body = answer.into_body().collect().await.expect("it is complete");
            assert!(body.to_bytes().starts_with(b"{"));
        }
        assert_eq!(cluster.connections(), count);
    }
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_ends_connections_of_both_kinds_and_their_watches() {
    let cluster = listening().await;
    let mut idle = connect(&cluster).await;
    let mut client = Http2::over(connect(&cluster).await).await;
    let mut watch = client.get(WATCH).await.into_body();
    timeout(TIMEOUT, cluster.shutdown()).await.expect("it ends");
    let ended = timeout(TIMEOUT, watch.frame()).await.expect("it ends");
    assert!(ended.is_none_or(|frame| frame.is_err()));
    let mut nothing = Vec::new();
    let read = timeout(TIMEOUT, idle.read_to_end(&mut nothing)).await;
    assert!(read.expect("it ends").is_ok());
}

#[tokio::test]
async fn a_cut_watch_leaves_the_others_of_its_connection_alone() {
    let cluster = listening().await;
    let mut client = Http2::over(connect(&cluster).await).await;
    let watch = client.get(WATCH).await.into_body();
    cluster.cut_watches();
    let cut = timeout(TIMEOUT, watch.collect()).await.expect("it ends");
    assert!(cut.is_err(), "the stream is reset");
    assert_eq!(client.get("/version").await.status(), StatusCode::OK);
    assert_eq!(cluster.connections(), 1);
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_fault_that_disconnects_ends_everything_on_the_connection() {
    let cluster = listening().await;
    let mut client = Http2::over(connect(&cluster).await).await;
    let watch = client.get(WATCH).await.into_body();
    let disconnect = Rule::new(Action::Disconnect).resource("secrets").nth(1);
    cluster.faults().add(disconnect);
    let path = "/api/v1/secrets";
    let lost = timeout(TIMEOUT, client.requests.send_request(request(path)));
    assert!(lost.await.expect("it ends").is_err());
    let cut = timeout(TIMEOUT, watch.collect()).await.expect("it ends");
    assert!(cut.is_err());
    let mut next = Http2::over(connect(&cluster).await).await;
    assert_eq!(next.get(path).await.status(), StatusCode::OK);
    assert_eq!(cluster.connections(), 2);
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_lost_reply_closes_an_http1_connection() {
    let cluster = listening().await;
    cluster.faults().add(Rule::new(Action::LoseReply));
    let mut stream = connect(&cluster).await;
    let request = b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).await.expect("it is sent");
    let mut answer = Vec::new();
    // A reset or an end, but no byte.
    let ended = timeout(TIMEOUT, stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok());
    assert_eq!(answer, b"");
    cluster.shutdown().await;
}

#[tokio::test]
async fn requests_of_http_1_1_name_one_host() {
    let cluster = listening().await;
    let missing = "400 Bad Request: missing required Host header";
    for (head, code, body) in [
        ("GET /version HTTP/1.1\r\n", "400", missing),
        ("GET http://localhost/version HTTP/1.1\r\n", "400", missing),
        (
            "GET /version HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n",
            "400",
            "400 Bad Request",
        ),
        ("GET /version HTTP/1.0\r\n", "200", ""),
    ] {
        let mut stream = connect(&cluster).await;
        let request = format!("{head}\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it is sent");
        let mut answer = Vec::new();
        let ended = timeout(TIMEOUT, stream.read_to_end(&mut answer)).await;
        ended.expect("it ends").expect("it is read");
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!(answer.split(' ').nth(1), Some(code), "{answer}");
        assert!(answer.ends_with(body), "{answer}");
    }
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_body_that_is_cut_breaks_off_in_both_versions_of_http() {
    let cluster = listening().await;
    let cut = cluster.faults().add(Rule::new(Action::CutBody(10)));
    let mut stream = connect(&cluster).await;
    let get = b"GET /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(get).await.expect("it is sent");
    let mut answer = Vec::new();
    let ended = timeout(TIMEOUT, stream.read_to_end(&mut answer)).await;
    drop(ended.expect("it ends"));
    let answer = String::from_utf8_lossy(&answer);
    // One chunk of ten bytes, and not the chunk that ends a body.
    assert!(
        answer.ends_with("\r\n\r\nA\r\n{\"kind\":\"N\r\n"),
        "{answer}"
    );

    let mut client = Http2::over(connect(&cluster).await).await;
    let body = client.get("/api/v1/namespaces").await.into_body();
    let broken = timeout(TIMEOUT, body.collect()).await.expect("it ends");
    assert!(broken.is_err());
    // The connection stays.
    assert!(cluster.faults().remove(cut));
    let body = client.get("/api/v1/namespaces").await.into_body();
    let whole = timeout(TIMEOUT, body.collect()).await.expect("it ends");
    assert!(whole.is_ok());
    assert_eq!(cluster.connections(), 2);
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_request_that_is_handled_and_not_answered_leaves_its_connection_open() {
    let cluster = listening().await;
    cluster.faults().add(Rule::new(Action::NoReply).nth(1));
    let mut client = Http2::over(connect(&cluster).await).await;
    let mut requests = client.requests.clone();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { requests.send_request(request("/api/v1/secrets")).await });
    while cluster.journal().count("list", "secrets") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.get("/version").await.status(), StatusCode::OK);
    assert_eq!(waiting.try_join_next().map(|_| ()), None);
    timeout(TIMEOUT, cluster.shutdown()).await.expect("it ends");
    let answer = timeout(TIMEOUT, waiting.join_next()).await;
    let answer = answer.expect("it ends").expect("there is one");
    assert!(answer.expect("it does not panic").is_err());
}

#[tokio::test]
async fn a_watch_that_hangs_and_a_request_without_answer_do_not_hold_up_a_shutdown() {
    let cluster = listening().await;
    let faults = cluster.faults();
    faults.add(Rule::new(Action::HangWatch(After::Events(0))));
    faults.add(Rule::new(Action::NoAnswer).resource("secrets"));
    let mut client = Http2::over(connect(&cluster).await).await;
    let mut watch = client.get(WATCH).await.into_body();
    let mut requests = client.requests.clone();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { requests.send_request(request("/api/v1/secrets")).await });
    while cluster.journal().count("list", "secrets") == 0 {
        tokio::task::yield_now().await;
    }
    timeout(TIMEOUT, cluster.shutdown()).await.expect("it ends");
    let ended = timeout(TIMEOUT, watch.frame()).await.expect("it ends");
    assert!(ended.is_none_or(|frame| frame.is_err()));
    let answer = timeout(TIMEOUT, waiting.join_next()).await;
    let answer = answer.expect("it ends").expect("there is one");
    assert!(answer.expect("it does not panic").is_err());
}

#[cfg(feature = "tls")]
mod secure {
    use std::io;
    use std::sync::Arc;

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD as BASE64;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;

    /// For 127.0.0.1 and localhost, until 2126; only tests trust it.
    const CERTIFICATE: &str = include_str!("tls/localhost.crt");
    const KEY: &str = include_str!("tls/localhost.key");

    async fn secured() -> Cluster {
        let builder = Cluster::builder().tls(CERTIFICATE, KEY).listen();
        builder.start().await.expect("the certificate fits")
    }

    /// Connects as a client that trusts what the kubeconfig says.
    async fn connect_secure(
        cluster: &Cluster,
        protocol: &[u8],
    ) -> io::Result<TlsStream<TcpStream>> {
        let config = cluster.kubeconfig().expect("it listens");
        let config: serde_json::Value = serde_json::from_str(&config).expect("it is JSON");
        let entry = &config["clusters"][0]["cluster"];
        assert_eq!(entry["server"].as_str(), cluster.url().as_deref());
        let authority = entry["certificate-authority-data"].as_str().expect("given");
        let authority = BASE64.decode(authority).expect("it is base64");
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            let certificate = certificate.expect("it is a certificate");
            roots.add(certificate).expect("it is a certificate");
        }
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has them")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("127.0.0.1").expect("it is an address");
        let stream = connect(cluster).await;
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await
    }

    #[tokio::test]
    async fn https_speaks_http2_where_the_client_does() {
        let cluster = secured().await;
        assert!(cluster.url().is_some_and(|url| url.starts_with("https://")));
        let stream = connect_secure(&cluster, b"h2").await.expect("it trusts");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let mut client = Http2::over(stream).await;
        let mut watch = client.get(WATCH).await.into_body();
        create(&cluster, "a").await;
        assert!(piece(&mut watch).await.starts_with(br#"{"type":"ADDED""#));
        assert_eq!(cluster.connections(), 1);
        timeout(TIMEOUT, cluster.shutdown()).await.expect("it ends");
    }

    #[tokio::test]
    async fn a_generated_certificate_is_trusted_by_who_has_the_kubeconfig() {
        let builder = Cluster::builder().tls_generated().require_authentication();
        let cluster = builder.listen().start().await.expect("it can be made");
        let stream = connect_secure(&cluster, b"h2").await.expect("it trusts");
        let mut client = Http2::over(stream).await;
        let answer = client.get("/api/v1/namespaces").await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);

        let config = cluster.kubeconfig().expect("it listens");
        let config: serde_json::Value = serde_json::from_str(&config).expect("it is JSON");
        let token = config["users"][0]["user"]["token"].as_str();
        let mut request = request("/api/v1/namespaces");
        let value = format!("Bearer {}", token.expect("it has one"));
        let value = value.parse().expect("a token fits a header");
        request.headers_mut().insert("authorization", value);
        let answer = timeout(TIMEOUT, client.requests.send_request(request)).await;
        let answer = answer.expect("it answers").expect("it answers");
        assert_eq!(answer.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_cluster_on_all_addresses_says_how_it_is_reached() {
        let builder = Cluster::builder().tls_generated();
        let address = ([0, 0, 0, 0], 0).into();
        let cluster = builder.listen_on(address).start().await.expect("it starts");
        let url = cluster.url().expect("it listens");
        assert!(url.starts_with("https://127.0.0.1:"), "{url}");
        let stream = connect_secure(&cluster, b"h2").await.expect("it trusts");
        let mut client = Http2::over(stream).await;
        assert_eq!(client.get("/version").await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn https_speaks_http1_too() {
        let cluster = secured().await;
        let stream = connect_secure(&cluster, b"http/1.1").await;
        let stream = TokioIo::new(stream.expect("it trusts"));
        let (mut client, connection) = http1::handshake(stream).await.expect("it speaks HTTP/1");
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        let answer = timeout(TIMEOUT, client.send_request(request("/version"))).await;
        let answer = answer.expect("it answers").expect("it answers");
        assert_eq!(answer.status(), StatusCode::OK);
        cluster.shutdown().await;
    }

    #[tokio::test]
    async fn a_certificate_or_key_that_cannot_be_used_is_an_error_of_the_start() {
        let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (certificate, key) in [(CERTIFICATE, ""), (garbage, KEY), ("", KEY)] {
            let builder = Cluster::builder().tls(certificate, key).listen();
            let error = builder.start().await.expect_err("it cannot be used");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        }
        let builder = Cluster::builder().tls(CERTIFICATE, KEY);
        assert!(!format!("{builder:?}").contains("PRIVATE"));
    }
}
