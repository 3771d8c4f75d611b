//! Connections and the requests on them, on real sockets.

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use lariat_client::{Http2, from_config};
use lariat_core::describe;
use tokio::net::TcpListener;
use tokio::time;

use crate::MINUTE;
use crate::server::{Server, Speech, quiet};

/// Opens a watch, which lasts until it is dropped.
pub(crate) async fn watch(client: &Client, number: usize) -> http::Response<Body> {
    let uri = format!("/api/v1/namespaces/n{number}/pods?watch=true");
    let request = Request::get(uri)
        .body(Body::empty())
        .expect("it is a request");
    let answer = time::timeout(MINUTE, client.send(request)).await;
    answer.expect("it is answered").expect("it is answered")
}

/// Writes something, and reads the whole answer.
pub(crate) async fn write(client: &Client) {
    let request = Request::post("/api/v1/namespaces/default/configmaps");
    let request = request.body(b"{}".to_vec()).expect("it is a request");
    let answer = time::timeout(MINUTE, client.request_text(request)).await;
    assert_eq!(
        answer.expect("it is answered").expect("it is answered"),
        "{}"
    );
}

#[tokio::test]
async fn watches_do_not_keep_writes_from_a_server_that_takes_two_streams() {
    let server = Server::start(Speech::Http2(2), quiet).await;
    let client = server.client(Http2::PriorKnowledge).await;
    let mut watches = Vec::new();
    for number in 0..3 {
        watches.push(watch(&client, number).await);
        write(&client).await;
    }
    assert_eq!(
        server.connections(),
        3,
        "each has a place that watches leave"
    );
    futures::future::join_all((0..4).map(|_| write(&client))).await;
    assert!(server.connections() <= 4, "{}", server.connections());
}

#[tokio::test]
async fn more_watches_than_a_server_takes_on_a_connection_are_all_answered() {
    let server = Server::start(Speech::Http2(20), quiet).await;
    let client = server.client(Http2::PriorKnowledge).await;
    let watches = (0..60).map(|number| watch(&client, number));
    let watches = futures::future::join_all(watches).await;
    write(&client).await;
    assert_eq!(
        server.connections(),
        4,
        "eighteen and two places for others"
    );
    drop(watches);
}

#[tokio::test]
async fn a_server_that_takes_one_stream_is_served_like_one_without_http_2() {
    let server = Server::start(Speech::Http2(1), quiet).await;
    let client = server.client(Http2::PriorKnowledge).await;
    let watches = futures::future::join_all((0..5).map(|number| watch(&client, number))).await;
    write(&client).await;
    write(&client).await;
    assert_eq!(server.connections(), 6);
    drop(watches);
}

