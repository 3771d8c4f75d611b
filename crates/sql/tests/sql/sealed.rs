//! Kinds that are encrypted in the file.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, PostParams};
use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use lariat_seal::{DataKeyId, Keyring, LocalKeys, Sealing};
use lariat_sql::{
    Field, FieldType, Query, QueryError, Schema, SqlCache, SqlCacheBuilder, SqlError, SqlKind,
    field, label,
};
use serde_json::json;
use tokio::time;

use crate::bench::{self, Bench, Folder};

/// Found nowhere else.
const CANARY: &str = "canary-9f2c61";

fn secrets() -> Gvk {
    Gvk::new("", "v1", "Secret")
}

fn schema() -> Schema {
    let note = Field::path("metadata.annotations.note", FieldType::Text).expect("a path");
    Schema::new(secrets(), [note.searchable()]).expect("a schema")
}

fn key(seed: u8) -> LocalKeys {
    LocalKeys::from_bytes(&std::array::from_fn::<u8, 32, _>(|place| {
        seed.wrapping_mul(31).wrapping_add(place as u8)
    }))
    .expect("a key")
}

async fn open(bench: &Bench, file: &Path, key: Option<LocalKeys>) -> Result<Process, SqlError> {
    let factory = SharedCacheFactory::new(bench.cluster.client());
    let builder = SqlCache::builder(&factory).kind(schema()).in_file(file);
    let builder = match key {
        Some(key) => builder.sealed(Sealing::of_kinds([], key)),
        None => builder,
    };
    let sql = builder.start().await?;
    factory.start();
    let kind = sql.kind(&secrets())?;
    Ok(Process { factory, sql, kind })
}

struct Process {
    factory: SharedCacheFactory,
    sql: SqlCache,
    kind: SqlKind,
}

impl Process {
    async fn names(&self, query: Query, version: &str) -> Vec<String> {
        let query = query.at_least(version.parse().expect("a version"));
        let answer = self.kind.query(&query).await.expect("answered");
        let names = answer
            .objects
            .iter()
            .map(|found| found.key.name().to_owned());
        names.collect()
    }

    async fn stop(self) {
        self.sql.stop().await;
        self.factory.stop().await;
    }
}

/// Makes a Secret that has the canary everywhere; returns its version.
async fn create(bench: &Bench, name: &str) -> String {
    let secret = json!({
        "metadata": {
            "name": format!("{CANARY}-{name}"),
            "labels": {format!("{CANARY}-label"): CANARY},
            "annotations": {"note": format!("{CANARY} note {name}")},
        },
        "stringData": {CANARY: CANARY},
    });
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let created = api
        .create(&PostParams::default(), &secret)
        .await
        .expect("created");
    created.metadata.resource_version.expect("a version")
}

/// Returns whether a text, or its base64 form, is in any file of the folder.
fn is_found(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).expect("a folder");
    files.flatten().any(|file| {
        let bytes = std::fs::read(file.path()).expect("readable");
        let found = |text: &str| {
            bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        found(CANARY) || found("Y2FuYXJ5LTlmMmM2M")
    })
}

#[tokio::test]
async fn nothing_of_a_secret_is_in_any_file_and_queries_find_it() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    create(&bench, "b").await;
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    let version = create(&bench, "a").await;
    let all = [format!("{CANARY}-a"), format!("{CANARY}-b")];
    let is_labelled = Query::new().filter(label(&format!("{CANARY}-label")).equals(CANARY));
    assert_eq!(process.names(is_labelled, &version).await, all);
    let is_noted = Query::new().filter(field("metadata.annotations.note").like("NOTE b"));
    assert_eq!(process.names(is_noted, &version).await, all[1..]);
    assert_eq!(
        process.names(Query::new().search("note a"), &version).await,
        all[..1]
    );
    assert!(!is_found(&folder.0), "while it is open, in the log too");
    process.stop().await;
    assert!(!is_found(&folder.0), "after it is closed");
}

#[tokio::test]
async fn a_cursor_of_an_encrypted_kind_shows_nothing_and_works() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    create(&bench, "a").await;
    let version = create(&bench, "b").await;
    let by_label = || {
        let label = label(&format!("{CANARY}-label"));
        let query = Query::new().sort(label).limit(1);
        query.at_least(version.parse().expect("a version"))
    };
    let first = process.kind.query(&by_label()).await.expect("answered");
    let cursor = first.next.expect("there are more");
    let bytes = URL_SAFE_NO_PAD.decode(&cursor).expect("base64");
    let found = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(!found(CANARY.as_bytes()) && !found(b"default"));
    let next = process.kind.query(&by_label().after(&cursor)).await;
    let next = next.expect("answered");
    assert_eq!(next.objects[0].key.name(), format!("{CANARY}-b"));
    // One that was made without the key.
    let forged = URL_SAFE_NO_PAD.encode(r#"["","0",["x","default",{"b":"YQBh"}]]"#);
    for cursor in [forged.as_str(), "", "x", &cursor[4..]] {
        let error = process.kind.query(&by_label().after(cursor)).await;
        let error = error.expect_err("it is no cursor of the query");
        assert!(
            matches!(error, SqlError::Query(QueryError::Cursor(_))),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_search_for_the_canary_finds_it_in_plain_text() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("one"), format!("a{CANARY}b")).expect("written");
    assert!(is_found(&folder.0));
}

#[tokio::test]
async fn a_restart_needs_the_key_and_another_is_an_error_that_names_both() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    let version = create(&bench, "a").await;
    assert_eq!(process.names(Query::new(), &version).await.len(), 1);
    process.stop().await;
    let error = open(&bench, &file, Some(key(2)))
        .await
        .err()
        .expect("another key");
    assert!(error.to_string().contains("sealed with key"), "{error}");
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    assert_eq!(process.names(Query::new(), &version).await.len(), 1);
}

