//! Defaults of custom resources that are read in another version than they are stored in.
//!
//! All answers are those of a kube-apiserver.

use http::Method;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::kinds::{definition, widget};

fn path(version: &str) -> String {
    format!("/apis/demo.dev/{version}/namespaces/default/widgets")
}

async fn bench(stored: &str) -> Bench {
    let bench = Bench::new().await;
    let mut widgets = definition("widgets", "Widget", "Namespaced");
    let text = json!({"type": "string"});
    let default = |value: &str| json!({"type": "string", "default": value});
    let fields = [
        json!({"old": default("x"), "both": text, "d": default("one")}),
        json!({"new": text, "both": text, "fresh": default("y"), "d": default("two")}),
    ];
    let versions = widgets["spec"]["versions"].as_array_mut();
    for (version, fields) in versions.into_iter().flatten().zip(fields) {
        let spec = json!({"type": "object", "properties": fields});
        version["schema"]["openAPIV3Schema"] =
            json!({"type": "object", "properties": {"spec": spec}});
        version["storage"] = json!(version["name"] == stored);
    }
    bench.define(&widgets).await;
    bench
}

async fn create(bench: &Bench, version: &str) -> Value {
    let mut object = widget("a");
    object["apiVersion"] = json!(format!("demo.dev/{version}"));
    object["spec"] = json!({"both": "b", "new": "n"});
    bench.post(&path(version), &object).await.json()["spec"].clone()
}

async fn read(bench: &Bench, version: &str) -> Value {
    let object = bench.get(&format!("{}/a", path(version))).await.json();
    let list = bench.get(&path(version)).await.json();
    assert_eq!(list["items"][0]["spec"], object["spec"]);
    object["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn defaults_of_the_requested_version_are_not_read() {
    for (stored, written, answer, first, second) in [
        (
            "v1",
            "v1",
            json!({"both": "b", "old": "x", "d": "one"}),
            json!({"both": "b", "old": "x", "d": "one"}),
            json!({"both": "b", "d": "one"}),
        ),
        (
            "v1",
            "v2",
            json!({"both": "b", "d": "two"}),
            json!({"both": "b", "old": "x", "d": "two"}),
            json!({"both": "b", "d": "two"}),
        ),
        (
            "v2",
            "v1",
            json!({"both": "b", "d": "one"}),
            json!({"both": "b", "d": "one"}),
            json!({"both": "b", "fresh": "y", "d": "one"}),
        ),
        (
            "v2",
            "v2",
            json!({"both": "b", "new": "n", "fresh": "y", "d": "two"}),
            json!({"both": "b", "d": "two"}),
            json!({"both": "b", "new": "n", "fresh": "y", "d": "two"}),
        ),
    ] {
        let bench = bench(stored).await;
        let case = format!("stored as {stored}, written as {written}");
        assert_eq!(create(&bench, written).await, answer, "{case}");
        assert_eq!(read(&bench, "v1").await, first, "{case}");
        assert_eq!(read(&bench, "v2").await, second, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn patch_is_merged_into_what_is_read_in_its_version() {
    let bench = bench("v1").await;
    create(&bench, "v1").await;
    let path = format!("{}/a", path("v2"));
    let patch = json!({"spec": {"both": "c"}}).to_string();
    let media = "application/merge-patch+json";
    let patched = bench.call(Method::PATCH, &path, media, patch).await.json();
    assert_eq!(patched["spec"], json!({"both": "c", "d": "one"}));
    assert_eq!(patched["metadata"]["generation"], 2);
}
