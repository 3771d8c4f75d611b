//! Clusters that outlive their process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench::{Bench, CONFIG_MAPS, DEFINITIONS, text, version};
use crate::informer::{Informer, contents};
use crate::kinds::{WIDGETS, definition, widget};
use crate::snapshots::{paused, put};
use futures::future::join_all;
use http::StatusCode;
use lariat_cluster::Cluster;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

/// A directory of one test, which goes with it.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("{test}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).expect("the target directory can be written");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("cluster.db")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

async fn try_open(file: &Path) -> std::io::Result<Bench> {
    let builder = Cluster::builder().history(1000).seed(1).data(file);
    let cluster = builder.start().await?;
    Ok(Bench { cluster })
}

async fn open(file: &Path) -> Bench {
    try_open(file).await.expect("the file can be used")
}

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
async fn objects_kinds_and_watches_go_on_after_a_restart() {
    let directory = Directory::new("restart");
    let bench = open(&directory.file()).await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench.post(WIDGETS, &widget("w")).await;
    bench.config_map("a", json!({})).await;
    bench.config_map("b", json!({})).await;
    let mut informer = Informer::start(&bench, CONFIG_MAPS).await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let permissions = fs::metadata(directory.file()).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
    }
    let quiet = version(&bench.get("/api/v1/secrets").await.json());
    bench
        .merge(&format!("{CONFIG_MAPS}/a"), json!({"data": {"a": "2"}}))
        .await;
    bench.delete(&format!("{CONFIG_MAPS}/b")).await;
    let before = bench.get(CONFIG_MAPS).await.json();
    bench.cluster.shutdown().await;

    let bench = open(&directory.file()).await;
    let after = bench.get(CONFIG_MAPS).await.json();
    assert_eq!(contents(&after), contents(&before));
    let (was, is) = (version(&before), version(&after));
    assert!(
        (was + 1..was + 100).contains(&is),
        "{was} was followed by {is}"
    );
    assert_eq!(bench.names(WIDGETS).await, ["w"]);
    // What the informer missed before the end it sees now, and then what follows.
    informer.resume(&bench).await;
    bench.config_map("c", json!({})).await;
    informer.check(&bench).await;
    // So does one of a resource nothing has happened to.
    let query = format!("/api/v1/secrets?watch=1&resourceVersion={quiet}");
    let mut secrets = bench.watch(&query).await;
    let secret = json!({"metadata": {"name": "s"}});
    bench
        .post("/api/v1/namespaces/default/secrets", &secret)
        .await;
    assert_eq!(secrets.short().await, "ADDED s");
    // The same seed makes other uids than before.
    let uids: BTreeMap<String, ()> = bench.cluster_uids().await;
    assert_eq!(uids.len(), bench.cluster.snapshot().objects());
}