#[tokio::test]
async fn rows_of_before_a_rotation_of_either_key_are_read() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    let version = create(&bench, "a").await;
    assert_eq!(process.names(Query::new(), &version).await.len(), 1);
    process.sql.rotate_data_key().await.expect("rotated");
    let version = create(&bench, "b").await;
    assert_eq!(process.names(Query::new(), &version).await.len(), 2);
    process.stop().await;
    let both = key(2).with_old(key(1));
    let process = open(&bench, &file, Some(both)).await.expect("opened");
    assert_eq!(process.names(Query::new(), &version).await.len(), 2);
    process.stop().await;
    // It is wrapped by the new key alone by now.
    assert!(open(&bench, &file, Some(key(2))).await.is_ok());
    assert!(!is_found(&folder.0));
}

/// Returns the stored keyring of a file, and the data keys that have sealed its rows.
async fn stored(file: &Path) -> (Keyring, BTreeSet<DataKeyId>) {
    let database = rusqlite::Connection::open(file).expect("opened");
    let stored: Vec<u8> = database
        .query_row("SELECT stored FROM keyring", [], |row| row.get(0))
        .expect("it is there");
    let table = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'sealed%'";
    let table: String = database
        .query_row(table, [], |row| row.get(0))
        .expect("one kind");
    let mut values = database
        .prepare(&format!(
            "SELECT content FROM {table} UNION SELECT json FROM {table}"
        ))
        .expect("a query");
    let values = values.query_map([], |row| row.get(0)).expect("rows");
    let sealed = values.map(|value: rusqlite::Result<Vec<u8>>| {
        Keyring::data_key_of(&value.expect("bytes")).expect("sealed")
    });
    let keyring = Keyring::load(&stored, &key(1)).await.expect("the key");
    (keyring, sealed.collect())
}

impl Process {
    /// Waits until all rows are sealed with the current data key.
    async fn is_renewed(&self) {
        while self.kind.status().old_data_keys > 0 {
            time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn after_a_rotation_the_old_keyring_opens_nothing() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let mut version = String::new();
    for number in 0..45 {
        version = create(&bench, &format!("n{number}")).await;
    }
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    assert_eq!(process.names(Query::new(), &version).await.len(), 45);
    let (before, sealed_with) = stored(&file).await;
    assert!(before.data_keys().eq(sealed_with));
    process.sql.rotate_data_key().await.expect("rotated");
    assert_eq!(process.kind.status().old_data_keys, 1);
    // Answered and written meanwhile.
    let version = create(&bench, "late").await;
    assert_eq!(process.names(Query::new(), &version).await.len(), 46);
    process.is_renewed().await;
    assert_eq!(process.kind.status().old_rows, 0);
    let (after, sealed_with) = stored(&file).await;
    assert!(after.data_keys().eq(sealed_with.iter().copied()));
    assert!(before.data_keys().all(|key| !sealed_with.contains(&key)));
    assert_eq!(process.names(Query::new(), &version).await.len(), 46);
    process.stop().await;
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    assert_eq!(process.names(Query::new(), &version).await.len(), 46);
}

/// Returns whether a value that a data key has sealed is anywhere in a file.
fn is_in(file: &Path, key: DataKeyId) -> bool {
    let id = u32::from_str_radix(&key.to_string(), 16).expect("hex");
    let begin = [&[1], id.to_be_bytes().as_slice()].concat();
    let bytes = std::fs::read(file).expect("readable");
    bytes.windows(begin.len()).any(|window| window == begin)
}

/// Rows that were deleted before the rotation are in free pages.
#[tokio::test]
async fn the_start_after_a_rotation_leaves_no_byte_of_old_rows_in_the_file() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    for number in 0..40 {
        create(&bench, &format!("n{number}")).await;
    }
    let version = create(&bench, "last").await;
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    assert_eq!(process.names(Query::new(), &version).await.len(), 41);
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    for number in 0..40 {
        let name = format!("{CANARY}-n{number}");
        let deleted = api.delete(&name, &DeleteParams::default()).await;
        drop(deleted.expect("deleted"));
    }
    let version = create(&bench, "later").await;
    assert_eq!(process.names(Query::new(), &version).await.len(), 2);
    let old = stored(&file).await.0.current_data_key();
    process.sql.rotate_data_key().await.expect("rotated");
    process.is_renewed().await;
    process.stop().await;
    assert!(is_in(&file, old), "in free pages");
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    assert_eq!(process.names(Query::new(), &version).await.len(), 2);
    process.stop().await;
    assert!(!is_in(&file, old));
    assert!(is_in(&file, stored(&file).await.0.current_data_key()));
}

#[tokio::test]
async fn queries_are_answered_while_keys_are_replaced() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let mut version = String::new();
    for number in 0..30 {
        version = create(&bench, &format!("n{number}")).await;
    }
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    assert_eq!(process.names(Query::new(), &version).await.len(), 30);
    let rotate = async {
        for _ in 0..10 {
            process.sql.rotate_data_key().await.expect("rotated");
            process.is_renewed().await;
        }
    };
    let query = async {
        loop {
            assert_eq!(process.names(Query::new(), &version).await.len(), 30);
        }
    };
    tokio::select! {
        () = rotate => {}
        () = async { tokio::join!(query, async {
            loop {
                assert_eq!(process.names(Query::new().page(1, 5), &version).await.len(), 5);
            }
        }); } => {}
    }
}

