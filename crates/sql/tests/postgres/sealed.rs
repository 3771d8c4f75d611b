//! Encrypted kinds, whose keys all replicas have.

use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use lariat_seal::{Keyring, LocalKeys, Sealing};
use lariat_sql::{Field, FieldType, Query, Schema, SqlCache, SqlError, label};
use serde_json::json;
use tokio::time;

use crate::stage::Stage;

/// Found nowhere else.
const CANARY: &str = "canary-77ab03";

fn secrets() -> Gvk {
    Gvk::new("", "v1", "Secret")
}

fn key(seed: u8) -> LocalKeys {
    let key = LocalKeys::from_bytes(&std::array::from_fn::<u8, 32, _>(|place| {
        seed.wrapping_mul(31).wrapping_add(place as u8)
    }));
    key.expect("a key")
}

async fn start(stage: &Stage, seed: u8) -> Result<(SharedCacheFactory, SqlCache), SqlError> {
    start_with(stage, seed, []).await
}

async fn start_with<const N: usize>(
    stage: &Stage,
    seed: u8,
    fields: [Field; N],
) -> Result<(SharedCacheFactory, SqlCache), SqlError> {
    let factory = SharedCacheFactory::new(stage.cluster.client());
    let schema = Schema::new(secrets(), fields).expect("a schema");
    let builder = SqlCache::builder(&factory)
        .kind(schema)
        .in_postgres(stage.options());
    let sql = builder
        .sealed(Sealing::of_kinds([], key(seed)))
        .start()
        .await?;
    factory.start();
    Ok((factory, sql))
}

async fn create(stage: &Stage, name: &str) -> String {
    let secret = json!({
        "metadata": {"name": format!("{CANARY}-{name}"), "labels": {"note": CANARY}},
        "stringData": {CANARY: CANARY},
    });
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    let api: Api<Secret> = Api::namespaced(stage.cluster.client(), "default");
    let created = api
        .create(&PostParams::default(), &secret)
        .await
        .expect("created");
    created.metadata.resource_version.expect("a version")
}

async fn count(sql: &SqlCache, version: &str) -> usize {
    let query = Query::new().filter(label("note").equals(CANARY));
    let query = query.at_least(version.parse().expect("a version"));
    let answer = sql.kind(&secrets()).expect("the kind").query(&query).await;
    answer.expect("answered").objects.len()
}

/// Returns whether a text is in any file of the server, its log included.
fn is_in_any_file(stage: &Stage, text: &str) -> bool {
    let mut grep = Command::new("grep");
    grep.args(["-rqF", "--binary-files=text", "--", text]);
    let found = grep.arg(&stage.server.folder).status();
    found.expect("grep runs").success()
}

#[tokio::test]
async fn replicas_share_the_keys_and_nothing_of_a_secret_is_in_any_file() {
    let mut stage = Stage::new().await;
    let version = create(&stage, "a").await;
    let (one, other) = tokio::join!(start(&stage, 1), start(&stage, 1));
    let (one, other) = (one.expect("started"), other.expect("started"));
    assert_eq!(count(&one.1, &version).await, 1);
    assert_eq!(count(&other.1, &version).await, 1);
    // A new key of one is found by the other.
    for (round, maker) in [&one.1, &other.1].into_iter().enumerate() {
        maker.rotate_data_key().await.expect("rotated");
        let version = create(&stage, &format!("b{round}")).await;
        assert_eq!(count(&one.1, &version).await, 2 + round);
        assert_eq!(count(&other.1, &version).await, 2 + round);
    }
    let refused = start(&stage, 2).await.map(drop).expect_err("another key");
    assert!(refused.to_string().contains("sealed with key"), "{refused}");
    stage.server.sql("CHECKPOINT");
    let is_found = |text: &str| is_in_any_file(&stage, text);
    assert!(is_found("sealed "), "the signatures of the kinds");
    assert!(!is_found(CANARY), "in plain text");
    assert!(!is_found("Y2FuYXJ5LTc3YWIwM"), "in base64");
    one.1.stop().await;
    other.1.stop().await;
    stage.server.kill();
    assert!(!is_in_any_file(&stage, CANARY));
}

