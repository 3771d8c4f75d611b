//! Files of warm restarts that are sealed: what is in them, and what becomes of them with other keys or when damaged.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, PostParams};
use lariat_cache::{Informer, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_core::{Gvk, ObjectKey};
use lariat_seal::{KeyWrapper, LocalKeys, Sealing};
use lariat_testing::Logs;
use serde_json::json;
use tracing::Level;

use crate::bench::{MINUTE, Writer, cached, cluster, config_maps};
use crate::warm::Folder;

const CANARY: &str = "canary-8d41c6f0-do-not-show";

pub(crate) fn secrets() -> Gvk {
    Gvk::new("", "v1", "Secret")
}

pub(crate) fn key(number: u8) -> LocalKeys {
    let bytes: [u8; 32] = std::array::from_fn(|at| (at as u8).wrapping_mul(37) ^ number);
    LocalKeys::from_bytes(&bytes).expect("it is a key")
}

/// A run of a program that reads ConfigMaps and Secrets.
pub(crate) struct Run {
    pub(crate) factory: SharedCacheFactory,
    pub(crate) config_maps: Informer,
    pub(crate) secrets: Informer,
}

impl Run {
    pub(crate) async fn start(
        cluster: &Cluster,
        folder: &Folder,
        sealing: Option<Sealing>,
    ) -> Self {
        let mut builder = SharedCacheFactory::builder(cluster.client()).warm_restart(&folder.0);
        if let Some(sealing) = sealing {
            builder = builder.seal_warm_files(sealing);
        }
        let factory = builder.build();
        let run = Self {
            config_maps: factory.for_kind(config_maps()),
            secrets: factory.for_kind(secrets()),
            factory,
        };
        run.config_maps.need::<ConfigMap>();
        run.secrets.need::<Secret>();
        run.factory.start();
        run.factory.wait_for_sync(MINUTE).await.expect("synced");
        run
    }
}

/// A cluster with the canary in a ConfigMap and a Secret.
pub(crate) async fn with_canary() -> Cluster {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.change("a", CANARY).await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": CANARY}});
    let secret: Secret = serde_json::from_value(secret).expect("it is one");
    let api: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let created = api.create(&PostParams::default(), &secret).await;
    created.expect("created");
    cluster
}

/// Runs once; returns which kinds were listed.
pub(crate) async fn run(
    cluster: &Cluster,
    folder: &Folder,
    sealing: Option<Sealing>,
) -> BTreeSet<String> {
    cluster.journal().clear();
    let run = Run::start(cluster, folder, sealing).await;
    let object = run.config_maps.cache::<ConfigMap>();
    let object = object.get(&ObjectKey::namespaced("default", "a"));
    let object = object.expect("it decodes").expect("it is there");
    let data = object.data.as_ref().expect("it has data");
    assert_eq!(data["value"], CANARY);
    let secret = run.secrets.cache::<Secret>();
    let secret = secret.get(&ObjectKey::namespaced("default", "s"));
    let secret = secret.expect("it decodes").expect("it is there");
    let data = secret.data.as_ref().expect("it has data");
    assert_eq!(data["password"].0, CANARY.as_bytes());
    run.factory.stop().await;
    let requests = cluster.journal().requests();
    let lists = requests
        .iter()
        .filter(|request| request.query.contains("sendInitialEvents"));
    lists.map(|request| request.resource.clone()).collect()
}

pub(crate) fn everything(number: u8) -> Option<Sealing> {
    Some(Sealing::of_everything(key(number)))
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) fn files(folder: &Folder) -> BTreeSet<String> {
    let files = fs::read_dir(&folder.0).expect("it is there");
    let name = |file: fs::DirEntry| file.file_name().into_string().expect("it is text");
    files.map(|file| name(file.expect("read"))).collect()
}

/// Returns which files show some text, as it is or compressed anywhere in them.
fn files_that_show(folder: &Folder, text: &[&str]) -> BTreeSet<String> {
    let shows = |name: &String| {
        let bytes = fs::read(folder.0.join(name)).expect("read");
        let mut forms = vec![bytes.clone()];
        for at in 0..bytes.len().saturating_sub(2) {
            if bytes[at..].starts_with(&[0x1f, 0x8b, 8]) {
                let mut inside = Vec::new();
                let _ = GzDecoder::new(&bytes[at..]).read_to_end(&mut inside);
                forms.push(inside);
            }
        }
        let has = |bytes: &[u8], text: &str| {
            let mut windows = bytes.windows(text.len());
            windows.any(|window| window == text.as_bytes())
        };
        forms
            .iter()
            .any(|form| text.iter().any(|text| has(form, text)))
    };
    files(folder).into_iter().filter(shows).collect()
}

/// The canary in plain text and, as Secrets have it, in base64.
const FORMS: &[&str] = &[CANARY, "Y2FuYXJ5LThkNDFjNmYw"];

#[tokio::test(start_paused = true)]
async fn a_canary_is_in_no_byte_of_the_folder_when_everything_is_sealed() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-canary"));
    let both = names(&["configmaps", "secrets"]);
    assert_eq!(run(&cluster, &folder, everything(1)).await, both);
    let sealed = names(&["core.v1.ConfigMap.sealed", "core.v1.Secret.sealed"]);
    assert_eq!(files(&folder), sealed);
    assert_eq!(files_that_show(&folder, FORMS), names(&[]));
    assert_eq!(
        files_that_show(&folder, &["configmaps", "kind", "\"a\""]),
        names(&[])
    );
    assert_eq!(
        run(&cluster, &folder, everything(1)).await,
        names(&[]),
        "none is listed"
    );
    assert_eq!(files_that_show(&folder, FORMS), names(&[]));
}

