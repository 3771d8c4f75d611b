//! A page to browse a cluster: its Pods and ConfigMaps, filtered, sorted, counted and live.
//!
//! The cluster is in memory and has 3,000 Pods; a ConfigMap changes every second. Without an argument everyone gets in.
//! With `--token TOKEN` only who shows that token does, and sees the namespace `default` only.
//!
//! Run: `cargo run -p lariat-sql --features http --example browse`, and open the address it prints.

use std::error::Error;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use lariat_cache::SharedCacheFactory;
use lariat_cluster::{Cluster, Load, User};
use lariat_core::Gvk;
use lariat_sql::http::{SqlService, TokenReviews};
use lariat_sql::{Access, Field, FieldType, Schema, SqlCache};
use serde_json::json;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip_while(|it| it != "--token").skip(1);
    let token = arguments.next();
    let mut cluster = Cluster::builder();
    if let Some(token) = &token {
        cluster = cluster.token_of(token, User::new("jane"));
    }
    let cluster = cluster.start().await?;
    cluster.load(Load::pods(3_000)).await;
    let factory = SharedCacheFactory::new(cluster.client());
    let sql = SqlCache::builder(&factory)
        .kind(pods()?)
        .kind(maps()?)
        .start()
        .await?;
    factory.start();
    let service = match token {
        None => SqlService::new(&sql).open_to_everyone(),
        Some(_) => SqlService::new(&sql)
            .authenticate(TokenReviews::new(cluster.client()))
            .visible(|_, _| async { Ok(Access::of_namespaces(["default"])) }),
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/", listener.local_addr()?);
    tokio::select! {
        served = service.serve_on(listener) => served?,
        changed = change(cluster.client()) => changed?,
    }
    Ok(())
}

fn pods() -> Result<Schema, Box<dyn Error>> {
    let fields = [
        Field::path("spec.nodeName", FieldType::Text)?.searchable(),
        Field::path("status.phase", FieldType::Text)?,
        Field::path("spec.containers[*].image", FieldType::Text)?.searchable(),
        Field::path("status.podIP", FieldType::Ip)?,
    ];
    Ok(Schema::new(Gvk::new("", "v1", "Pod"), fields)?)
}

fn maps() -> Result<Schema, Box<dyn Error>> {
    let fields = [
        Field::path("data.color", FieldType::Text)?.searchable(),
        Field::path("data.size", FieldType::Integer)?,
    ];
    Ok(Schema::new(Gvk::new("", "v1", "ConfigMap"), fields)?)
}

/// Changes one of ten ConfigMaps every second. Markup in their values is shown as it is.
async fn change(client: Client) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let colors = ["red", "blue", "<b>green</b>", "<script>alert(1)</script>"];
    for (number, color) in (0..).zip(colors.iter().cycle()) {
        let name = format!("map-{}", number % 10);
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"color": color, "size": number.to_string()},
        });
        let params = PatchParams::apply("browse").force();
        maps.patch(&name, &params, &Patch::Apply(map)).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}
