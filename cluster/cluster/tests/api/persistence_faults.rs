//! What becomes of a data file when power, process or disk fail.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures::future::join_all;
use http::StatusCode;
#[cfg(feature = "signatures")]
use lariat_cluster::Cluster;
use serde_json::json;

use crate::bench::{CONFIG_MAPS, text, version};
use crate::informer::contents;
use crate::persistence::{Directory, open, try_open};
use crate::snapshots::paused;

/// Copies a file and its write-ahead log while the cluster runs, as a power cut leaves them.
fn image(directory: &Directory, name: &str) -> PathBuf {
    let copy = directory.0.join(name);
    for suffix in ["", "-wal"] {
        let with = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        fs::copy(with(&directory.file()), with(&copy)).expect("it can be copied");
    }
    copy
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_loses_nothing_that_was_answered() {
    let directory = Directory::new("power-cut");
    let bench = open(&directory.file()).await;
    for round in 0..5 {
        let names: Vec<String> = (0..20).map(|at| format!("{round}-{at:02}")).collect();
        // They come together, so they share flushes; none is answered before its own.
        join_all(names.iter().map(|name| bench.config_map(name, json!({})))).await;
        let copy = image(&directory, &format!("copy-{round}.db"));
        let revived = open(&copy).await;
        assert_eq!(
            contents(&revived.get(CONFIG_MAPS).await.json()),
            contents(&bench.get(CONFIG_MAPS).await.json()),
        );
        revived.cluster.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_torn_write_loses_the_end_and_nothing_before_it() {
    let directory = Directory::new("torn");
    let bench = open(&directory.file()).await;
    let mut versions = Vec::new();
    for number in 0..20 {
        let object = bench.config_map(&format!("{number:02}"), json!({})).await;
        versions.push(version(&object));
    }
    let all = bench.names(CONFIG_MAPS).await;
    let wal = PathBuf::from(format!("{}-wal", directory.file().display()));
    let length = fs::metadata(&wal).unwrap().len();
    let mut survivors = Vec::new();
    for cut in [1, 100, 5000, 20_000, 50_000] {
        let copy = image(&directory, &format!("cut-{cut}.db"));
        let torn = PathBuf::from(format!("{}-wal", copy.display()));
        let torn = fs::OpenOptions::new().write(true).open(torn).unwrap();
        torn.set_len(length - cut).unwrap();
        let bench = open(&copy).await;
        let names = bench.names(CONFIG_MAPS).await;
        assert_eq!(names, all[..names.len()], "after a cut of {cut} bytes");
        survivors.push(names.len());
        // It goes on from there.
        bench.config_map("new", json!({})).await;
        bench.cluster.shutdown().await;
    }
    assert!(survivors.is_sorted_by(|a, b| a >= b), "{survivors:?}");
    assert_eq!(survivors[0], all.len() - 1);
    assert!(survivors[4] < survivors[0], "{survivors:?}");
}

const CHILD: &str = "LARIAT_TEST_DATA";

/// What the child process of the test below does; in a run of all tests it has nothing to do.
#[test]
fn a_child_writes_until_it_is_killed() {
    let Some(file) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let bench = open(Path::new(&file)).await;
        for round in 0.. {
            let writers = (0..8).map(|writer| {
                let name = format!("{round:06}-{writer}");
                let bench = &bench;
                async move {
                    let object = bench.config_map(&name, json!({})).await;
                    println!("answered {name} {}", text(&object, "/metadata/uid"));
                }
            });
            join_all(writers).await;
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_that_was_answered() {
    let directory = Directory::new("killed");
    for run in 1..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "persistence_faults::a_child_writes_until_it_is_killed",
                "--nocapture",
            ])
            .env(CHILD, directory.0.join(format!("{run}.db")))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut answered = BTreeMap::new();
        let mut read = |line: String| {
            let mut words = line
                .split(' ')
                .skip_while(|word| !word.ends_with("answered"));
            // The last line may be cut off.
            if let (Some(_), Some(name), Some(uid)) = (words.next(), words.next(), words.next())
                && uid.len() == 36
            {
                answered.insert(name.to_owned(), uid.to_owned());
            }
            answered.len()
        };
        while read(lines.next().unwrap().unwrap()) < run * 40 {}
        let file = directory.0.join(format!("{run}.db"));
        if run == 1 {
            paused(async {
                let error = try_open(&file).await.err().expect("it is refused");
                assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy, "{error}");
            });
        }
        child.kill().unwrap();
        for line in lines {
            read(line.unwrap());
        }
        child.wait().unwrap();
        assert!(answered.len() >= run * 40);
        paused(async {
            let bench = open(&file).await;
            let list = bench.get(CONFIG_MAPS).await.json();
            let items = list["items"].as_array().unwrap().iter();
            let stored: BTreeMap<&str, &str> = items
                .map(|item| (text(item, "/metadata/name"), text(item, "/metadata/uid")))
                .collect();
            for (name, uid) in &answered {
                assert_eq!(stored.get(&**name), Some(&&**uid), "{name} is lost");
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_used_is_named() {
    let directory = Directory::new("refused");
    let check = async |file: &Path, expected: &str| {
        let error = try_open(file).await.err().expect("it is refused");
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(&*file.to_string_lossy()), "{text}");
    };
    let bench = open(&directory.file()).await;
    check(&directory.file(), "is in use by another cluster").await;
    bench.cluster.shutdown().await;
    open(&directory.file()).await.cluster.shutdown().await;

    check(&directory.0.join("missing/cluster.db"), "unable to open").await;
    check(&directory.0, "unable to open").await;
    let foreign = directory.0.join("notes.txt");
    let notes = "Dear diary, ".repeat(1000);
    fs::write(&foreign, &notes).unwrap();
    check(&foreign, "is not a data file of a cluster").await;
    assert_eq!(fs::read_to_string(&foreign).unwrap(), notes);

    let sqlite = directory.0.join("songs.db");
    let songs = rusqlite::Connection::open(&sqlite).unwrap();
    songs
        .execute_batch("CREATE TABLE songs (name TEXT)")
        .unwrap();
    drop(songs);
    let before = fs::read(&sqlite).unwrap();
    check(&sqlite, "is not a data file of a cluster").await;
    assert_eq!(fs::read(&sqlite).unwrap(), before);

    let change = |sql: &str| {
        let file = rusqlite::Connection::open(directory.file()).unwrap();
        file.execute_batch(sql).unwrap();
    };
    change("PRAGMA user_version = 2");
    check(
        &directory.file(),
        "has format 2, and this version reads format 1",
    )
    .await;
    change("PRAGMA user_version = 1");
    change("UPDATE log SET value = CAST('{' AS BLOB) WHERE rv = 501");
    check(&directory.file(), "is damaged at version 501").await;
}

#[cfg(feature = "signatures")]
#[tokio::test]
async fn a_damaged_key_of_tokens_is_an_error_that_names_the_file() {
    let directory = Directory::new("key");
    let start = || Cluster::builder().data(directory.file()).start();
    start().await.unwrap().shutdown().await;
    let file = rusqlite::Connection::open(directory.file()).unwrap();
    let changed = file.execute("UPDATE keys SET value = x'00'", []).unwrap();
    drop(file);
    assert_eq!(changed, 1);
    let error = start().await.unwrap_err().to_string();
    assert!(
        error.contains("has a key of tokens that cannot be used"),
        "{error}"
    );
    assert!(
        error.contains(&*directory.file().to_string_lossy()),
        "{error}"
    );
}

#[tokio::test]
async fn a_disk_that_takes_nothing_fails_requests_until_it_does_again() {
    let directory = Directory::new("full");
    open(&directory.file()).await.cluster.shutdown().await;
    // The disk refuses one object for a while: long enough for the start, and the first write, to be over.
    let file = rusqlite::Connection::open(directory.file()).unwrap();
    let end = "SELECT unixepoch('subsec') + 3";
    let end: f64 = file.query_row(end, [], |row| row.get(0)).unwrap();
    let trigger = format!(
        "CREATE TRIGGER full BEFORE INSERT ON log
         WHEN NEW.name = 'b' AND unixepoch('subsec') < {end}
         BEGIN SELECT RAISE(ABORT, 'no space left'); END"
    );
    file.execute_batch(&trigger).unwrap();
    drop(file);

    let bench = open(&directory.file()).await;
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    bench.config_map("a", json!({})).await;
    assert_eq!(watch.short().await, "ADDED a");
    let object = json!({"metadata": {"name": "b"}});
    let refused = bench.post(CONFIG_MAPS, &object).await;
    assert_eq!(refused.code, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(refused.text.contains("no space left"), "{}", refused.text);
    assert!(refused.text.contains(&*directory.file().to_string_lossy()));
    // A second later the disk is asked again, and then all of it is seen.
    assert_eq!(watch.short().await, "ADDED b");
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b"]);
}
