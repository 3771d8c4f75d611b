//! Web pages in a browser on the same machine, which an open cluster keeps out.

use http::StatusCode;
use lariat_cluster::{Cluster, ClusterBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Asks with headers as they are, and returns the code and the rest of the answer.
async fn ask(cluster: &Cluster, line: &str, headers: &str) -> (StatusCode, String) {
    let url = cluster.url().expect("it listens");
    let address = url.split_once("//").expect("a URL has a scheme").1;
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(TIMEOUT, exchange).await.expect("it answers");
    let answer = answer.expect("it answers");
    let code = answer.split(' ').nth(1).expect("a code");
    (code.parse().expect("a code"), answer)
}

async fn started(builder: ClusterBuilder) -> Cluster {
    builder.start().await.expect("there is a free port")
}

#[tokio::test]
async fn an_open_cluster_on_loopback_takes_requests_for_addresses_and_localhost() {
    let cluster = started(Cluster::builder().listen()).await;
    for host in [
        "127.0.0.1:8001",
        "127.0.0.1",
        "[::1]:8001",
        "10.0.0.7",
        "localhost",
        "LocalHost:8001",
        "localhost.",
    ] {
        let headers = format!("Host: {host}\r\n");
        let (code, answer) = ask(&cluster, "GET /api/v1/secrets", &headers).await;
        assert_eq!(code, StatusCode::OK, "{host}: {answer}");
    }
    for host in [
        "evil.example.com",
        "evil.example.com:8001",
        "127.0.0.1.evil.example.com",
        "localhost.evil.example.com",
        "localhost@evil.example.com",
        "",
    ] {
        let headers = format!("Host: {host}\r\n");
        for path in ["/api/v1/secrets", "/version", "/openapi/v2"] {
            let (code, answer) = ask(&cluster, &format!("GET {path}"), &headers).await;
            assert!(code.is_client_error(), "{host}: {answer}");
            if !host.is_empty() {
                assert_eq!(code, StatusCode::FORBIDDEN, "{host}: {answer}");
                assert!(answer.contains("the Host header is refused"), "{answer}");
            }
        }
    }
    // A proxy's form of request names the host in its first line.
    let line = "GET http://evil.example.com/api/v1/secrets";
    let (code, _) = ask(&cluster, line, "Host: localhost\r\n").await;
    assert_eq!(code, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_open_cluster_refuses_every_origin() {
    for builder in [
        Cluster::builder().listen(),
        Cluster::builder().listen_on(([0, 0, 0, 0], 0).into()),
    ] {
        let cluster = started(builder.admin(true)).await;
        for origin in [
            "https://evil.example.com",
            "null",
            "http://127.0.0.1:8001",
            "",
        ] {
            let headers = format!("Host: 127.0.0.1\r\nOrigin: {origin}\r\nContent-Length: 0\r\n");
            for line in [
                "GET /api/v1/secrets",
                "OPTIONS /api/v1/secrets",
                "POST /lariat/compact",
            ] {
                let (code, answer) = ask(&cluster, line, &headers).await;
                assert_eq!(code, StatusCode::FORBIDDEN, "{line} {origin}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn a_cluster_that_knows_its_clients_or_has_a_name_takes_other_hosts() {
    let headers = "Host: cluster.example.com\r\n";
    let named = started(Cluster::builder().listen_on(([0, 0, 0, 0], 0).into())).await;
    assert_eq!(
        ask(&named, "GET /api/v1/secrets", headers).await.0,
        StatusCode::OK
    );
    let builder = Cluster::builder().token("sesame").require_authentication();
    let closed = started(builder.listen()).await;
    let known = format!(
        "{headers}Origin: https://dashboard.example.com\r\nAuthorization: Bearer sesame\r\n"
    );
    assert_eq!(
        ask(&closed, "GET /api/v1/secrets", &known).await.0,
        StatusCode::OK
    );
}