impl Bench {
    /// Returns the uids of everything the tests here create, and of what every cluster has.
    async fn cluster_uids(&self) -> BTreeMap<String, ()> {
        let mut uids = BTreeMap::new();
        let groups = self.get("/apis").await.json();
        let groups = groups["groups"].as_array().cloned().unwrap_or_default();
        let versions = groups
            .iter()
            .map(|group| text(group, "/preferredVersion/groupVersion"));
        let mut paths: Vec<String> = versions.map(|version| format!("/apis/{version}")).collect();
        paths.push("/api/v1".to_owned());
        for path in paths {
            let resources = self.get(&path).await.json();
            for resource in resources["resources"].as_array().into_iter().flatten() {
                let list = self
                    .get(&format!("{path}/{}", text(resource, "/name")))
                    .await;
                let list: Value = serde_json::from_str(&list.text).unwrap_or_default();
                let items = list["items"].as_array().cloned().unwrap_or_default();
                uids.extend(
                    items
                        .iter()
                        .map(|item| (text(item, "/metadata/uid").to_owned(), ())),
                );
            }
        }
        uids
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_forgotten_stays_forgotten_and_raised_versions_stay_raised() {
    use lariat_cluster::faults::{Action, Rule};
    let directory = Directory::new("compaction");
    let bench = open(&directory.file()).await;
    let old = version(&bench.config_map("a", json!({})).await);
    bench
        .cluster
        .faults()
        .add(Rule::new(Action::SkipVersions(1_000_000)).nth(1));
    bench.get(CONFIG_MAPS).await;
    bench.cluster.compact();
    bench.cluster.shutdown().await;
    let bench = open(&directory.file()).await;
    let exact = format!("{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    bench.get(&exact).await.fails(410, "Expired");
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
    assert!(version(&bench.get(CONFIG_MAPS).await.json()) > 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_going_goes_on_going_after_a_restart() {
    let directory = Directory::new("going");
    let bench = open(&directory.file()).await;
    let widgets = definition("widgets", "Widget", "Namespaced");
    bench.define(&widgets).await;
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["demo.dev/hold"]);
    bench.post(WIDGETS, &held).await;
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    bench.delete(&path).await;
    sleep(Duration::from_secs(1)).await;
    bench.cluster.shutdown().await;

    let bench = open(&directory.file()).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.names(WIDGETS).await, ["held"]);
    bench
        .post(WIDGETS, &widget("new"))
        .await
        .fails(403, "Forbidden");
    let release = json!({"metadata": {"finalizers": null}});
    bench.merge(&format!("{WIDGETS}/held"), release).await;
    while bench.get(&path).await.code == StatusCode::OK {
        sleep(Duration::from_millis(10)).await;
    }
    bench.define(&widgets).await;
    assert!(bench.names(WIDGETS).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rewind_and_a_restore_survive_and_a_snapshot_seeds_only_a_new_file() {
    let directory = Directory::new("rewind");
    let bench = open(&directory.file()).await;
    bench.config_map("a", json!({})).await;
    let snapshot = bench.cluster.snapshot();
    bench.config_map("b", json!({})).await;
    bench.cluster.rewind_to(&snapshot).await.unwrap();
    bench.config_map("c", json!({})).await;
    bench.cluster.shutdown().await;
    let bench = open(&directory.file()).await;
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "c"]);
    bench.cluster.restore(&snapshot).await.unwrap();
    bench.cluster.shutdown().await;
    let bench = open(&directory.file()).await;
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
    bench.config_map("d", json!({})).await;
    bench.cluster.shutdown().await;

    let other = directory.0.join("other.db");
    for (file, expected) in [(other, vec!["a"]), (directory.file(), vec!["a", "d"])] {
        let builder = Cluster::builder().data(&file).from_snapshot(&snapshot);
        let bench = Bench {
            cluster: builder.start().await.unwrap(),
        };
        assert_eq!(bench.names(CONFIG_MAPS).await, expected);
        bench.cluster.shutdown().await;
        assert_eq!(open(&file).await.names(CONFIG_MAPS).await, expected);
    }
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
                "persistence::a_child_writes_until_it_is_killed",
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_reopened_cluster_has_the_content_and_the_history_it_had(
        steps in prop::collection::vec((0_u8..6, 0_u8..8), 1..60),
    ) {
        paused(async {
            let directory = Directory::new("model");
            let mut bench = open(&directory.file()).await;
            let mut informer = Informer::start(&bench, CONFIG_MAPS).await;
            for (at, (number, what)) in steps.iter().enumerate() {
                match what {
                    0 => {
                        let now = version(&bench.get(CONFIG_MAPS).await.json());
                        let before = observed(&bench, now).await;
                        bench.cluster.shutdown().await;
                        bench = open(&directory.file()).await;
                        assert_eq!(observed(&bench, now).await, before);
                        informer.resume(&bench).await;
                    }
                    1 => informer.check(&bench).await,
                    2 | 3 => {
                        bench.delete(&format!("{CONFIG_MAPS}/object-{number}")).await;
                    }
                    _ => put(&bench, *number, at).await,
                }
            }
            informer.check(&bench).await;
        });
    }
}

/// Returns the objects as they are and as they were at every version there is history of.
async fn observed(bench: &Bench, to: u64) -> Vec<BTreeMap<String, Value>> {
    let list = bench.get(CONFIG_MAPS).await.json();
    let mut states = vec![contents(&list)];
    for at in 505..to {
        let path = format!("{CONFIG_MAPS}?resourceVersion={at}&resourceVersionMatch=Exact");
        states.push(contents(&bench.get(&path).await.json()));
    }
    states
}

#[tokio::test(start_paused = true)]
async fn roles_and_nodes_of_the_start_are_there_once_after_a_restart() {
    use lariat_cluster::Workloads;
    let directory = Directory::new("again");
    let mut addresses = Vec::new();
    for name in ["first", "second"] {
        let builder = Cluster::builder().seed(1).token("t").rbac();
        let builder = builder.simulate_workloads(Workloads::default());
        let cluster = builder.data(directory.file()).start().await;
        let bench = Bench {
            cluster: cluster.expect("it starts with what it has"),
        };
        let pods = "/api/v1/namespaces/default/pods";
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let answer = bench.post(pods, &pod).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
        sleep(Duration::from_secs(5)).await;
        let pod = bench.get(&format!("{pods}/{name}")).await.json();
        addresses.push(text(&pod, "/status/podIP").to_owned());
        assert_eq!(bench.names("/api/v1/nodes").await, ["node-1"]);
        bench.cluster.shutdown().await;
    }
    assert_ne!(addresses[0], addresses[1]);
}
