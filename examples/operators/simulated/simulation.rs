//! The simulation of the operator, and what has to hold at its end.

use std::collections::BTreeSet;
use std::time::Duration;

use lariat::cluster::Cluster;
use lariat::sim::{Chaos, Objects, Simulation};
use lariat::{Gvk, ObjectKey};
use serde_json::json;

use super::mirror::{Cleanup, register};

/// Creates the run of a seed: twenty seconds with faults, after which no Secret may be left behind.
pub fn simulation(seed: u64, cleanup: Cleanup) -> Simulation {
    let config_maps = Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps")
        .content(|number| json!({"data": {"number": number.to_string()}}));
    Simulation::new(seed)
        .objects(config_maps)
        .chaos(Chaos::default().duration(Duration::from_secs(20)))
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