#[tokio::test(start_paused = true)]
async fn secrets_are_sealed_whichever_kinds_are_chosen() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-kinds"));
    let sealing = || Some(Sealing::of_kinds([], key(1)));
    run(&cluster, &folder, sealing()).await;
    assert_eq!(
        files(&folder),
        names(&["core.v1.ConfigMap.gz", "core.v1.Secret.sealed"])
    );
    let plain = names(&["core.v1.ConfigMap.gz"]);
    assert_eq!(
        files_that_show(&folder, FORMS),
        plain,
        "the search finds what is there"
    );
    assert_eq!(run(&cluster, &folder, sealing()).await, names(&[]));

    let sealing = || Some(Sealing::of_kinds([config_maps()], key(1)));
    assert_eq!(
        run(&cluster, &folder, sealing()).await,
        names(&["configmaps"])
    );
    assert_eq!(files_that_show(&folder, FORMS), names(&[]));
}

#[tokio::test(start_paused = true)]
async fn without_a_key_secrets_are_left_out_and_the_log_says_once_what_to_do() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-none"));
    run(&cluster, &folder, None).await;
    assert_eq!(files(&folder), names(&["core.v1.ConfigMap.gz"]));
    let log = Logs::up_to(Level::INFO);
    assert_eq!(run(&cluster, &folder, None).await, names(&["secrets"]));
    let said = log.lines();
    let advice = said.iter().filter(|line| line.contains("seal_warm_files"));
    assert_eq!(advice.count(), 1, "{said:?}");
    assert!(!said.iter().any(|line| line.contains(CANARY)));
}

/// A later run that seals again would find the older one.
#[tokio::test(start_paused = true)]
async fn a_sealed_file_does_not_stay_beside_a_newer_one_in_plain_text() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-stale"));
    run(&cluster, &folder, everything(1)).await;
    let of_secrets = || Some(Sealing::of_kinds([], key(1)));
    assert_eq!(
        run(&cluster, &folder, of_secrets()).await,
        names(&["configmaps"])
    );
    let left = names(&["core.v1.ConfigMap.gz", "core.v1.Secret.sealed"]);
    assert_eq!(files(&folder), left);
}

/// As versions before this one wrote it, or a run that was killed while it wrote.
#[tokio::test(start_paused = true)]
async fn plain_text_of_an_earlier_run_is_removed() {
    for (number, sealing) in [None, everything(1)].into_iter().enumerate() {
        let (cluster, folder) = (
            with_canary().await,
            Folder::new(&format!("sealed-old-{number}")),
        );
        for name in ["core.v1.Secret.gz", "core.v1.Secret.part", "mine.gz"] {
            fs::write(folder.0.join(name), CANARY).unwrap();
        }
        // Even if Secrets are not read.
        let mut builder = SharedCacheFactory::builder(cluster.client()).warm_restart(&folder.0);
        if let Some(sealing) = sealing {
            builder = builder.seal_warm_files(sealing);
        }
        let factory = builder.build();
        let _config_maps = factory.for_kind(config_maps());
        factory.start();
        factory.wait_for_sync(MINUTE).await.expect("synced");
        assert_eq!(files(&folder), names(&["mine.gz"]));
    }
}

#[tokio::test(start_paused = true)]
async fn with_another_key_kinds_are_listed_with_one_warning_each_that_names_file_and_keys() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-wrong"));
    run(&cluster, &folder, everything(1)).await;
    let log = Logs::warnings();
    let both = names(&["configmaps", "secrets"]);
    assert_eq!(run(&cluster, &folder, everything(2)).await, both);
    let warnings = log.lines();
    for file in ["core.v1.ConfigMap.sealed", "core.v1.Secret.sealed"] {
        let of_file = warnings.iter().filter(|line| line.contains(file));
        let of_file: Vec<_> = of_file.collect();
        let reason = format!(
            "sealed with key {}, but the given keys are {}",
            key(1).current(),
            key(2).current()
        );
        assert!(
            of_file.len() == 1 && of_file[0].contains(&reason),
            "{warnings:?}"
        );
    }
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    // The files are of the other key now.
    assert_eq!(run(&cluster, &folder, everything(2)).await, names(&[]));
}

