//! The sizes that etcd refuses.
//!
//! The boundaries were counted on a kube-apiserver 1.36 with etcd 3.6 and its default options.

use http::Method;
use serde_json::{Value, json};

use crate::bench::{Answer, Bench};
use crate::kinds::definition;

const BIGS: &str = "/apis/size.dev/v1/namespaces/default/bigs";
const TOO_LARGE: &str = "etcdserver: request is too large";

async fn bench() -> Bench {
    let bench = Bench::new().await;
    let mut bigs = definition("bigs", "Big", "Namespaced");
    bigs["metadata"]["name"] = json!("bigs.size.dev");
    bigs["spec"]["group"] = json!("size.dev");
    bench.define(&bigs).await;
    bench
}

fn big(name: &str, length: usize) -> Value {
    json!({
        "apiVersion": "size.dev/v1", "kind": "Big", "metadata": {"name": name},
        "spec": {"x": "a".repeat(length)},
    })
}

async fn send(bench: &Bench, method: Method, path: &str, media: &str, object: &Value) -> Answer {
    // The name of the client is part of the object, by its managed fields.
    let headers = [
        ("content-type", media),
        ("user-agent", "Python-urllib/3.11"),
    ];
    bench.ask(method, path, &headers, object.to_string()).await
}

async fn create(bench: &Bench, length: usize) -> Answer {
    let answer = send(
        bench,
        Method::POST,
        BIGS,
        "application/json",
        &big("b", length),
    )
    .await;
    if answer.code == 201 {
        // They are left out of an object that is too large with them.
        let is_managed = !answer.json()["metadata"]["managedFields"].is_null();
        assert_eq!(is_managed, length < 1_572_300, "{length}");
        bench.delete(&format!("{BIGS}/b")).await;
    }
    answer
}

fn check_refused(answer: &Answer, message: &str) {
    let status = answer.fails(500, "");
    assert_eq!(status["message"], message);
    assert!(status.get("details").is_none() && status.get("reason").is_none());
}

#[tokio::test(start_paused = true)]
async fn object_over_the_limit_of_etcd_is_refused() {
    let bench = bench().await;
    for length in [1_572_200, 1_572_551] {
        assert_eq!(create(&bench, length).await.code, 201);
    }
    for length in [1_572_552, 2_096_857] {
        check_refused(&create(&bench, length).await, TOO_LARGE);
    }
    let message = |size: usize| {
        format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. 2097152)"
        )
    };
    check_refused(&create(&bench, 2_096_858).await, &message(2_097_153));
    check_refused(&create(&bench, 3_000_000).await, &message(3_000_298));
}

#[tokio::test(start_paused = true)]
async fn patch_beyond_the_limit_of_etcd_is_refused() {
    let bench = bench().await;
    let path = format!("{BIGS}/p");
    bench.post(BIGS, &big("p", 1_000)).await;
    let large = big("p", 1_600_000);
    let (merge, apply) = (
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    );
    let status = json!({"status": {"x": "a".repeat(1_600_000)}});
    for (path, media, patch) in [
        (path.clone(), merge, &large),
        (format!("{path}/status"), merge, &status),
        (format!("{path}?fieldManager=x&force=true"), apply, &large),
    ] {
        let answer = send(&bench, Method::PATCH, &path, media, patch).await;
        check_refused(&answer, TOO_LARGE);
    }
    // A dry run does not reach the storage.
    let dry_run = format!("{path}?dryRun=All");
    let answer = send(&bench, Method::PATCH, &dry_run, merge, &large).await;
    assert_eq!(answer.code, 200);
    // Escaped it is larger than that, but protobuf, in which a ConfigMap is stored, does not escape.
    let quotes = json!({"metadata": {"name": "quotes"}, "data": {"x": "\"".repeat(1 << 20)}});
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(bench.post(maps, &quotes).await.code, 201);
}