#[tokio::test]
async fn the_next_process_goes_on_with_a_rotation_that_was_stopped() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let mut version = String::new();
    for number in 0..100 {
        version = create(&bench, &format!("n{number}")).await;
    }
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    assert_eq!(process.names(Query::new(), &version).await.len(), 100);
    process.sql.rotate_data_key().await.expect("rotated");
    process.stop().await;
    let (keyring, sealed_with) = stored(&file).await;
    assert_eq!(keyring.old_data_keys(), 1, "it was stopped before the end");
    assert!(sealed_with.contains(&keyring.data_keys().next().expect("the old one")));
    let process = open(&bench, &file, Some(key(1))).await.expect("opened");
    process.is_renewed().await;
    let (keyring, sealed_with) = stored(&file).await;
    assert!(keyring.data_keys().eq(sealed_with));
    assert_eq!(process.names(Query::new(), &version).await.len(), 100);
}

#[tokio::test]
async fn secrets_are_in_no_file_without_a_key() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let error = open(&bench, &folder.0.join("cache.db"), None).await.err();
    assert!(matches!(error, Some(SqlError::NoKey { .. })));
    assert!(
        std::fs::read_dir(&folder.0)
            .expect("a folder")
            .next()
            .is_none()
    );
}

/// Opens a file with the ConfigMaps, sealed or plain.
async fn open_maps(bench: &Bench, file: &Path, is_sealed: bool) -> bench::Process {
    let configure = |builder: SqlCacheBuilder| {
        if is_sealed {
            builder.sealed(Sealing::of_everything(key(1)))
        } else {
            builder
        }
    };
    bench.start_with(Some(file), configure).await
}

#[tokio::test]
async fn plain_text_of_before_a_kind_is_sealed_is_in_no_file() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let version = bench.create("a", json!({"color": CANARY})).await;
    let process = open_maps(&bench, &file, false).await;
    process.at(Query::new(), &version).await;
    process.stop().await;
    assert!(is_found(&folder.0), "it is plain");
    let process = open_maps(&bench, &file, true).await;
    process.at(Query::new(), &version).await;
    process.stop().await;
    assert!(!is_found(&folder.0));
}

/// A process that is killed after it has dropped the plain tables leaves the mark, and plain text in free pages.
#[tokio::test]
async fn free_pages_are_cleaned_by_the_next_process_if_one_is_killed_before() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let version = bench.create("a", json!({})).await;
    let process = open_maps(&bench, &file, true).await;
    process.at(Query::new(), &version).await;
    process.stop().await;
    let database = rusqlite::Connection::open(&file).expect("opened");
    let killed = format!(
        "PRAGMA secure_delete = OFF; CREATE TABLE before (a); INSERT INTO before VALUES ('{CANARY}'); DROP TABLE before;
         UPDATE kinds SET signature = 'unclean ' || signature;"
    );
    database.execute_batch(&killed).expect("written");
    database.close().expect("closed");
    assert!(is_found(&folder.0), "it is in a free page");
    let process = open_maps(&bench, &file, true).await;
    assert!(!process.at(Query::new(), &version).await.objects.is_empty());
    assert!(!is_found(&folder.0));
    process.stop().await;
}

#[tokio::test]
async fn a_cache_without_a_key_has_none_to_rotate() {
    let process = Bench::new().await.start(None).await;
    let error = process.sql.rotate_data_key().await.expect_err("no key");
    assert!(matches!(error, SqlError::NotSealed), "{error}");
}
