//! A network that passes nothing on, over HTTP/1.1.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use lariat_client::{Http2, from_config};
use lariat_core::describe;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch::Sender;
use tokio::task::JoinSet;
use tokio::time;

use crate::MINUTE;
use crate::dark::{Proxy, SILENCE, TEST, pass, until};
use crate::server::{Server, Speech, listen, quiet};
use crate::transport::{watch, write};

/// Reads answers at the same time, and says how the first ended that did.
struct Readers(JoinSet<String>);

impl Readers {
    /// Opens so many watches and reads them.
    async fn of(client: &Client, watches: usize) -> Self {
        let mut readers = JoinSet::new();
        for number in 0..watches {
            let body = watch(client, number).await.into_body();
            readers.spawn(async move {
                let end = body.collect().await;
                end.map_or_else(|error| describe(&error), |_| "it was read".to_owned())
            });
        }
        Self(readers)
    }

    async fn end(&mut self) -> String {
        let end = time::timeout(MINUTE, self.0.join_next()).await;
        let end = end.expect("one ends").expect("there are some");
        end.expect("it does not panic")
    }

    fn assert_open(&mut self) {
        let end = self.0.try_join_next().map(|end| end.expect("no panic"));
        assert_eq!(end, None);
    }
}

#[tokio::test]
async fn a_watch_ends_when_what_is_between_passes_nothing_on() {
    let server = Server::start(Speech::Http1, quiet).await;
    let proxy = Proxy::before(server.port);
    for http2 in [Http2::Off, Http2::Negotiated] {
        proxy.lighten();
        proxy.swallowed.send_replace(String::new());
        let client = proxy.server.client(http2).await;
        let mut readers = Readers::of(&client, 2).await;
        proxy.darken();
        pass(SILENCE).await;
        proxy.until_tested().await;
        readers.assert_open();
        pass(TEST).await;
        let url = format!("http://127.0.0.1:{}/version", proxy.server.port);
        let expected = "the API server did not answer a liveness test within 15s: GET ";
        for _ in 0..2 {
            let end = readers.end().await;
            assert!(end.contains(&format!("{expected}{url}")), "{end}");
        }
        let requests = proxy.swallowed.borrow().matches("GET ").count();
        assert_eq!(requests, 1, "both wait for one test");
    }
}

#[tokio::test]
async fn a_connection_that_was_idle_before_a_failed_test_is_not_used_again() {
    let server = Server::start(Speech::Http1, quiet).await;
    let proxy = Proxy::before(server.port);
    let client = proxy.server.client(Http2::Off).await;
    let mut readers = Readers::of(&client, 1).await;
    futures::future::join_all((0..3).map(|_| write(&client))).await;
    assert!(
        server.connections() > 2,
        "the test does not use all of them"
    );
    proxy.darken();
    pass(SILENCE).await;
    proxy.until_tested().await;
    pass(TEST).await;
    readers.end().await;
    proxy.lighten();
    write(&client).await;
}

/// What a scripted server has seen.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Seen {
    watches: u32,
    /// Liveness tests, and those whose answer was read.
    tests: u32,
    answered: u32,
}

/// A server that answers watches with nothing but what a test says.
struct Script {
    server: Server,
    seen: Arc<Sender<Seen>>,
    /// Counts what is sent on the first watch.
    sent: Arc<Sender<u32>>,
}

impl Script {
    /// Starts a server that answers liveness tests with a status, or not at all.
    fn start(status: Option<&'static str>) -> Self {
        let seen = Arc::new(Sender::new(Seen::default()));
        let sent = Arc::new(Sender::new(0));
        let state = (Arc::clone(&seen), Arc::clone(&sent));
        let server = Server::with(listen(0), move |stream| {
            let (seen, sent) = state.clone();
            async move {
                // However it ends: clients leave as they like.
                let _ = play(stream, status, &seen, &sent).await;
            }
        });
        Self { server, seen, sent }
    }

    async fn tests(&self, tests: u32, answered: u32) {
        let expected = (tests, answered);
        until(&self.seen, |seen| (seen.tests, seen.answered) == expected).await;
    }

    /// Sends something on the first watch, and waits until it was read.
    async fn send(&self, body: &mut kube::client::Body) {
        self.sent.send_modify(|sent| *sent += 1);
        let frame = time::timeout(MINUTE, body.frame()).await;
        let frame = frame.expect("it comes").expect("there is more");
        frame.expect("the watch goes on");
    }
}

