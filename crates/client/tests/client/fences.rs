//! Fences: where they are asked on the way of a request to a server.

use std::error::Error;
use std::fmt::Display;
use std::future::ready;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::client::Body;
use kube::{Client, Config};
use lariat_client::{Answering, CountedClient, Fence, Fenced, Http2, from_config};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time;
use tower::ServiceBuilder;

use crate::credentials::{Folder, Guarded};

/// A fence whose timer never fires, as in a process that was suspended.
#[derive(Clone, Default)]
struct Closed(Arc<AtomicBool>);

impl Fence for Closed {
    fn is_open(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }

    fn error(&self, write: &dyn Display, was_sent: bool) -> Box<dyn Error + Send + Sync> {
        format!("fenced: {write}, sent: {was_sent}").into()
    }
}

const REFUSED: &str = "fenced: a request, sent: true";

/// Creates a client with a fence that is closed by hand.
async fn fenced(config: Config) -> (Client, Closed) {
    let client = from_config(config, Http2::Off).await.expect("a client");
    let fence = Closed::default();
    let asked = fence.clone();
    let answering = Answering::new(CountedClient::new(client), Answering::TIMEOUT);
    let fencing = ServiceBuilder::new().map_request(move |mut request: Request<Body>| {
        let fence = Fenced::new(Box::new(asked.clone()), "a request");
        request.extensions_mut().insert(fence);
        request
    });
    (Client::new(fencing.service(answering), "default"), fence)
}

async fn create(client: Client) -> Result<(), String> {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).expect("a ConfigMap");
    let created = api.create(&PostParams::default(), &map).await;
    created
        .map(drop)
        .map_err(|error| lariat_core::describe(&error).to_string())
}

#[tokio::test]
async fn write_is_not_sent_when_fence_closes_while_connecting() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut config = Config::new("http://cluster.invalid".parse().expect("a URL"));
    let address = proxy.local_addr().expect("bound");
    config.proxy_url = Some(format!("http://{address}").parse().expect("a URL"));
    let (client, fence) = fenced(config).await;
    let connecting = async {
        let (mut socket, _) = proxy.accept().await.expect("a connection");
        let mut asked = [0; 7];
        socket
            .read_exact(&mut asked)
            .await
            .expect("it asks for a tunnel");
        assert_eq!(&asked, b"CONNECT");
        // The tunnel is there only after the fence has closed, and before any timer tells the client.
        fence.0.store(true, Ordering::Relaxed);
        socket
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
            .await
            .expect("it reads");
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest).await;
        String::from_utf8_lossy(&rest).into_owned()
    };
    let (written, rest) = tokio::join!(create(client), connecting);
    let error = written.expect_err("the fence has closed");
    assert!(error.contains(REFUSED), "{error}");
    assert!(!rest.contains("POST"), "{rest}");
}

#[tokio::test]
async fn write_is_not_sent_when_fence_closes_while_credentials_are_read() {
    let guarded = Guarded::start("new").await;
    let folder = Folder::new("fenced-credentials");
    folder.token("old", "");
    let plugin = folder.plugin("if [ -p pipe ]; then cat pipe > /dev/null; fi");
    let mut config = guarded.server.config();
    config.auth_info.exec = Some(plugin);
    let (client, fence) = fenced(config).await;
    // From now on the plugin waits until the test writes into the pipe.
    let pipe = folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("coreutils").success());
    folder.token("new", "");
    // The API server refuses the old token, so the plugin runs again, and the write would be sent again.
    let closing = tokio::task::spawn_blocking(move || {
        // Opened once the plugin reads from it.
        let mut pipe = std::fs::File::options().write(true).open(pipe)?;
        fence.0.store(true, Ordering::Relaxed);
        pipe.write_all(b"go")
    });
    let (written, closed) = tokio::join!(create(client), closing);
    closed.expect("no panic").expect("the plugin reads");
    let error = written.expect_err("the fence has closed");
    assert!(error.contains(REFUSED), "{error}");
    assert_eq!(*guarded.seen.lock(), ["old"]);
}

#[tokio::test(start_paused = true)]
async fn refused_request_is_not_sent_again_once_fence_closes() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let service = tower::service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        let answer = Response::builder().status(429).header("retry-after", 1);
        ready(answer.body(Body::empty()))
    });
    let client = CountedClient::new(Client::new(service, "default"));
    let answering = Answering::new(client, Answering::TIMEOUT);
    let fence = Closed::default();
    let mut request = Request::post("/api/v1/namespaces")
        .body(Body::from(Vec::new()))
        .unwrap();
    let fenced = Fenced::new(Box::new(fence.clone()), "a request");
    request.extensions_mut().insert(fenced);
    // The second delay has begun, and no timer tells the client of the end.
    let closing = async {
        time::sleep(Duration::from_millis(1_500)).await;
        fence.0.store(true, Ordering::Relaxed);
    };
    let (answer, ()) = tokio::join!(answering.send(request), closing);
    let error = answer.expect_err("the fence has closed");
    assert_eq!(error.to_string(), "fenced: a request, sent: false");
    assert!(!error.was_sent());
    assert_eq!(sent.load(Ordering::Relaxed), 2);
}
