//! What the last changes changed.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{Informer, InitialList, KindOptions, SharedCacheFactory};
use lariat_core::{Gvk, ObjectKey, ResourceVersion};
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{MINUTE, config_maps, no_client};
use crate::script::{Answer, BodyEnd, Script, quiet};

/// A factory that reads ConfigMaps from a script.
struct Changed {
    factory: SharedCacheFactory,
    informer: Informer,
}

impl Changed {
    /// Plays versions of an object, the first by a list, and remembers the given number of bytes.
    async fn play(remembered: usize, content: bool, versions: Vec<Value>) -> Self {
        Self::play_with(None, remembered, content, versions).await
    }

    /// Plays versions of an object at intervals, and remembers the given number of bytes.
    async fn play_at(every: Duration, remembered: usize, versions: Vec<Value>) -> Self {
        Self::play_with(Some(every), remembered, true, versions).await
    }

    async fn play_with(
        every: Option<Duration>,
        remembered: usize,
        content: bool,
        versions: Vec<Value>,
    ) -> Self {
        let length =
            every.unwrap_or_default() * u32::try_from(versions.len()).expect("there are few");
        let script = Script::new(move |ask| match (ask.watch, ask.number) {
            (false, 0) => whole(&versions[..1], 10),
            (false, _) => whole(&versions[versions.len() - 1..], 100),
            (true, 0) => {
                let event = |object: &Value| {
                    let is_last = object["data"]["deleted"].is_string();
                    let change = if is_last { "DELETED" } else { "MODIFIED" };
                    format!("{}\n", json!({"type": change, "object": object}))
                };
                let lines = versions[1..].iter().map(event);
                match every {
                    Some(every) => Answer::Slow(lines.collect(), every),
                    None => Answer::Pieces(lines.collect(), BodyEnd::Silence),
                }
            }
            (true, _) => quiet(),
        });
        let factory = SharedCacheFactory::builder(no_client())
            .default_options(KindOptions::default().initial_list(InitialList::List))
            .build();
        factory.remember_changes(remembered);
        let informer = factory.for_source(config_maps(), Arc::new(script));
        if content {
            informer.need::<ConfigMap>();
        }
        factory.start();
        time::sleep(length + Duration::from_secs(1)).await;
        Self { factory, informer }
    }

    fn between(&self, from: u64, to: u64) -> Option<Vec<String>> {
        let [from, to] = [from, to].map(|each| ResourceVersion::new(&each.to_string()));
        let key = ObjectKey::cluster("a");
        self.factory
            .changed_fields(&config_maps(), &key, &from, &to)
    }

    /// Returns how many updates are remembered, and their bound.
    fn table_sizes(&self) -> (usize, usize) {
        let all = self.factory.table_sizes();
        let updates = all.iter().find(|each| each.name == "updates");
        updates.map_or((0, 0), |each| (each.entries, each.bound))
    }
}

fn whole(items: &[Value], version: u64) -> Answer {
    let list = json!({"metadata": {"resourceVersion": version.to_string()}, "items": items});
    Answer::Whole(200, Vec::new(), list.to_string())
}