#[tokio::test]
async fn a_place_is_free_again_when_an_answer_has_been_read_or_dropped() {
    let server = Server::start(Speech::Http2(2), quiet).await;
    let client = server.client(Http2::PriorKnowledge).await;
    for number in 0..20 {
        drop(watch(&client, number).await);
        write(&client).await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_server_that_takes_no_streams_is_an_error_and_no_hang() {
    let server = Server::start(Speech::Http2(0), quiet).await;
    let mut config = server.config();
    config.connect_timeout = Some(std::time::Duration::from_millis(200));
    let client = from_config(config, Http2::PriorKnowledge).await.unwrap();
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let error = time::timeout(MINUTE, client.request_text(request)).await;
    let error = describe(&error.expect("it fails").unwrap_err());
    assert!(error.contains("allows no streams"), "{error}");
}

/// Refuses every second stream of the first connection without looking at it, and answers with what was sent.
async fn refuse(stream: tokio::net::TcpStream, is_first: bool) {
    let mut connection = h2::server::handshake(stream).await.expect("it is HTTP/2");
    let mut count = 0;
    while let Some(Ok((mut request, mut respond))) = connection.accept().await {
        count += 1;
        if is_first && count % 2 == 0 {
            respond.send_reset(h2::Reason::REFUSED_STREAM);
            continue;
        }
        let mut body = Vec::new();
        while let Some(Ok(data)) = futures::future::poll_fn(|cx| {
            let _ = connection.poll_closed(cx);
            request.body_mut().poll_data(cx)
        })
        .await
        {
            body.extend_from_slice(&data);
        }
        let mut send = respond
            .send_response(http::Response::new(()), false)
            .expect("it is still there");
        send.send_data(body.into(), true)
            .expect("it is still there");
    }
}

#[tokio::test]
async fn what_a_server_refuses_to_look_at_is_sent_again_with_its_body() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connections = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::with(listener, move |stream| {
        let number = connections.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        refuse(stream, number == 0)
    });
    let client = server.client(Http2::PriorKnowledge).await;
    for number in 0..4 {
        let text = format!("body {number}");
        let request = Request::post("/api/v1/namespaces/default/configmaps");
        let request = request.body(text.clone().into_bytes()).unwrap();
        let answer = time::timeout(MINUTE, client.request_text(request)).await;
        assert_eq!(answer.expect("it is answered").unwrap(), text);
    }
    assert_eq!(server.connections(), 2, "the first is not used again");
}

#[tokio::test]
async fn connections_that_are_not_needed_any_more_are_closed() {
    let server = Server::start(Speech::Http2(1), quiet).await;
    let client = server.client(Http2::PriorKnowledge).await;
    let watches = futures::future::join_all((0..5).map(|number| watch(&client, number))).await;
    drop(watches);
    write(&client).await;
    assert_eq!(server.connections(), 5);
    time::pause();
    time::advance(2 * MINUTE).await;
    time::resume();
    // This one finds the others idle; the next has to open what was closed.
    write(&client).await;
    let _watches = futures::future::join_all((0..2).map(|number| watch(&client, number))).await;
    assert_eq!(server.connections(), 6);
}

/// Returns the kernel's timer of the client's end of a connection: `02` while keepalive is on.
#[cfg(target_os = "linux")]
fn timer(from: std::net::SocketAddr) -> (String, u64) {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("it is Linux");
    let local = format!("0100007F:{:04X}", from.port());
    // Established: an earlier connection from the same port may still wait for its time to end.
    let line = table.lines().find(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1) == Some(&&*local) && fields.get(3) == Some(&"01")
    });
    let field = line
        .expect("it is open")
        .split_whitespace()
        .nth(5)
        .expect("it has so many fields");
    let (kind, ticks) = field.split_once(':').expect("it has two parts");
    (
        kind.to_owned(),
        u64::from_str_radix(ticks, 16).expect("it is a number"),
    )
}

