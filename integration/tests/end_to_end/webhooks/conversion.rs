//! Conversion between versions, and the migration of what is stored.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::kube::CustomResourceExt;
use lariat::kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use lariat::operator::{CrdOptions, ensure_crds};
use lariat::webhook::{Conversion, Endpoint, StorageMigration, Webhooks};
use lariat_integration::{Env, in_namespace};
use serde_json::json;

use super::{made, refused};

mod v1 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "webhooks.demo.dev",
        version = "v1",
        kind = "Gauge",
        namespaced
    )]
    pub(super) struct GaugeSpec {
        pub(super) size: i64,
    }
}

mod v2 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "webhooks.demo.dev",
        version = "v2",
        kind = "Gauge",
        namespaced
    )]
    pub(super) struct GaugeSpec {
        pub(super) width: i64,
    }
}

impl TryFrom<v1::Gauge> for v2::Gauge {
    type Error = String;

    fn try_from(old: v1::Gauge) -> Result<Self, String> {
        if old.spec.size == 13 {
            return Err("13 is no width".to_owned());
        }
        let spec = v2::GaugeSpec {
            width: old.spec.size,
        };
        Ok(Self {
            metadata: old.metadata,
            spec,
        })
    }
}

impl From<v2::Gauge> for v1::Gauge {
    fn from(new: v2::Gauge) -> Self {
        let spec = v1::GaugeSpec {
            size: new.spec.width,
        };
        Self {
            metadata: new.metadata,
            spec,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_converts_through_the_hub() {
    in_namespace("conversion", async |env| {
        let definition = merged(v1::Gauge::crd(), v2::Gauge::crd());
        let name = "gauges.webhooks.demo.dev";
        ensure_crds(&env.client, &[definition], &CrdOptions::default()).await?;
        env.takes_away(name);
        let factory = env.factory().build();
        let conversion = Conversion::<v2::Gauge>::hub().version::<v1::Gauge>();
        let server = Webhooks::new(&env.group(), &factory)
            .convert(conversion)
            .endpoint(Endpoint::local())
            .serve("127.0.0.1:0", made(env))
            .await?;
        ensure!(server.applied().await, "the server has stopped");
        let old: Api<v1::Gauge> = Api::namespaced(env.client.clone(), &env.namespace);
        let new: Api<v2::Gauge> = Api::namespaced(env.client.clone(), &env.namespace);
        let params = PostParams::default();
        let mut gauge = v1::Gauge::new("a", v1::GaugeSpec { size: 3 });
        gauge.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        let dynamic: Api<DynamicObject> = Api::namespaced_with(
            env.client.clone(),
            &env.namespace,
            &ApiResource::erase::<v2::Gauge>(&()),
        );
        // Until the API server has seen the webhook, it would store an object of v1 without its size, and nothing could
        // convert or delete that afterwards. So an object of v2, as which it is stored, is read first.
        let probe = v2::Gauge::new("probe", v2::GaugeSpec { width: 1 });
        new.create(&params, &probe).await?;
        lariat_integration::eventually(async || {
            let size = old.get("probe").await?.spec.size;
            ensure!(size == 1, "{size}");
            Ok(())
        })
        .await;
        dynamic.delete("probe", &DeleteParams::default()).await?;
        let odd = v1::Gauge::new("b", v1::GaugeSpec { size: 13 });
        let status = refused(old.create(&params, &odd).await)?;
        ensure!(status.message.contains("13 is no width"), "{status:?}");
        old.create(&params, &gauge).await?;
        let read = new.get("a").await?;
        ensure!(read.spec.width == 3 && read.metadata.labels == gauge.metadata.labels);
        new.create(&params, &v2::Gauge::new("c", v2::GaugeSpec { width: 4 }))
            .await?;
        let listed = old.list(&ListParams::default()).await?.items;
        let sizes: Vec<_> = listed.iter().map(|gauge| gauge.spec.size).collect();
        ensure!(sizes == [3, 4], "{sizes:?}");
        server.shutdown().await;
        // The objects are deleted with their definition, which asks for no conversion of its own.
        for name in ["a", "c"] {
            dynamic.delete(name, &DeleteParams::default()).await?;
        }
        Ok(())
    })
    .await;
}

/// Installs a kind of two versions, of which the first is stored; returns the name of its CRD, and that version.
async fn two_versions(env: &Env) -> Result<(String, ApiResource)> {
    let group = env.group();
    let name = format!("dials.{group}");
    let version = |version: &str, is_stored: bool| {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "name": version, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": open},
        })
    };
    let definition = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "dials", "kind": "Dial"},
            "versions": [version("v1", true), version("v2", false)],
        },
    }))?;
    ensure_crds(&env.client, &[definition], &CrdOptions::default()).await?;
    env.takes_away(&name);
    let kind = ApiResource {
        api_version: format!("{group}/v1"),
        group,
        version: "v1".to_owned(),
        kind: "Dial".to_owned(),
        plural: "dials".to_owned(),
    };
    Ok((name, kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_rewrites_what_is_stored() {
    in_namespace("migration", async |env| {
        let (name, kind) = two_versions(env).await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(env.client.clone());
        let dials: Api<DynamicObject> =
            Api::namespaced_with(env.client.clone(), &env.namespace, &kind);
        let mut before = Vec::new();
        for number in 0..5 {
            let dial = DynamicObject::new(&format!("d{number}"), &kind);
            before.push(dials.create(&PostParams::default(), &dial).await?);
        }
        let mut moved = definitions.get(&name).await?;
        moved.spec.versions[0].storage = false;
        moved.spec.versions[1].storage = true;
        definitions
            .replace(&name, &PostParams::default(), &moved)
            .await?;
        lariat_integration::eventually(async || {
            let status = definitions.get(&name).await?.status.context("no status")?;
            let stored = status.stored_versions.unwrap_or_default();
            ensure!(stored == ["v1", "v2"], "{stored:?}");
            Ok(())
        })
        .await;
        let migration = StorageMigration::new(&env.client, &name).page(2).rate(100);
        let report = migration.run().await?;
        ensure!((report.rewritten, report.skipped) == (5, 0), "{report:?}");
        ensure!(report.dropped == ["v1"], "{report:?}");
        let status = definitions.get(&name).await?.status.context("no status")?;
        ensure!(status.stored_versions == Some(vec!["v2".to_owned()]));
        for old in before {
            let name = old.metadata.name.clone().context("no name")?;
            let new = dials.get(&name).await?;
            ensure!(
                new.metadata.generation == old.metadata.generation,
                "{new:?}"
            );
            if !env.is_embedded() {
                // It was written: the bytes differ by the version.
                ensure!(
                    new.metadata.resource_version != old.metadata.resource_version,
                    "{new:?}"
                );
            }
        }
        Ok(())
    })
    .await;
}

/// Returns the definition of both versions, of which the second is stored.
fn merged(
    mut old: CustomResourceDefinition,
    new: CustomResourceDefinition,
) -> CustomResourceDefinition {
    old.spec.versions[0].storage = false;
    old.spec.versions.extend(new.spec.versions);
    old
}
