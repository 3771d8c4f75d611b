//! A server that does not exist, disappears, or is too slow.

use std::process::{Command, Stdio};
use std::time::Duration;

use lariat_sql::{Postgres, Query};
use tokio::time;

use crate::server::Server;
use crate::stage::{Stage, red};

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_without_the_password() {
    let stage = Stage::new().await;
    let secret = "canary-5f1e";
    let url = format!("postgresql://me:{secret}@127.0.0.1:1/fleet");
    let options = Postgres::new(&url).expect("options");
    let started = stage.start_with(options, |builder| builder).await;
    let error = started.err().expect("nothing listens").to_string();
    assert!(
        error.starts_with("the PostgreSQL server 127.0.0.1:1/fleet cannot be used"),
        "{error}"
    );
    assert!(error.contains("check that it runs"), "{error}");
    assert!(!error.contains(secret), "{error}");
    let url = stage.server.url().replace("/postgres?", "/missing?");
    let started = stage
        .start_with(Postgres::new(&url).expect("options"), |builder| builder)
        .await;
    let error = started.err().expect("no such database").to_string();
    assert!(
        error.contains("database \"missing\" does not exist"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_crashes_is_used_again_when_it_is_back() {
    let mut stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let (one, other) = (stage.start().await, stage.start().await);
    assert_eq!(one.names(&version).await, ["one"]);
    assert_eq!(other.names(&version).await, ["one"]);
    stage.server.kill();
    let version = stage.create("two", red()).await;
    let error = one
        .maps
        .query(&Query::new())
        .await
        .expect_err("it is away")
        .to_string();
    assert!(error.contains("PostgreSQL"), "{error}");
    while other.maps.status().last_error.is_none() {
        time::sleep(Duration::from_millis(5)).await;
    }
    stage.server.resume();
    assert_eq!(one.names(&version).await, ["one", "two"]);
    assert_eq!(other.names(&version).await, ["one", "two"]);
    assert!(other.maps.status().last_error.is_none());
}

#[tokio::test]
async fn a_query_that_takes_too_long_is_an_error_that_says_so() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let timeout = Duration::from_millis(300);
    let process = stage
        .start_with(stage.options(), |builder| builder.query_timeout(timeout))
        .await
        .expect("started");
    assert_eq!(process.names(&version).await, ["one"]);
    // Another program has locked what it reads.
    let mut locker = Command::new("psql");
    let lock = "BEGIN; LOCK TABLE lariat.keyring4, lariat.kinds4; SELECT pg_sleep(60)";
    let mut locker = locker
        .args(["-d", &stage.server.url(), "-c", lock])
        .stdout(Stdio::null())
        .spawn()
        .expect("psql runs");
    let locked = "SELECT count(*) FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock'";
    while stage.server.sql(locked) == "0" {
        time::sleep(Duration::from_millis(5)).await;
    }
    let error = process
        .maps
        .query(&Query::new())
        .await
        .expect_err("it waits")
        .to_string();
    assert!(error.contains("was interrupted after 300ms"), "{error}");
    // The server does not go on with it.
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lariat-sql reader'
                   AND state = 'active'";
    while stage.server.sql(waiting) != "0" {
        time::sleep(Duration::from_millis(5)).await;
    }
    stage.terminate("psql");
    locker.wait().expect("it has ended");
    assert_eq!(process.names(&version).await, ["one"]);
}

#[tokio::test]
async fn tables_that_were_dropped_are_made_and_filled_again() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let process = stage.start().await;
    assert_eq!(process.names(&version).await, ["one"]);
    stage.server.sql("DROP SCHEMA lariat CASCADE");
    let version = stage.create("two", red()).await;
    let reds = || Query::new().at_least(version.parse().expect("a version"));
    while process.maps.query(&reds()).await.is_err() {
        time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(process.names(&version).await, ["one", "two"]);
}

/// Makes the certificate of an authority, and one that it has signed for this machine, with its key.
fn certificates() -> (String, String, String) {
    let (ours, theirs) = (rcgen::KeyPair::generate(), rcgen::KeyPair::generate());
    let (ours, theirs) = (ours.expect("a key"), theirs.expect("a key"));
    let mut authority = rcgen::CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signed = authority.self_signed(&ours).expect("signed");
    let issuer = rcgen::Issuer::new(authority, &ours);
    let server = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let server = server.signed_by(&theirs, &issuer).expect("signed");
    (signed.pem(), server.pem(), theirs.serialize_pem())
}

#[tokio::test]
async fn connections_are_encrypted_to_servers_whose_certificates_are_trusted() {
    let (authority, certificate, key) = certificates();
    let files = [
        ("server.crt", certificate.as_str()),
        ("server.key", key.as_str()),
    ];
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let settings = [
        "ssl=on",
        "listen_addresses=127.0.0.1",
        &format!("port={port}"),
    ];
    let _server = Server::start_with(&settings, &files);
    let start = |host: &str, mode: &str, roots: Option<String>| {
        let url = format!("postgresql://lariat@{host}:{port}/postgres?sslmode={mode}");
        let options = Postgres::new(&url).expect("options");
        let options = match roots {
            Some(roots) => options.root_certificates(roots).expect("readable"),
            None => options,
        };
        let client = kube::Client::new(tower::service_fn(unreachable_server), "default");
        let factory = lariat_cache::SharedCacheFactory::new(client);
        lariat_sql::SqlCache::builder(&factory)
            .in_postgres(options)
            .start()
    };
    start("localhost", "require", Some(authority.clone()))
        .await
        .expect("trusted");
    let (other, ..) = certificates();
    for (host, mode, roots, reason) in [
        (
            "localhost",
            "require",
            None,
            "give them by Postgres::root_certificates",
        ),
        (
            "localhost",
            "disable",
            Some(other),
            "invalid peer certificate",
        ),
        (
            "127.0.0.1",
            "prefer",
            Some(authority),
            "certificate not valid for name",
        ),
    ] {
        let error = start(host, mode, roots)
            .await
            .expect_err("not trusted")
            .to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn plain_text_to_another_machine_is_refused_unless_allowed() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let settings = ["listen_addresses=127.0.0.1", &format!("port={port}")];
    let _server = Server::start_with(&settings, &[]);
    let client = kube::Client::new(tower::service_fn(unreachable_server), "default");
    let factory = lariat_cache::SharedCacheFactory::new(client);
    let start = |options: Postgres| {
        lariat_sql::SqlCache::builder(&factory)
            .in_postgres(options)
            .start()
    };
    // The address is no loopback address, and yet leads to this machine.
    for mode in ["prefer", "disable"] {
        let url = format!("postgresql://lariat@0.0.0.0:{port}/postgres?sslmode={mode}");
        let options = || Postgres::new(&url).expect("options");
        let error = start(options()).await.expect_err("refused").to_string();
        assert!(error.contains("Postgres::allow_plain_text"), "{error}");
        let sql = start(options().allow_plain_text()).await.expect("allowed");
        sql.stop().await;
    }
    let url = format!("postgresql://lariat@127.0.0.1:{port}/postgres");
    let local = Postgres::new(&url).expect("options");
    start(local).await.expect("it is local").stop().await;
}

/// A Kubernetes API server that is never asked.
async fn unreachable_server(
    _: http::Request<kube::client::Body>,
) -> Result<http::Response<kube::client::Body>, std::io::Error> {
    Err(std::io::Error::other("there is no server"))
}
