//! Clusters that outlive their process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::bench::{Bench, CONFIG_MAPS, DEFINITIONS, text, version};
use crate::informer::{Informer, contents};
use crate::kinds::{WIDGETS, definition, widget};
use crate::snapshots::{paused, put};
use http::StatusCode;
use lariat_cluster::Cluster;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

/// A directory of one test, which goes with it.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("{test}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).expect("the target directory can be written");
        Self(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("cluster.db")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(crate) async fn try_open(file: &Path) -> std::io::Result<Bench> {
    let builder = Cluster::builder().history(1000).seed(1).data(file);
    let cluster = builder.start().await?;
    Ok(Bench { cluster })
}

pub(crate) async fn open(file: &Path) -> Bench {
    try_open(file).await.expect("the file can be used")
}

#[tokio::test(start_paused = true)]
async fn what_the_server_makes_is_there_once_after_a_restart() {
    let directory = Directory::new("own-objects");
    let bench = open(&directory.file()).await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let class = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical";
    bench.delete(class).await;
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = format!("{services}/v1.demo.dev");
    while bench.get(&service).await.code != StatusCode::OK {
        sleep(Duration::from_millis(1)).await;
    }
    let before = bench.get(services).await.json()["items"].clone();
    bench.cluster.shutdown().await;
    let bench = open(&directory.file()).await;
    assert_eq!(bench.get(services).await.json()["items"], before);
    assert_eq!(
        bench.get(class).await.code,
        StatusCode::OK,
        "as on a real server"
    );
    bench.cluster.shutdown().await;
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

    // A mode that lets others read it is taken back.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(directory.file(), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let bench = open(&directory.file()).await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let permissions = fs::metadata(directory.file()).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
    }
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

#[cfg(feature = "workloads")]
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