#[tokio::test(start_paused = true)]
async fn after_a_rotation_old_files_are_used_and_new_ones_need_the_new_key_only() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-rotated"));
    run(&cluster, &folder, everything(1)).await;
    let both = || Some(Sealing::of_everything(key(2).with_old(key(1))));
    assert_eq!(run(&cluster, &folder, both()).await, names(&[]));
    assert_eq!(run(&cluster, &folder, everything(2)).await, names(&[]));
    let listed = names(&["configmaps", "secrets"]);
    assert_eq!(run(&cluster, &folder, everything(1)).await, listed);
}

#[tokio::test(start_paused = true)]
async fn a_sealed_file_that_was_cut_or_changed_anywhere_is_not_used() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-damaged"));
    run(&cluster, &folder, everything(1)).await;
    let path = folder.0.join("core.v1.Secret.sealed");
    let whole = fs::read(&path).unwrap();
    let cuts = (0..whole.len()).step_by(41).chain([whole.len() - 1]);
    let mut damaged: Vec<_> = cuts.map(|cut| whole[..cut].to_vec()).collect();
    for at in (0..whole.len()).step_by(17) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        damaged.push(flipped);
    }
    damaged.push([&whole[..], b"more"].concat());
    for bytes in damaged {
        fs::write(&path, &bytes).unwrap();
        let log = Logs::warnings();
        assert_eq!(
            run(&cluster, &folder, everything(1)).await,
            names(&["secrets"])
        );
        let warnings = log.lines();
        let named = warnings.len() == 1 && warnings[0].contains("core.v1.Secret.sealed");
        assert!(named && !warnings[0].contains(CANARY), "{warnings:?}");
    }
}

/// As without permission, which tests that run as root always have.
#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_read_is_named_and_the_kind_is_listed() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-unreadable"));
    fs::create_dir(folder.0.join("core.v1.Secret.sealed")).unwrap();
    let log = Logs::warnings();
    let run = Run::start(&cluster, &folder, everything(1)).await;
    let warnings = log.lines();
    let named = warnings.len() == 1 && warnings[0].contains("core.v1.Secret.sealed");
    assert!(named, "{warnings:?}");
    assert_eq!(run.secrets.store().len(), 1);
    run.factory.stop().await;
    // Nothing is left in half.
    let left = names(&["core.v1.ConfigMap.sealed", "core.v1.Secret.sealed"]);
    assert_eq!(files(&folder), left);
    assert_eq!(log.lines().len(), 2, "it cannot be written either");
}

/// A file in the place of a sealed one.
async fn assert_refused(name: &str, put: impl AsyncFnOnce(&Cluster, &Path)) {
    let (cluster, folder) = (with_canary().await, Folder::new(name));
    run(&cluster, &folder, everything(1)).await;
    put(&cluster, &folder.0).await;
    let log = Logs::warnings();
    let listed = run(&cluster, &folder, everything(1)).await;
    assert_eq!(listed, names(&["configmaps"]));
    let warnings = log.lines();
    let named = warnings.len() == 1 && warnings[0].contains("the file is damaged");
    assert!(named, "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn the_sealed_file_of_another_kind_is_not_used() {
    assert_refused("sealed-swapped", async |_, folder| {
        let (from, to) = ("core.v1.Secret.sealed", "core.v1.ConfigMap.sealed");
        fs::copy(folder.join(from), folder.join(to)).expect("copied");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn plain_text_in_the_place_of_a_sealed_file_is_not_used() {
    assert_refused("sealed-plain", async |cluster, folder| {
        let other = Folder::new("sealed-plain-source");
        run(cluster, &other, None).await;
        let plain = other.0.join("core.v1.ConfigMap.gz");
        fs::copy(&plain, folder.join("core.v1.ConfigMap.sealed")).expect("copied");
        fs::copy(&plain, folder.join("core.v1.ConfigMap.gz")).expect("copied");
    })
    .await;
}

/// It is authentic, and its version says how old it is.
#[tokio::test(start_paused = true)]
async fn a_file_that_is_restored_from_a_backup_shows_nothing_old() {
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-restored"));
    let writer = Writer::new(cluster.client());
    writer.create("b").await;
    run(&cluster, &folder, everything(1)).await;
    let path = folder.0.join("core.v1.ConfigMap.sealed");
    let backup = fs::read(&path).unwrap();
    writer.delete("b").await;
    writer.create("c").await;
    run(&cluster, &folder, everything(1)).await;
    fs::write(&path, &backup).unwrap();
    let run = Run::start(&cluster, &folder, everything(1)).await;
    let now = async || cached(&run.config_maps);
    crate::bench::eventually(now, writer.truth().await).await;
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn only_its_owner_can_read_a_sealed_file() {
    use std::os::unix::fs::PermissionsExt;
    let (cluster, folder) = (with_canary().await, Folder::new("sealed-mode"));
    run(&cluster, &folder, everything(1)).await;
    for name in files(&folder) {
        let mode = fs::metadata(folder.0.join(name)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }
}