/// Connects with a client, and returns the kernel's timer once everything is acknowledged.
#[cfg(target_os = "linux")]
async fn timer_of(http2: Http2, speech: Speech) -> (String, u64) {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("the port is free");
    let sender = parking_lot::Mutex::new(Some(sender));
    let server = Server::with(listener, move |stream| {
        if let Some(sender) = sender.lock().take() {
            sender
                .send(stream.peer_addr().expect("the test waits"))
                .expect("the test waits");
        }
        crate::server::serve(stream, speech, std::sync::Arc::new(quiet))
    });
    let client = server.client(http2).await;
    let _watch = watch(&client, 0).await;
    let from = receiver.await.expect("a client connects");
    // While something is not acknowledged, which over loopback is for a moment, the timer is another one.
    loop {
        let timer = timer(from);
        if timer.0 != "01" {
            return timer;
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn silent_connections_are_tested_by_the_kernel() {
    for (http2, speech) in [
        (Http2::Negotiated, Speech::Http1),
        (Http2::Off, Speech::Http1),
        (Http2::PriorKnowledge, Speech::Http2(100)),
    ] {
        let (kind, ticks) = timer_of(http2, speech).await;
        assert_eq!(kind, "02", "{http2:?}");
        // A hundred ticks a second, as /proc says it.
        assert!(ticks <= 30 * 100, "{ticks}");
    }
}

#[tokio::test]
async fn tls_behind_an_http_url_is_named_in_the_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::with(listener, |mut stream| async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let _ = stream.read_u8().await;
        // An alert: no TLS record was found.
        let _ = stream.write_all(b"\x15\x03\x01\x00\x02\x02\x0a").await;
    });
    let client = server.client(Http2::Negotiated).await;
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let error = client.request_text(request).await.unwrap_err();
    let error = describe(&error);
    assert!(error.contains("its URL begins with https://"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_in_the_error() {
    for http2 in [Http2::Negotiated, Http2::PriorKnowledge] {
        let config = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
        let client = from_config(config, http2).await.unwrap();
        let request = Request::get("/version").body(Vec::new()).unwrap();
        let error = client.request_text(request).await.unwrap_err();
        let error = describe(&error);
        assert!(
            error.contains("cannot connect to http://127.0.0.1:1"),
            "{error}"
        );
    }
}

#[cfg(feature = "rustls-tls")]
mod tls {
    use std::sync::Arc;

    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;
    use crate::server::{listen, serve};

    /// Makes a certificate for this machine that signs itself.
    fn identity() -> (rcgen::Certificate, PrivateKeyDer<'static>) {
        let names = vec!["127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate can be made");
        let key = made
            .signing_key
            .serialize_der()
            .try_into()
            .expect("it is a status");
        (made.cert, key)
    }

    /// Starts a server that offers one protocol over TLS.
    fn start(
        listener: TcpListener,
        speech: Speech,
        identity: &(rcgen::Certificate, PrivateKeyDer<'static>),
    ) -> Server {
        let (certificate, key) = (identity.0.der().clone(), identity.1.clone_key());
        let tls = ServerConfig::builder().with_no_client_auth();
        let mut tls = tls
            .with_single_cert(vec![certificate], key)
            .expect("they belong together");
        tls.alpn_protocols = match speech {
            Speech::Http1 => vec![b"http/1.1".to_vec()],
            Speech::Http2(_) => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        Server::with(listener, move |stream| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, speech, Arc::new(quiet)).await;
                }
            }
        })
    }

    #[tokio::test]
    async fn a_server_is_asked_again_which_protocol_it_speaks() {
        let identity = identity();
        let mut server = start(listen(0), Speech::Http2(100), &identity);
        let url = format!("https://127.0.0.1:{}", server.port);
        let mut config = kube::Config::new(url.parse().unwrap());
        config.root_cert = Some(vec![identity.0.der().to_vec()]);
        let client = from_config(config, Http2::Negotiated).await.unwrap();
        for speech in [Speech::Http1, Speech::Http2(100), Speech::Http1] {
            for _ in 0..3 {
                write(&client).await;
            }
            let port = server.stop().await;
            server = start(listen(port), speech, &identity);
            // What was open is noticed to be gone by a request.
            let request = Request::get("/version").body(Vec::new()).unwrap();
            let _ = client.request_text(request).await;
        }
        write(&client).await;
    }

    #[tokio::test]
    async fn three_watches_and_writes_share_the_connection_that_asked() {
        for (speech, expected) in [(Speech::Http2(250), 1), (Speech::Http1, 4)] {
            let identity = identity();
            let server = start(listen(0), speech, &identity);
            let url = format!("https://127.0.0.1:{}", server.port);
            let mut config = kube::Config::new(url.parse().unwrap());
            config.root_cert = Some(vec![identity.0.der().to_vec()]);
            let client = from_config(config, Http2::Negotiated).await.unwrap();
            let watches = (0..3).map(|number| watch(&client, number));
            let watches = futures::future::join_all(watches).await;
            write(&client).await;
            assert_eq!(server.connections(), expected);
            drop(watches);
        }
    }
}

#[tokio::test]
async fn answers_are_read_to_their_end() {
    let server = Server::start(Speech::Http2(10), |_| {
        crate::server::whole(200, &"x".repeat(5_000_000))
    })
    .await;
    let client = server.client(Http2::PriorKnowledge).await;
    let request = Request::get("/api/v1/pods").body(Body::empty()).unwrap();
    let answer = client.send(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body.len(), 5_000_000);
}
