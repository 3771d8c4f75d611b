//! Clients that take nothing, or send nothing: they are cut off, and no one else is.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use lariat_cluster::{Cluster, ClusterBuilder};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{self, Instant, timeout};

use crate::bench::{Bench, CONFIG_MAPS};

/// What takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// After which time clients are cut off.
const SHORT: Duration = Duration::from_millis(500);

/// How many large objects there are; they fill the buffers of any socket.
const OBJECTS: usize = 8;

const LARGE: usize = 900_000;

async fn listening(cluster: ClusterBuilder) -> Bench {
    let cluster = cluster.listen().start().await;
    Bench {
        cluster: cluster.expect("there is a free port"),
    }
}

/// Connects a client with a small buffer.
async fn connect(bench: &Bench) -> TcpStream {
    let url = bench.cluster.url().expect("it listens");
    let address = url.split_once("//").expect("a URL has a scheme").1;
    let socket = TcpSocket::new_v4().expect("there are sockets");
    socket.set_recv_buffer_size(16 * 1024).expect("it is small");
    let address = address.parse().expect("it is an address");
    socket.connect(address).await.expect("it listens")
}

async fn fill(bench: &Bench) {
    for number in 0..OBJECTS {
        let object = json!({
            "metadata": {"name": format!("large-{number:02}")},
            "data": {"large": "x".repeat(LARGE)},
        });
        let created = bench.post(CONFIG_MAPS, &object).await;
        assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    }
}

/// Opens a watch by hand, and reads nothing.
async fn watch(bench: &Bench) -> TcpStream {
    let mut stream = connect(bench).await;
    let request = format!(
        "GET {CONFIG_MAPS}?watch=1&timeoutSeconds=1000000 HTTP/1.1\r\nhost: localhost\r\n\r\n"
    );
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("it is sent");
    stream
}

