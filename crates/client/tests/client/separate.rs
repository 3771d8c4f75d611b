//! Clients with connections of their own, and what a request looks like.

use http::{HeaderValue, Request, header};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::client::Body;
use lariat_client::{CountedClient, Http2, from_config, separate};
use lariat_cluster::Cluster;

fn config(url: &str) -> kube::Config {
    kube::Config::new(url.parse().expect("it is one"))
}

/// Answers one request, and returns what it was.
async fn one_request(listener: tokio::net::TcpListener) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut stream, _) = listener.accept().await.expect("a client connects");
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.expect("the request goes on"));
    }
    let body =
        r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    stream
        .write_all((head + body).as_bytes())
        .await
        .expect("it is still there");
    String::from_utf8(request)
        .expect("it is text")
        .to_lowercase()
}

#[tokio::test]
async fn the_identity_is_sent_as_by_kube() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(&format!("http://{}/prefix", listener.local_addr().unwrap()));
    config.auth_info.token = Some("a-token".to_owned().into());
    config.auth_info.impersonate = Some("jane".to_owned());
    config.auth_info.impersonate_groups = Some(vec!["readers".to_owned()]);
    let client = from_config(config, Http2::Negotiated).await.unwrap();
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(client);
    let all = ListParams::default();
    let (request, list) = tokio::join!(one_request(listener), pods.list(&all));
    list.unwrap();
    for expected in [
        "get /prefix/api/v1/pods?",
        "authorization: bearer a-token",
        "impersonate-user: jane",
        "impersonate-group: readers",
    ] {
        assert!(request.contains(expected), "no {expected:?} in {request}");
    }
}

#[tokio::test]
async fn separate_client_opens_a_connection_of_its_own() {
    let cluster = Cluster::builder().listen().start().await.unwrap();
    let client = from_config(config(&cluster.url().unwrap()), Http2::PriorKnowledge)
        .await
        .unwrap();
    let counted = CountedClient::new(client);
    let pods: Api<Pod> = Api::all(separate(&counted));
    // The first request goes through the factory's connection, and finds out how to open another one.
    for expected in [1, 2, 2] {
        pods.list(&ListParams::default()).await.unwrap();
        assert_eq!(cluster.connections(), expected);
    }
    let counts = counted.status().counts;
    let gets: Vec<_> = counts
        .iter()
        .map(|each| (each.method, each.count))
        .collect();
    assert_eq!(gets, [("GET", 3)]);
}

#[tokio::test]
async fn separate_client_of_a_foreign_client_shares_its_connections() {
    let cluster = Cluster::builder().start().await.unwrap();
    let counted = CountedClient::new(cluster.client());
    let pods: Api<Pod> = Api::all(separate(&counted));
    for _ in 0..2 {
        pods.list(&ListParams::default()).await.unwrap();
    }
    assert_eq!(cluster.journal().count("list", "pods"), 2);
}

#[tokio::test]
async fn separate_client_of_a_client_that_adds_headers_shares_its_connections() {
    let cluster = Cluster::builder().listen().start().await.unwrap();
    let client = from_config(config(&cluster.url().unwrap()), Http2::PriorKnowledge)
        .await
        .unwrap();
    let around = tower::service_fn(move |mut request: Request<Body>| {
        let (client, token) = (client.clone(), HeaderValue::from_static("Bearer a"));
        request.headers_mut().insert(header::AUTHORIZATION, token);
        async move { client.send(request).await }
    });
    let counted = CountedClient::new(Client::new(around, "default"));
    let pods: Api<Pod> = Api::all(separate(&counted));
    for _ in 0..3 {
        pods.list(&ListParams::default()).await.unwrap();
    }
    assert_eq!(cluster.connections(), 1);
}
