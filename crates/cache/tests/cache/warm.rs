//! Restarts that go on where the last run ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams, PostParams};
use lariat_cache::{ContentFilter, Informer, KindOptions, Phase, Selection, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_core::{Gvk, ObjectKey};
use lariat_seal::Sealing;
use serde_json::json;

use crate::bench::{MINUTE, Recorder, Writer, cluster, config_maps, eventually};
use crate::warm_sealed::key;

/// A folder that is removed with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("the folder can be written");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("core.v1.ConfigMap.gz")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn started(
    cluster: &Cluster,
    folder: &Folder,
    options: KindOptions,
) -> (SharedCacheFactory, Informer) {
    let factory = SharedCacheFactory::builder(cluster.client())
        .default_options(options)
        .warm_restart(&folder.0)
        // Without a key nothing is left of Secrets.
        .seal_warm_files(Sealing::of_kinds([], key(1)))
        .build();
    let informer = factory.for_kind(config_maps());
    informer.need::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    (factory, informer)
}

/// A cluster of which an earlier run has left three objects.
async fn left(folder: &Folder) -> (Cluster, Writer) {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    for name in ["a", "b", "c"] {
        writer.create(name).await;
    }
    writer.change("a", "some value").await;
    let (factory, _informer) = started(&cluster, folder, KindOptions::default()).await;
    factory.stop().await;
    (cluster, writer)
}

fn reads(cluster: &Cluster) -> (usize, usize) {
    let requests = cluster.journal().requests();
    let reads = requests.iter().filter(|r| r.resource == "configmaps");
    let streams = |r: &&lariat_cluster::RecordedRequest| r.query.contains("sendInitialEvents");
    let streams = reads.clone().filter(streams).count();
    (
        streams,
        reads.filter(|r| r.verb == "watch").count() - streams,
    )
}

#[tokio::test(start_paused = true)]
async fn the_next_start_watches_from_where_the_last_one_ended() {
    let folder = Folder::new("resume");
    let (cluster, writer) = left(&folder).await;
    writer.change("b", "while no watch was open").await;
    writer.delete("c").await;
    cluster.journal().clear();
    let (factory, informer) = started(&cluster, &folder, KindOptions::default()).await;
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    eventually(async || recorder.known(), writer.truth().await).await;
    assert_eq!(reads(&cluster), (0, 1), "no list, in whatever form");
    let a = informer
        .cache::<ConfigMap>()
        .get(&ObjectKey::namespaced("default", "a"));
    assert_eq!(
        a.unwrap().unwrap().data.as_ref().unwrap()["value"],
        "some value"
    );
    // And once more, though nothing happened.
    factory.stop().await;
    let (_factory, informer) = started(&cluster, &folder, KindOptions::default()).await;
    assert_eq!(informer.store().len(), 2);
    assert_eq!(reads(&cluster), (0, 2));
}