/// Waits until so many clients are cut off.
async fn until_cut_off(bench: &Bench, clients: u64) {
    let cut_off = async {
        while bench.cluster.inspector().cut_off() < clients {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, cut_off).await.expect("it is cut off");
    assert_eq!(bench.cluster.inspector().cut_off(), clients);
}

async fn h2(
    bench: &Bench,
) -> (
    http2::SendRequest<BoxBody<Bytes, std::io::Error>>,
    JoinSet<()>,
) {
    let stream = TokioIo::new(connect(bench).await);
    let handshake = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(65_535)
        .handshake(stream);
    let (requests, connection) = handshake.await.expect("it speaks HTTP/2");
    let mut driver = JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    (requests, driver)
}

fn get(path: &str) -> Request<BoxBody<Bytes, std::io::Error>> {
    let request = Request::get(format!("http://localhost{path}"));
    let body = Empty::new().map_err(|never| match never {}).boxed();
    request.body(body).expect("it is well formed")
}

/// Reads a body to its end; returns how many lines there were, and whether it broke off.
async fn lines(mut body: Incoming, most: usize) -> (usize, bool) {
    let mut lines = 0;
    while lines < most {
        match timeout(TIMEOUT, body.frame()).await.expect("it goes on") {
            Some(Ok(frame)) => {
                let data = frame.into_data().unwrap_or_default();
                lines += data.iter().filter(|byte| **byte == b'\n').count();
            }
            Some(Err(_)) => return (lines, true),
            None => return (lines, false),
        }
    }
    (lines, false)
}

#[tokio::test]
async fn a_watcher_that_reads_nothing_is_cut_off_and_the_journal_says_so() {
    let bench = listening(Cluster::builder().write_timeout(SHORT)).await;
    fill(&bench).await;
    let mut unread = watch(&bench).await;
    until_cut_off(&bench, 1).await;
    let watches = || bench.cluster.inspector().watches().len();
    let gone = async {
        while watches() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, gone).await.expect("it is gone");
    let cut_off: Vec<bool> = bench
        .cluster
        .journal()
        .select()
        .verb("watch")
        .requests()
        .iter()
        .map(|request| request.cut_off)
        .collect();
    assert_eq!(cut_off, [true]);
    let mut rest = Vec::new();
    let read = timeout(TIMEOUT, unread.read_to_end(&mut rest)).await;
    assert!(read.expect("it has ended").is_err(), "it is reset");
}

#[tokio::test]
async fn a_watcher_that_reads_slowly_gets_everything() {
    let bench = listening(Cluster::builder().write_timeout(SHORT)).await;
    fill(&bench).await;
    let mut slow = watch(&bench).await;
    let mut buffer = vec![0; 64 * 1024];
    let (mut read, all) = (0, OBJECTS / 2 * LARGE);
    while read < all {
        time::sleep(Duration::from_millis(20)).await;
        let next = timeout(TIMEOUT, slow.read(&mut buffer)).await;
        let bytes = next.expect("it goes on").expect("it is not cut off");
        assert!(bytes > 0, "it goes on after {read} bytes");
        read += bytes;
    }
    assert_eq!(bench.cluster.inspector().cut_off(), 0);
}

#[tokio::test]
async fn a_stream_that_is_not_read_is_reset_and_the_others_of_its_connection_go_on() {
    let bench = listening(Cluster::builder().write_timeout(SHORT)).await;
    fill(&bench).await;
    let (mut requests, _driver) = h2(&bench).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let unread = requests.send_request(get(&path)).await.expect("it opens");
    let read = requests.send_request(get(&path)).await.expect("it opens");
    assert_eq!(lines(read.into_body(), OBJECTS).await, (OBJECTS, false));
    until_cut_off(&bench, 1).await;
    let (_, is_reset) = lines(unread.into_body(), OBJECTS).await;
    assert!(is_reset);
    let version = requests.send_request(get("/version")).await;
    assert_eq!(version.expect("it goes on").status(), StatusCode::OK);
    assert_eq!(bench.cluster.connections(), 1);
}

#[tokio::test]
async fn a_slow_reader_of_one_stream_gets_everything() {
    let bench = listening(Cluster::builder().write_timeout(SHORT)).await;
    fill(&bench).await;
    let (mut requests, _driver) = h2(&bench).await;
    let object = get(&format!("{CONFIG_MAPS}/large-00"));
    let answer = requests.send_request(object).await.expect("it answers");
    let (mut body, mut bytes) = (answer.into_body(), 0);
    while let Some(frame) = timeout(TIMEOUT, body.frame()).await.expect("it goes on") {
        bytes += frame
            .expect("it is not cut off")
            .into_data()
            .map_or(0, |data| data.len());
        time::sleep(Duration::from_millis(20)).await;
    }
    assert!(bytes > LARGE);
    assert_eq!(bench.cluster.inspector().cut_off(), 0);
}

#[tokio::test]
async fn a_request_whose_body_does_not_come_is_answered_504() {
    let bench = listening(Cluster::builder().body_timeout(SHORT)).await;
    let mut stream = connect(&bench).await;
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{\"metadata\":"
    );
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    let read = timeout(TIMEOUT, stream.read_to_string(&mut answer)).await;
    read.expect("it ends").expect("it is answered");
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    let message = "Timeout: request did not complete within the allotted timeout";
    assert!(answer.contains(message), "{answer}");

    let (mut requests, _driver) = h2(&bench).await;
    let begun = futures::stream::iter([Ok(Frame::data(Bytes::from_static(b"{")))]);
    let body = StreamBody::new(begun.chain(futures::stream::pending()));
    let body = BodyExt::boxed(body);
    let request = Request::post(format!("http://localhost{CONFIG_MAPS}"))
        .header("content-type", "application/json")
        .body(body)
        .expect("it is well formed");
    let answer = timeout(TIMEOUT, requests.send_request(request)).await;
    let answer = answer.expect("it ends").expect("it is answered");
    assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(bench.cluster.inspector().cut_off(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_is_closed() {
    let bench = listening(Cluster::builder()).await;
    let start = Instant::now();
    for begun in ["", "PRI * HTTP/2.0\r\n"] {
        let mut stream = connect(&bench).await;
        stream
            .write_all(begun.as_bytes())
            .await
            .expect("it is sent");
        let mut nothing = Vec::new();
        let read = timeout(TIMEOUT, stream.read_to_end(&mut nothing)).await;
        assert!(read.is_ok(), "{begun:?}");
    }
    assert!(start.elapsed() >= Duration::from_secs(64));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_cuts_off_no_one() {
    let bench = listening(Cluster::builder()).await;
    fill(&bench).await;
    let mut unread = watch(&bench).await;
    let mut in_process = bench
        .watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1000000"))
        .await;
    let mut buffer = vec![0; 64 * 1024];
    let mut read = unread.read(&mut buffer).await.expect("it begins");
    // The server has written what fits, and waits.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    time::advance(Duration::from_secs(3600)).await;
    while read < OBJECTS * LARGE {
        let bytes = unread.read(&mut buffer).await.expect("it is not cut off");
        assert!(bytes > 0, "it goes on after {read} bytes");
        read += bytes;
    }
    // A client in this process has no connection that could be full.
    time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(in_process.short().await, "ADDED large-00");
    assert_eq!(bench.cluster.inspector().cut_off(), 0);
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_clients_that_take_or_send_nothing() {
    let bench = listening(Cluster::builder()).await;
    fill(&bench).await;
    let _unread = watch(&bench).await;
    let (mut requests, _driver) = h2(&bench).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let _stream = requests.send_request(get(&path)).await.expect("it opens");
    let mut half = connect(&bench).await;
    let head =
        format!("PUT {CONFIG_MAPS}/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n");
    half.write_all(head.as_bytes()).await.expect("it is sent");
    let open = async {
        while bench.cluster.inspector().watches().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, open).await.expect("they are open");
    let start = Instant::now();
    bench.cluster.shutdown().await;
    assert!(start.elapsed() < Duration::from_secs(20));
}
