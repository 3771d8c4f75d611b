//! Faults of writes.

use crate::bench::{Bench, CONFIG_MAPS, version};
use http::Method;
use lariat_cluster::faults::{Action, Rule};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn the_nth_update_conflicts_with_a_foreign_change() {
    let bench = Bench::new().await;
    let conflict = Rule::new(Action::Conflict).verb("update").nth(2);
    bench.cluster.faults().add(conflict);
    let mut object = bench.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let query = format!("watch=1&resourceVersion={}", version(&object));
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    object["data"]["a"] = json!("2");
    let mut object = bench.put(&path, &object).await.json();
    object["data"]["a"] = json!("3");
    bench.put(&path, &object).await.fails(409, "Conflict");

    // A client that reads and tries again succeeds, and both changes are there.
    let mut object = bench.get(&path).await.json();
    assert_eq!(object["data"]["a"], "2");
    let touched = object["metadata"]["annotations"]["lariat/touched"].clone();
    assert!(touched.is_string());
    object["data"]["a"] = json!("3");
    let object = bench.put(&path, &object).await.json();
    assert_eq!(object["data"]["a"], "3");
    assert_eq!(object["metadata"]["annotations"]["lariat/touched"], touched);
    assert_eq!(watch.shorts(3).await, ["MODIFIED a"; 3]);
}

#[tokio::test(start_paused = true)]
async fn every_conflict_is_a_new_one() {
    let bench = Bench::new().await;
    bench.cluster.faults().add(Rule::new(Action::Conflict));
    bench.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    for _ in 0..3 {
        let object = bench.get(&path).await.json();
        bench.put(&path, &object).await.fails(409, "Conflict");
        let version = object["metadata"]["resourceVersion"].clone();
        let locked = json!({"metadata": {"resourceVersion": version}});
        bench.merge(&path, locked).await.fails(409, "Conflict");
    }
    // A patch that names no version is made on top.
    let patched = bench.merge(&path, json!({"data": {"a": "2"}})).await;
    assert_eq!(patched.json()["data"]["a"], "2");
    let missing = bench.merge(&format!("{CONFIG_MAPS}/b"), json!({})).await;
    missing.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_write_is_carried_out_though_its_reply_is_lost() {
    let bench = Bench::new().await;
    let lost = Rule::new(Action::LoseReply).verb("create").nth(1);
    bench.cluster.faults().add(lost);
    let media = [("content-type", "application/json")];
    let object = json!({"metadata": {"name": "a"}});
    let lost = bench
        .try_ask(Method::POST, CONFIG_MAPS, &media, object.to_string())
        .await;
    assert!(lost.is_err());
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
    let again = bench.post(CONFIG_MAPS, &object).await;
    again.fails(409, "AlreadyExists");
}