/// By the time the Secrets are looked up, another kind has found out.
///
/// They show nothing of the restore: none that the earlier run knew of is another.
#[tokio::test(start_paused = true)]
async fn a_restore_between_two_runs_is_noticed_by_a_kind_that_begins_after_it_was_found() {
    let folder = Folder::new("restored");
    let (cluster, writer) = left(&folder).await;
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let create = async |name: &str| {
        let secret = json!({"metadata": {"name": name}});
        let secret = serde_json::from_value(secret).expect("it is one");
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.expect("created");
    };
    create("before").await;
    let backup = cluster.snapshot();
    for number in 0..10 {
        writer.change("a", &format!("lost {number}")).await;
    }
    let (factory, _informer) = started(&cluster, &folder, KindOptions::default()).await;
    let kind = Gvk::new("", "v1", "Secret");
    assert!(factory.for_kind(kind.clone()).synced().await);
    factory.stop().await;
    cluster.rewind_to(&backup).await.expect("restored");
    create("after").await;
    for number in 0..20 {
        writer.change("c", &number.to_string()).await;
    }

    assert!(folder.0.join("core.v1.Secret.sealed").exists());
    let (factory, first) = started(&cluster, &folder, KindOptions::default()).await;
    eventually(async || crate::bench::cached(&first), writer.truth().await).await;
    let quiet = factory.for_kind(kind);
    assert!(quiet.synced().await);
    tokio::time::sleep(MINUTE).await;
    let listed = secrets.list(&ListParams::default()).await.expect("listed");
    let truth = listed.items.into_iter().map(|secret| secret.metadata.name);
    let known = crate::bench::cached(&quiet);
    assert!(truth.eq(known.keys().cloned().map(Some)), "{known:?}");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_has_expired_is_listed() {
    let folder = Folder::new("expired");
    let (cluster, writer) = left(&folder).await;
    writer.delete("c").await;
    writer.create("d").await;
    cluster.compact();
    cluster.journal().clear();
    let (_factory, informer) = started(&cluster, &folder, KindOptions::default()).await;
    assert_eq!(informer.status().phase, Phase::Synced);
    assert_eq!(crate::bench::cached(&informer), writer.truth().await);
    assert_eq!(reads(&cluster), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_file_of_another_cluster_is_not_used() {
    let folder = Folder::new("other");
    let (_cluster, _) = left(&folder).await;
    let other = cluster().await;
    let (_factory, informer) = started(&other, &folder, KindOptions::default()).await;
    assert!(informer.store().is_empty());
    assert_eq!(reads(&other), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_file_of_other_options_is_not_used() {
    let folder = Folder::new("options");
    let (cluster, _) = left(&folder).await;
    cluster.journal().clear();
    let selection = Selection::all().with_labels("app=x".parse().unwrap());
    let options = KindOptions::default().selection(selection);
    let (_factory, informer) = started(&cluster, &folder, options).await;
    assert!(informer.store().is_empty());
    assert_eq!(reads(&cluster), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_file_is_not_used_wherever_the_damage_is() {
    let folder = Folder::new("damaged");
    let (cluster, writer) = left(&folder).await;
    let whole = std::fs::read(folder.file()).unwrap();
    for cut in (0..whole.len()).step_by(7) {
        std::fs::write(folder.file(), &whole[..cut]).unwrap();
        assert!(
            starts_cold(&cluster, &writer, &folder).await,
            "cut at {cut}"
        );
    }
    let mut used = 0;
    for at in (12..whole.len()).step_by(11) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(folder.file(), damaged).unwrap();
        used += usize::from(!starts_cold(&cluster, &writer, &folder).await);
    }
    // Some bits mean nothing; what has the right checksum is whole.
    assert!(used <= 2, "{used} damaged files were used");
}

/// Starts from a file and checks what is shown then; returns whether the file was used.
async fn starts_cold(cluster: &Cluster, writer: &Writer, folder: &Folder) -> bool {
    cluster.journal().clear();
    let (factory, informer) = started(cluster, folder, KindOptions::default()).await;
    assert_eq!(crate::bench::cached(&informer), writer.truth().await);
    factory.stop().await;
    reads(cluster).0 == 1
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn only_its_owner_can_read_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("mode");
    let _left = left(&folder).await;
    let mode = std::fs::metadata(folder.file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// The filter of the next run may keep the content of other objects.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_filtered_is_listed_at_every_start() {
    let folder = Folder::new("filtered");
    let (cluster, _writer) = left(&folder).await;
    std::fs::remove_file(folder.file()).expect("it was left");
    for needs_content in [true, false] {
        let run = async || {
            cluster.journal().clear();
            let (_share, changed) = tokio::sync::watch::channel(0);
            let filter = ContentFilter::new(changed, |_, object| object.key().name() == "a");
            let factory = SharedCacheFactory::builder(cluster.client())
                .warm_restart(&folder.0)
                .content_filter(filter)
                .build();
            let informer = factory.for_kind(config_maps());
            if needs_content {
                informer.need::<ConfigMap>();
            }
            factory.start();
            factory.wait_for_sync(MINUTE).await.expect("synced");
            factory.stop().await;
            reads(&cluster)
        };
        assert_eq!(
            (run().await, folder.file().exists()),
            ((1, 0), !needs_content)
        );
        let second = if needs_content { (1, 0) } else { (0, 1) };
        assert_eq!(run().await, second);
    }
}
