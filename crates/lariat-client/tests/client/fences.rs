//! Fences: where they are asked on the way of a request to a server.

use std::error::Error;
use std::fmt::Display;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::client::Body;
use kube::{Client, Config};
use lariat_client::{Answering, CountedClient, Fence, Fenced, Http2, from_config};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
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
    let fencing = ServiceBuilder::new().map_request(move |mut request: http::Request<Body>| {
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
