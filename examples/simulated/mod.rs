//! A small operator with a bug that only a simulation of the whole program shows.
//!
//! [`register`] adds a handler that keeps a Secret for each ConfigMap, and deletes it when the ConfigMap is deleted.
//! [`simulation`] runs it while other clients write ConfigMaps, the network fails, and the operator is killed and
//! restarted.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat::cluster::Cluster;
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat::sim::{Chaos, Objects, Simulation};
use lariat::{Context, Gvk, HandlerResult, ObjectKey, Outcome, SharedControllerFactory};
use serde_json::json;

/// What deletes the Secret of a deleted ConfigMap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// The handler, when it is called for the deletion. If the operator is down at that moment, it never is: its cache
    /// starts without the ConfigMap, and the Secret stays.
    ByHandler,
    /// The garbage collector: the Secret has an owner reference.
    ByOwner,
}

/// Keeps a Secret for each ConfigMap.
///
/// # Errors
///
/// A handler of that name is registered already.
pub fn register(
    factory: &SharedControllerFactory,
    cleanup: Cleanup,
) -> Result<(), lariat::RegisterError> {
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps.register_handler("mirror", move |cx| mirror(cx, cleanup))?;
    Ok(())
}

async fn mirror(cx: Context<ConfigMap>, cleanup: Cleanup) -> HandlerResult {
    let namespace = cx.key().namespace().unwrap_or("default");
    let secrets: Api<Secret> = Api::namespaced(cx.client(), namespace);
    let name = cx.key().name();
    let Some(config_map) = cx.object()? else {
        return match secrets.delete(name, &DeleteParams::default()).await {
            Err(lariat::kube::Error::Api(status)) if status.code == 404 => Ok(Outcome::done()),
            result => Ok(result.map(|_| Outcome::done())?),
        };
    };
    let owners = match cleanup {
        Cleanup::ByHandler => json!([]),
        Cleanup::ByOwner => json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": config_map.metadata.uid,
        }]),
    };
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "ownerReferences": owners},
        "stringData": config_map.data,
    });
    let params = PatchParams::apply("mirror").force();
    secrets.patch(name, &params, &Patch::Apply(secret)).await?;
    Ok(Outcome::done())
}

/// Creates the run of a seed: twenty seconds with faults, after which no Secret may be left behind.
pub fn simulation(seed: u64, cleanup: Cleanup) -> Simulation {
    let config_maps = Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps")
        .content(|number| json!({"data": {"number": number.to_string()}}));
    Simulation::new(seed)
        .objects(config_maps)
        .chaos(Chaos::default().lasts(Duration::from_secs(20)))
        .at_rest("no Secret is left behind", no_secret_is_left_behind)
        .program("mirror", move |process| async move {
            let factory = process.factory().build();
            register(&factory, cleanup)?;
            process.run(&factory, 2).await?;
            Ok(())
        })
}

fn no_secret_is_left_behind(cluster: &Cluster) -> Result<(), String> {
    let keys = |resource: &str| -> BTreeSet<ObjectKey> {
        let objects = cluster.objects(resource);
        objects.iter().map(|object| object.key().clone()).collect()
    };
    let config_maps = keys("configmaps");
    match keys("secrets").difference(&config_maps).next() {
        Some(left) => Err(format!("Secret {left} has no ConfigMap")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
