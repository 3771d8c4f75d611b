//! A model of an informer: a cache that is filled by one watch and checks every event.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::bench::{Bench, Watch, text, version};

/// What a cache knows of one collection.
pub(crate) struct Informer {
    path: String,
    pub(crate) objects: BTreeMap<String, Value>,
    pub(crate) version: u64,
    watch: Watch,
}

impl Informer {
    /// Lists, and watches from there.
    pub(crate) async fn start(bench: &Bench, path: &str) -> Self {
        let list = bench.get(path).await.json();
        let version = version(&list);
        Self {
            objects: contents(&list),
            version,
            watch: watch_from(bench, path, version).await,
            path: path.to_owned(),
        }
    }

    /// Goes on from the last version it saw.
    pub(crate) async fn resume(&mut self, bench: &Bench) {
        self.watch = watch_from(bench, &self.path, self.version).await;
    }

    /// Takes in whatever comes until nothing more does; an end of the watch is followed by another.
    pub(crate) async fn catch_up(&mut self, bench: &Bench) {
        loop {
            match timeout(Duration::from_millis(1), self.watch.line()).await {
                Err(_) => return,
                Ok(Ok(Some(line))) => self.take_in(&line),
                Ok(_) => self.resume(bench).await,
            }
        }
    }

    fn take_in(&mut self, line: &str) {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        let object = &event["object"];
        let seen = version(object);
        assert!(seen > self.version, "{seen} after {}", self.version);
        self.version = seen;
        let before = match text(&event, "/type") {
            "BOOKMARK" => return,
            "DELETED" => self.objects.remove(&key(object)),
            _ => self.objects.insert(key(object), object.clone()),
        };
        let expected = text(&event, "/type") != "ADDED";
        assert_eq!(before.is_some(), expected, "{line}");
        // A modification does not turn one object into another.
        if let Some(before) = before {
            assert_eq!(
                before["metadata"]["uid"], object["metadata"]["uid"],
                "{line}"
            );
        }
    }

    /// Checks that the cache is what a list says.
    pub(crate) async fn check(&mut self, bench: &Bench) {
        self.catch_up(bench).await;
        assert_eq!(self.objects, contents(&bench.get(&self.path).await.json()));
    }
}

async fn watch_from(bench: &Bench, path: &str, version: u64) -> Watch {
    bench
        .watch(&format!("{path}?watch=1&resourceVersion={version}"))
        .await
}

/// Returns the objects of a list by namespace and name, in the form in which a watch has them.
pub(crate) fn contents(list: &Value) -> BTreeMap<String, Value> {
    let kind = text(list, "/kind").trim_end_matches("List");
    let items = list["items"].as_array().expect("a list has items");
    let with_type = items.iter().map(|item| {
        let mut item = item.clone();
        item["kind"] = kind.into();
        item["apiVersion"] = list["apiVersion"].clone();
        (key(&item), item)
    });
    with_type.collect()
}

fn key(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{}/{}", metadata["namespace"], metadata["name"])
}
