//! Files that were cut, overwritten or belong to something else.

use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;

use lariat_sql::{Query, field};
use serde_json::json;

use crate::bench::{Bench, Folder};

#[tokio::test]
async fn a_file_that_was_cut_anywhere_is_filled_again() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    for number in 0..40 {
        let data = json!({"size": number.to_string(), "color": "x".repeat(500)});
        bench.create(&format!("n{number}"), data).await;
    }
    let version = bench.create("last", json!({})).await;
    let process = bench.start(Some(&file)).await;
    let by_size = || Query::new().sort_descending(field("data.size")).limit(5);
    let expected = process.at(by_size(), &version).await.objects;
    process.stop().await;
    let whole = std::fs::read(&file).expect("readable");
    for part in 0..12 {
        std::fs::write(&file, &whole[..whole.len() * part / 12]).expect("written");
        let process = bench.start(Some(&file)).await;
        assert_eq!(
            process.at(by_size(), &version).await.objects,
            expected,
            "{part} of 12"
        );
        process.stop().await;
    }
}

#[tokio::test]
async fn a_file_of_something_else_is_refused_and_left_alone() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let text = folder.0.join("notes.txt");
    std::fs::write(&text, "not a database").expect("written");
    let other = folder.0.join("other.db");
    let database = rusqlite::Connection::open(&other).expect("opened");
    database
        .execute_batch("CREATE TABLE mine (a); INSERT INTO mine VALUES (1);")
        .expect("created");
    drop(database);
    let factory = lariat_cache::SharedCacheFactory::new(bench.cluster.client());
    for file in [text, other] {
        let before = std::fs::read(&file).expect("readable");
        let started = lariat_sql::SqlCache::builder(&factory)
            .in_file(&file)
            .start()
            .await;
        let error = started.expect_err("it is something else").to_string();
        assert!(
            error.contains("use the path of a cache or of a new file"),
            "{error}"
        );
        assert_eq!(
            std::fs::read(&file).expect("readable"),
            before,
            "{}",
            file.display()
        );
    }
}

#[tokio::test]
async fn a_second_cache_is_refused_the_file_until_the_first_is_dropped() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let version = bench.create("one", json!({})).await;
    let first = bench.start(Some(&file)).await;
    let factory = lariat_cache::SharedCacheFactory::new(bench.cluster.client());
    let second = || {
        lariat_sql::SqlCache::builder(&factory)
            .in_file(&file)
            .start()
    };
    let error = second().await.expect_err("the first has it").to_string();
    let process = format!("is in use by process {}", std::process::id());
    assert!(error.contains(&process), "{error}");
    assert!(!first.at(Query::new(), &version).await.objects.is_empty());
    first.stop().await;
    second().await.expect("it is free");
}

#[tokio::test]
async fn tables_of_kinds_that_are_not_configured_any_more_are_dropped() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let version = bench.create("one", json!({})).await;
    let process = bench.start(Some(&file)).await;
    process.at(Query::new(), &version).await;
    process.stop().await;
    let factory = lariat_cache::SharedCacheFactory::new(bench.cluster.client());
    let without = lariat_sql::SqlCache::builder(&factory).in_file(&file);
    without.start().await.expect("started").stop().await;
    let database = rusqlite::Connection::open(&file).expect("opened");
    let tables = "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table'";
    let tables: String = database
        .query_row(tables, [], |row| row.get(0))
        .expect("read");
    assert_eq!(tables, "kinds,keyring");
}

#[tokio::test]
async fn a_file_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let version = bench.create("one", json!({})).await;
    let process = bench.start(Some(&file)).await;
    process.at(Query::new(), &version).await;
    for file in std::fs::read_dir(&folder.0).expect("a folder").flatten() {
        let mode = file.metadata().expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.path().display());
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_made_is_an_error_that_names_it() {
    let bench = Bench::new().await;
    let factory = lariat_cache::SharedCacheFactory::new(bench.cluster.client());
    let started = lariat_sql::SqlCache::builder(&factory)
        .in_file("/nowhere/cache.db")
        .start()
        .await;
    let error = started.expect_err("there is no such folder");
    assert!(
        error
            .to_string()
            .starts_with("the cache /nowhere/cache.db cannot be opened"),
        "{error}"
    );
}

#[tokio::test]
async fn file_is_checked_before_anything_is_read_from_it() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let factory = lariat_cache::SharedCacheFactory::new(bench.cluster.client());
    let start = |file: &Path| {
        lariat_sql::SqlCache::builder(&factory)
            .in_file(file)
            .start()
    };
    let path = |name: &str| folder.0.join(name);
    // Opening a pipe waits for its other end.
    let made = Command::new("mkfifo").arg(path("pipe")).status();
    assert!(made.expect("mkfifo is installed").success());
    symlink(path("pipe"), path("link")).expect("linked");
    symlink(path("missing"), path("dangling")).expect("linked");
    for (name, reason) in [
        ("pipe", "it is not a regular file"),
        ("link", "it is a symbolic link"),
        ("dangling", "it is a symbolic link"),
    ] {
        let error = start(&path(name)).await.expect_err(name).to_string();
        assert!(error.contains(reason), "{error}");
    }
    // Only root can give a file away.
    std::fs::write(path("foreign"), "notes").expect("written");
    if chown(path("foreign"), Some(65_534), None).is_ok() {
        let error = start(&path("foreign")).await.expect_err("it is foreign");
        assert!(
            error.to_string().contains("it belongs to another user"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn log_that_is_linked_or_foreign_is_refused() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let factory = lariat_cache::SharedCacheFactory::new(bench.cluster.client());
    let file = folder.0.join("cache.db");
    let start = || {
        lariat_sql::SqlCache::builder(&factory)
            .in_file(&file)
            .start()
    };
    for suffix in ["-wal", "-shm"] {
        let (log, victim) = (
            folder.0.join(format!("cache.db{suffix}")),
            folder.0.join("victim"),
        );
        std::fs::write(&victim, "content").expect("written");
        symlink(&victim, &log).expect("linked");
        let error = start().await.expect_err("it is a link").to_string();
        assert!(error.contains("it is a symbolic link"), "{error}");
        assert!(error.contains(suffix), "{error}");
        assert_eq!(std::fs::read_to_string(&victim).expect("read"), "content");
        std::fs::remove_file(&log).expect("removed");
        std::fs::write(&log, "").expect("written");
        // Only root can give a file away.
        if chown(&log, Some(65_534), None).is_ok() {
            let error = start().await.expect_err("it is foreign").to_string();
            assert!(error.contains("it belongs to another user"), "{error}");
        }
        std::fs::remove_file(&log).expect("removed");
    }
    start().await.expect("there are no logs").stop().await;
}
