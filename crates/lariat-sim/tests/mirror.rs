//! A small operator with a bug that tests with one process never show: `docs/simulator.md` takes it apart.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat_cluster::Cluster;
use lariat_controller::{Context, HandlerResult, Outcome};
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::{Chaos, Objects, Simulation};
use serde_json::json;

/// Keeps a Secret beside each ConfigMap, and deletes it when the ConfigMap is deleted.
///
/// An operator that is down while a ConfigMap is deleted is never called for it: its cache begins without the object. So
/// the Secret stays, unless it has an owner reference, and the garbage collector takes it away.
async fn mirror(cx: Context<ConfigMap>, is_owned: bool) -> HandlerResult {
    let namespace = cx.key().namespace().unwrap_or("default");
    let secrets: Api<Secret> = Api::namespaced(cx.client(), namespace);
    let name = cx.key().name();
    let Some(config_map) = cx.object()? else {
        if let Err(error) = secrets.delete(name, &DeleteParams::default()).await
            && !matches!(&error, kube::Error::Api(status) if status.code == 404)
        {
            return Err(error.into());
        }
        return Ok(Outcome::done());
    };
    let owner = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": config_map.metadata.uid,
    }]);
    let owners = if is_owned { owner } else { json!([]) };
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "ownerReferences": owners},
        "stringData": config_map.data,
    });
    let params = PatchParams::apply("mirror").force();
    secrets.patch(name, &params, &Patch::Apply(secret)).await?;
    Ok(Outcome::done())
}

fn simulation(seed: u64, is_owned: bool) -> Simulation {
    let config_maps = Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps")
        .content(|number| json!({"data": {"number": number.to_string()}}));
    Simulation::new(seed)
        .objects(config_maps)
        .chaos(Chaos::default().lasts(Duration::from_secs(20)))
        .at_rest("no Secret is left behind", no_secret_is_left_behind)
        .program("mirror", move |process| async move {
            let factory = process
                .factory()
                .sync_timeout(Duration::from_secs(300))
                .build();
            process.inspect(&factory);
            let config_maps = factory.for_object::<ConfigMap>();
            config_maps.register_handler("mirror", move |cx| mirror(cx, is_owned))?;
            // Calls that a stop has to end are tried again by the next life.
            factory.run(2, process.terminated()).await.ok();
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

#[test]
fn a_secret_stays_when_the_operator_is_down_while_its_config_map_is_deleted() {
    let found = (0..50).find_map(|seed| simulation(seed, false).run().err());
    let failure = found.expect("a seed that kills the operator at the wrong moment");
    let violation = &failure.violations()[0];
    assert_eq!(violation.check, "the user's check", "{failure}");
    let (steps, before) = failure.steps();
    assert!(steps < before, "{failure}");
    println!("{failure}");
}

#[test]
fn with_an_owner_reference_no_secret_stays_over_fifty_seeds() {
    for seed in 0..50 {
        if let Err(failure) = simulation(seed, true).run() {
            panic!("{failure}");
        }
    }
}
