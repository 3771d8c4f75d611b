//! Objects that a load creates are like those that clients create.

use serde_json::{Value, json};

use crate::bench::{Bench, text};

const LISTS: [&str; 4] = [
    "/api/v1/pods",
    "/api/v1/nodes",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
];

/// Returns the paths of the objects in a list.
async fn paths(bench: &Bench, list: &str) -> Vec<String> {
    let answer = bench.get(list).await.json();
    let items = answer["items"].as_array().cloned().unwrap_or_default();
    let (root, plural) = list.rsplit_once('/').expect("a path");
    let path = |object: &Value| {
        let name = text(object, "/metadata/name");
        match object["metadata"]["namespace"].as_str() {
            None => format!("{list}/{name}"),
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
        }
    };
    items.iter().map(path).collect()
}

/// A default that the load left out would be added by the update, and refused as a change.
#[tokio::test(start_paused = true)]
async fn loaded_objects_can_be_labelled_and_scaled() {
    let bench = Bench::new().await;
    bench.cluster.load(lariat_cluster::Load::pods(20)).await;
    for list in LISTS {
        let paths = paths(&bench, list).await;
        assert!(!paths.is_empty(), "{list}");
        for path in paths {
            let label = json!({"metadata": {"labels": {"seen": "yes"}}});
            let answer = bench.merge(&path, label).await;
            assert_eq!(answer.code, 200, "{path}: {}", answer.text);
            let now = answer.json();
            assert_eq!(
                now["metadata"]["generation"].as_u64().unwrap_or(1),
                1,
                "{path}"
            );
        }
    }
    for path in paths(&bench, "/apis/apps/v1/deployments").await {
        let scale = json!({"spec": {"replicas": 1}});
        let answer = bench.merge(&format!("{path}/scale"), scale).await;
        assert_eq!(answer.code, 200, "{path}: {}", answer.text);
    }
}