/// Answers the only request of a connection.
async fn play(
    mut stream: TcpStream,
    status: Option<&str>,
    seen: &Sender<Seen>,
    sent: &Sender<u32>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let request = String::from_utf8_lossy(&request);
    if request.starts_with("GET /version ") {
        seen.send_modify(|seen| seen.tests += 1);
        if let Some(status) = status {
            let head =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n");
            stream.write_all((head + "{}").as_bytes()).await?;
        }
        // The client closes the connection when it has read the answer, or gives it up.
        let _ = stream.read_u8().await;
        seen.send_modify(|seen| seen.answered += 1);
        return Ok(());
    }
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head).await?;
    seen.send_modify(|seen| seen.watches += 1);
    let mut sent = sent.subscribe();
    loop {
        tokio::select! {
            _ = stream.read_u8() => return Ok(()),
            changed = sent.changed(), if request.contains("/namespaces/n0/") => {
                changed.expect("the test holds it");
                stream.write_all(b"1\r\n\n\r\n").await?;
            }
        }
    }
}

#[tokio::test]
async fn a_quiet_server_that_answers_anything_keeps_its_watches() {
    for status in ["200 OK", "403 Forbidden", "503 Service Unavailable"] {
        let script = Script::start(Some(status));
        let client = script.server.client(Http2::Off).await;
        let mut readers = Readers::of(&client, 3).await;
        for number in 1..=3 {
            pass(SILENCE).await;
            script.tests(number, number).await;
            readers.assert_open();
        }
        assert_eq!(script.seen.borrow().watches, 3, "{status}");
    }
}

#[tokio::test]
async fn a_test_that_fails_ends_the_watches() {
    let script = Script::start(Some("no status"));
    let client = script.server.client(Http2::Off).await;
    let mut readers = Readers::of(&client, 2).await;
    pass(SILENCE).await;
    for _ in 0..2 {
        let end = readers.end().await;
        assert!(
            end.contains("a liveness test of the API server failed"),
            "{end}"
        );
    }
}

#[tokio::test]
async fn bytes_on_one_watch_save_the_others_the_test() {
    let script = Script::start(Some("200 OK"));
    let client = script.server.client(Http2::Off).await;
    let mut busy = watch(&client, 0).await.into_body();
    let mut readers = JoinSet::new();
    let quiet = watch(&client, 1).await.into_body();
    readers.spawn(quiet.collect());
    for _ in 0..4 {
        pass(SILENCE * 2 / 3).await;
        script.send(&mut busy).await;
    }
    assert_eq!(script.seen.borrow().tests, 0);
    assert!(readers.try_join_next().is_none());
}

#[tokio::test]
async fn bytes_that_come_while_a_test_is_not_answered_keep_the_watches() {
    let script = Script::start(None);
    let client = script.server.client(Http2::Off).await;
    let mut busy = watch(&client, 0).await.into_body();
    let mut readers = JoinSet::new();
    let quiet = watch(&client, 1).await.into_body();
    readers.spawn(quiet.collect());
    pass(SILENCE).await;
    script.tests(1, 0).await;
    script.send(&mut busy).await;
    pass(TEST).await;
    script.tests(1, 1).await;
    script.send(&mut busy).await;
    assert!(readers.try_join_next().is_none());
}

#[tokio::test]
async fn a_body_that_is_dropped_during_a_test_leaves_no_task() {
    let script = Script::start(None);
    let client = script.server.client(Http2::Off).await;
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    let mut readers = Readers::of(&client, 2).await;
    pass(SILENCE).await;
    script.tests(1, 0).await;
    readers.0.shutdown().await;
    script.tests(1, 1).await;
    let ended = async {
        while tasks.num_alive_tasks() > before {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    time::timeout(MINUTE, ended).await.expect("all end");
}

#[tokio::test]
async fn a_test_has_the_path_the_headers_and_the_credentials_of_the_configuration() {
    let heads = Arc::new(Sender::new(String::new()));
    let record = Arc::clone(&heads);
    let server = Server::start(Speech::Http1, move |request| {
        let head = format!("{} {:?}\n", request.uri(), request.headers());
        record.send_modify(|all| all.push_str(&head));
        quiet(request)
    });
    let server = server.await;
    let mut config = server.config();
    config.cluster_url = format!("{}prefix", config.cluster_url).parse().unwrap();
    config.auth_info.token = Some("a-token".to_owned().into());
    config.auth_info.impersonate = Some("jane".to_owned());
    let client = from_config(config, Http2::Off).await.unwrap();
    let _readers = Readers::of(&client, 1).await;
    pass(SILENCE).await;
    until(&heads, |all| all.lines().count() == 2).await;
    let heads = heads.borrow().to_lowercase();
    let test = heads.lines().nth(1).unwrap();
    for expected in ["/prefix/version ", "bearer a-token", "jane"] {
        assert!(test.contains(expected), "no {expected:?} in {test}");
    }
}

#[tokio::test]
async fn http_2_has_pings_and_needs_no_test() {
    let requests = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&requests);
    let server = Server::start(Speech::Http2(10), move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        quiet(request)
    });
    let server = server.await;
    let client = server.client(Http2::PriorKnowledge).await;
    let mut readers = Readers::of(&client, 1).await;
    pass(SILENCE).await;
    write(&client).await;
    assert_eq!(requests.load(Ordering::Relaxed), 2);
    assert_eq!(server.connections(), 1);
    readers.assert_open();
}
