//! The cost of a selection of namespaces beside one watch of all: requests, connections and memory.
//!
//! On the cluster of `KUBECONFIG`, for example one of `lariat cluster`:
//! `cargo run --release -p lariat-cache --example namespaces -- make 2000`, then `each 2000` and `all 2000`.

use std::error::Error;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, PostParams};
use lariat_cache::{KindOptions, Selection, SharedCacheFactory};
use lariat_core::Gvk;
use serde_json::json;
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(600);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, count] = &arguments[..] else {
        return Err("arguments: make|each|all NUMBER".into());
    };
    let names: Vec<String> = (0..count.parse()?)
        .map(|number| format!("many-{number}"))
        .collect();
    let client = lariat_client::connect().await?;
    if mode == "make" {
        return make(client, &names).await;
    }
    let all = Selection::all();
    let selection = if mode == "each" {
        all.in_namespaces(&names)
    } else {
        all
    };
    let options = KindOptions::default().selection(selection);
    let factory = SharedCacheFactory::builder(client)
        .default_options(options)
        .build();
    let informer = factory.for_kind(Gvk::new("", "v1", "ConfigMap"));
    let maps = informer.cache::<ConfigMap>();
    let (before, begun) = (resident(), Instant::now());
    factory.start();
    factory.wait_for_sync(TIMEOUT).await?;
    let synced = begun.elapsed();
    println!(
        "{mode} {count}: {} objects, synced after {synced:.1?}, {before} KiB before, {} KiB after",
        maps.len(),
        resident()
    );
    for each in factory.clients().requests().counts {
        println!("{} {} {}", each.method, each.code, each.count);
    }
    Ok(())
}

async fn make(client: kube::Client, names: &[String]) -> Result<(), Box<dyn Error>> {
    let made = stream::iter(names.to_vec()).map(|name| make_one(client.clone(), name));
    made.buffer_unordered(20).try_collect().await
}

async fn make_one(client: kube::Client, name: String) -> Result<(), Box<dyn Error>> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "one"}}))?;
    let (namespaces, maps) = (Api::all(client.clone()), Api::namespaced(client, &name));
    namespaces
        .create(&PostParams::default(), &namespace)
        .await?;
    maps.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Returns the resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_default()
}