/// Waits until the stored keyring has no old data key.
async fn is_renewed(stage: &Stage) -> Keyring {
    loop {
        let stored = stage
            .server
            .sql("SELECT encode(stored, 'hex') FROM lariat.keyring4");
        let digits = stored.as_bytes().chunks(2);
        let bytes: Vec<u8> = digits
            .map(|two| u8::from_str_radix(str::from_utf8(two).expect("hex"), 16).expect("hex"))
            .collect();
        let keyring = Keyring::load(&bytes, &key(1)).await.expect("the key");
        if keyring.old_data_keys() == 0 {
            return keyring;
        }
        time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the numbers of rows that a keyring's data key has sealed, and of all.
fn rows(stage: &Stage, keyring: &Keyring) -> (usize, usize) {
    let table =
        "SELECT tablename FROM pg_tables WHERE schemaname = 'lariat' AND tablename LIKE 'sealed%'";
    let table = stage.server.sql(table);
    let count = |condition: &str| -> usize {
        let count = format!("SELECT count(*) FROM lariat.{table} WHERE {condition}");
        stage.server.sql(&count).parse().expect("a number")
    };
    let begins = |column| {
        format!(
            "encode(substr({column}, 2, 4), 'hex') = '{}'",
            keyring.current_data_key()
        )
    };
    let own = format!("{} AND {}", begins("content"), begins("json"));
    (count(&own), count("true"))
}

#[tokio::test]
async fn a_replica_that_takes_over_seals_with_the_keys_of_the_last_writer() {
    let stage = Stage::new().await;
    let version = create(&stage, "a").await;
    let writer = start(&stage, 1).await.expect("started");
    assert_eq!(count(&writer.1, &version).await, 1);
    let reader = start(&stage, 1).await.expect("started");
    assert_eq!(count(&reader.1, &version).await, 1);
    assert!(writer.1.is_writing() && !reader.1.is_writing());
    let before = is_renewed(&stage).await;
    writer.1.rotate_data_key().await.expect("rotated");
    // The other replica asks for nothing meanwhile.
    let after = is_renewed(&stage).await;
    assert_ne!(before.current_data_key(), after.current_data_key());
    assert_eq!(rows(&stage, &after), (1, 1));
    writer.1.stop().await;
    while !reader.1.is_writing() {
        time::sleep(Duration::from_millis(5)).await;
    }
    let version = create(&stage, "b").await;
    assert_eq!(count(&reader.1, &version).await, 2);
    assert_eq!(rows(&stage, &after), (2, 2));
    // One that only reads rotates for the one that writes.
    let third = start(&stage, 1).await.expect("started");
    assert_eq!(count(&third.1, &version).await, 2);
    third.1.rotate_data_key().await.expect("rotated");
    let mut last = is_renewed(&stage).await;
    while last.current_data_key() == after.current_data_key() {
        last = is_renewed(&stage).await;
    }
    assert_eq!(rows(&stage, &last), (2, 2));
    assert_eq!(count(&reader.1, &version).await, 2);
    assert_eq!(count(&third.1, &version).await, 2);
}

#[tokio::test]
async fn secrets_are_on_no_server_without_a_key() {
    let stage = Stage::new().await;
    let factory = SharedCacheFactory::new(stage.cluster.client());
    let schema = Schema::new(secrets(), []).expect("a schema");
    let builder = SqlCache::builder(&factory)
        .kind(schema)
        .in_postgres(stage.options());
    let error = builder.start().await.err();
    assert!(matches!(error, Some(SqlError::NoKey { .. })));
}

#[tokio::test]
async fn replicas_with_other_fields_have_keys_of_their_own() {
    let stage = Stage::new().await;
    let version = create(&stage, "a").await;
    let old = start(&stage, 1).await.expect("started");
    assert_eq!(count(&old.1, &version).await, 1);
    let new = start_with(
        &stage,
        1,
        [Field::path("type", FieldType::Text).expect("a path")],
    );
    let new = new.await.expect("started");
    assert_eq!(count(&new.1, &version).await, 1);
    new.1.rotate_data_key().await.expect("rotated");
    let version = create(&stage, "b").await;
    for process in [&old, &new] {
        assert_eq!(count(&process.1, &version).await, 2);
        assert!(process.1.is_writing());
    }
    assert_eq!(
        stage.server.sql("SELECT count(*) FROM lariat.keyring4"),
        "2"
    );
}

/// Drops tables and keys, as another replica does after an hour without a use of them.
fn drop_unused(stage: &Stage) {
    let table =
        "SELECT tablename FROM pg_tables WHERE schemaname = 'lariat' AND tablename LIKE 'sealed%'";
    let table = stage.server.sql(table);
    stage.server.sql(&format!("DROP TABLE lariat.{table}"));
    stage.server.sql("DELETE FROM lariat.kinds4");
    stage.server.sql("DELETE FROM lariat.keyring4");
}

#[tokio::test]
async fn keys_that_were_dropped_as_unused_are_stored_again_by_the_writer() {
    let stage = Stage::new().await;
    let version = create(&stage, "a").await;
    let one = start(&stage, 1).await.expect("started");
    assert_eq!(count(&one.1, &version).await, 1);
    let stored = "SELECT encode(stored, 'hex') FROM lariat.keyring4";
    let before = stage.server.sql(stored);
    drop_unused(&stage);
    stage.terminate("lariat-sql");
    let version = create(&stage, "b").await;
    assert_eq!(count(&one.1, &version).await, 2);
    assert_eq!(stage.server.sql(stored), before);
    // One that starts now uses the same keys.
    let other = start(&stage, 1).await.expect("started");
    let version = create(&stage, "c").await;
    for process in [&one, &other] {
        assert_eq!(count(&process.1, &version).await, 3);
    }
}

#[tokio::test]
async fn replicas_use_the_keys_of_one_that_started_after_theirs_were_dropped() {
    let stage = Stage::new().await;
    let version = create(&stage, "a").await;
    let (one, other) = tokio::join!(start(&stage, 1), start(&stage, 1));
    let processes = [one.expect("started"), other.expect("started")];
    for process in &processes {
        assert_eq!(count(&process.1, &version).await, 1);
    }
    drop_unused(&stage);
    let keyring = Keyring::create(&key(1)).await.expect("keys");
    let digits: Vec<String> = keyring
        .stored()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let digits = digits.concat();
    stage.server.sql(&format!(
        "INSERT INTO lariat.keyring4 SELECT edition, decode('{digits}', 'hex') FROM lariat.writer4"
    ));
    stage.terminate("lariat-sql");
    let version = create(&stage, "b").await;
    for process in &processes {
        // Rows are found by keyed hashes of their namespace.
        let query = Query::new().namespaces(["default"]);
        let query = query.at_least(version.parse().expect("a version"));
        let kind = process.1.kind(&secrets()).expect("the kind");
        let answer = kind.query(&query).await.expect("answered");
        assert_eq!(answer.objects.len(), 2);
    }
}
