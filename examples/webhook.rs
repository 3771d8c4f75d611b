//! A validating webhook: the API server asks before it stores an object.
//!
//! Shows the TLS certificate, which is made and rotated, the configuration, which is applied, and messages for the
//! fields that are wrong. Changing webhooks and conversions are served by the same server.
//!
//! Run: `cargo run --features webhook --example webhook` (on an embedded cluster), or with `KUBECONFIG=…` on one of
//! this machine, whose API server can reach `127.0.0.1`.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lariat::cluster::Sandbox;
use lariat::cluster::testing::{config_map, eventually};
use lariat::kube::api::{Api, DeleteParams};
use lariat::prelude::*;
use lariat::webhook::{Admission, Certificates, Decision, Endpoint, Hook, ReviewResult, Webhooks};

/// Denies ConfigMaps whose `port` is not a number, and names the field.
async fn port(request: Admission<ConfigMap>) -> ReviewResult<Decision> {
    let data = request.object()?.and_then(|map| map.data.as_ref());
    let Some(port) = data.and_then(|data| data.get("port")) else {
        return Ok(Decision::allow());
    };
    Ok(match port.parse::<u16>() {
        Err(error) => Decision::allow().cause("data.port", error.to_string()),
        Ok(0..1024) => Decision::allow().warn("ports below 1024 need a privilege"),
        Ok(_) => Decision::allow(),
    })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let (client, namespace) = (sandbox.client(), sandbox.namespace());
    let factory = SharedControllerFactory::builder(client.clone()).build();
    // For this namespace alone. A real program asks about all, or those with a label.
    let name = [(
        "kubernetes.io/metadata.name".to_owned(),
        namespace.to_owned(),
    )];
    let here = LabelSelector {
        match_labels: Some(name.into()),
        ..LabelSelector::default()
    };
    let configuration = format!("{namespace}.demo.dev");
    let server = Webhooks::new(&configuration, &factory)
        .validate(Hook::new("port").namespace_selector(here), port)
        // In a cluster: `Endpoint::service(…)`.
        .endpoint(Endpoint::local())
        .serve(
            "127.0.0.1:0",
            Certificates::secret(&ObjectKey::namespaced(namespace, "tls")),
        )
        .await?;
    println!("▸ webhooks are served at https://{}", server.address());
    server.applied().await;

    // API servers learn of a new webhook by a watch.
    let map = |port| config_map("web", &[("port", port)]).namespace(namespace);
    let denied = async || match map("http").create(&client).await {
        Ok(_) => {
            map("")
                .api(&client)
                .delete("web", &DeleteParams::default())
                .await
                .ok();
            Err("the webhook is not called yet")
        }
        Err(error) => Ok(error),
    };
    let error = eventually(Duration::from_secs(30), denied).await?;
    println!("▸ port \"http\" is denied\n  {}", lariat::describe(&error));
    map("8080").create(&client).await?;
    println!("▸ port \"8080\" is allowed");

    server.shutdown().await;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client);
    configurations
        .delete(&configuration, &DeleteParams::default())
        .await?;
    Ok(sandbox.close().await?)
}