fn version(version: u64, data: &Value) -> Value {
    let metadata = json!({"name": "a", "uid": "a", "resourceVersion": version.to_string(),
        "labels": {"version.dev/is": format!("v{version}")}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

const LABEL: &str = r#"metadata.labels["version.dev/is"]"#;

#[tokio::test(start_paused = true)]
async fn the_paths_that_differ_are_told_for_single_and_merged_changes() {
    let versions = vec![
        version(10, &json!({"x": "secret-1"})),
        version(11, &json!({"x": "secret-2"})),
        version(12, &json!({"x": "secret-2", "y": "secret-3"})),
    ];
    let test = Changed::play(1 << 20, true, versions).await;
    assert_eq!(test.between(10, 11).unwrap(), ["data.x", LABEL]);
    assert_eq!(test.between(11, 12).unwrap(), ["data.y", LABEL]);
    assert_eq!(test.between(10, 12).unwrap(), ["data.x", "data.y", LABEL]);
    assert_eq!((test.between(9, 10), test.between(12, 13)), (None, None));
    let key = ObjectKey::cluster("a");
    let [old, new] = ["10", "11"].map(ResourceVersion::new);
    let others = Gvk::new("", "v1", "Secret");
    assert_eq!(test.factory.changed_fields(&others, &key, &old, &new), None);
    // Nothing of this is a user of the kind or an object of it.
    assert_eq!((test.informer.store().len(), test.table_sizes().0), (1, 2));
    test.factory.remember_changes(0);
    assert_eq!((test.between(10, 11), test.table_sizes()), (None, (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_remembered_by_default() {
    let versions = vec![version(10, &json!({})), version(11, &json!({"x": "1"}))];
    let test = Changed::play(0, true, versions).await;
    assert_eq!((test.between(10, 11), test.table_sizes()), (None, (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn of_many_changes_the_last_are_remembered_within_the_bytes() {
    let test = Changed::play_at(Duration::from_secs(2), 20_000, many()).await;
    let (updates, bound) = test.table_sizes();
    assert!(
        (3..10).contains(&updates) && updates <= bound,
        "{updates} {bound}"
    );
    assert_eq!(test.between(10, 11), None);
    assert_eq!(test.between(108, 109).unwrap(), ["data.x", LABEL]);
    test.factory.remember_changes(5_000);
    assert!((1..3).contains(&test.table_sizes().0));
    test.factory.remember_changes(10);
    assert_eq!((test.table_sizes().0, test.between(108, 109)), (0, None));
}

#[tokio::test(start_paused = true)]
async fn of_changes_at_once_the_first_are_remembered_for_some_seconds() {
    let test = Changed::play(20_000, true, many()).await;
    let updates = test.table_sizes().0;
    assert!((3..10).contains(&updates), "{updates}");
    assert_eq!(test.between(11, 12).unwrap(), ["data.x", LABEL]);
    assert_eq!(test.between(108, 109), None);
}

#[tokio::test(start_paused = true)]
async fn of_frequent_changes_a_part_is_remembered() {
    let test = Changed::play_at(Duration::from_millis(100), 20_000, many()).await;
    let versions: Vec<_> = (10..109)
        .filter(|each| test.between(*each, each + 1).is_some())
        .collect();
    // At 20,000 bytes in ten seconds, an update of about 3,000 bytes is remembered every second and a half.
    assert_eq!(versions.len(), test.table_sizes().0);
    let (first, last) = (versions[0], versions[versions.len() - 1]);
    assert!(last > 90, "{versions:?}");
    assert!(last - first > 40, "{versions:?}");
}

/// A hundred versions with a kilobyte each.
fn many() -> Vec<Value> {
    let long = "x".repeat(1000);
    let versions = (10..110).map(|each| version(each, &json!({"x": format!("{each}{long}")})));
    versions.collect()
}

#[tokio::test(start_paused = true)]
async fn of_metadata_only_metadata_is_compared() {
    let versions = vec![version(10, &json!({})), version(11, &json!({"x": "1"}))];
    let test = Changed::play(1 << 20, false, versions).await;
    assert_eq!(test.between(10, 11).unwrap(), [LABEL]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_a_list_finds_is_remembered_too() {
    let versions = vec![version(10, &json!({})), version(100, &json!({"x": "1"}))];
    let test = Changed::play(1 << 20, true, versions).await;
    assert_eq!(test.between(10, 100).unwrap(), ["data.x", LABEL]);
    assert!(test.informer.relist());
    time::sleep(MINUTE).await;
    assert_eq!(test.between(10, 100).unwrap(), ["data.x", LABEL]);
}

#[tokio::test(start_paused = true)]
async fn what_an_object_was_before_its_deletion_is_remembered() {
    let versions = vec![
        version(10, &json!({})),
        version(11, &json!({"x": "1"})),
        version(12, &json!({"x": "1", "deleted": "yes"})),
    ];
    let test = Changed::play(1 << 20, true, versions).await;
    assert!(test.informer.store().is_empty());
    assert_eq!(test.between(10, 11).unwrap(), ["data.x", LABEL]);
}
