//! Steps to apply, and the gates between them.

use kube::api::{Patch, PatchParams};
use lariat_operator::{Dependent, Desired, Readiness, Step};
use serde_json::{Value, json};

use crate::apply_rig::{Rig, config};
use crate::bench::settle;

/// Returns a ConfigMap that is ready once its entry `ready` says so.
pub(crate) fn gate(name: &str) -> Dependent {
    Dependent::value(config(name, "1")).ready_when(|object| match &object["data"]["ready"] {
        Value::String(text) if text == "yes" => Readiness::Ready,
        Value::String(text) => Readiness::failed(text.clone()),
        _ => Readiness::in_progress("it is closed"),
    })
}

/// Opens a gate, as another client.
pub(crate) async fn open(rig: &Rig, name: &str, text: Option<&str>) {
    let patch = Patch::Merge(json!({"data": {"ready": text}}));
    let api = rig.config_maps();
    let patched = api.patch(name, &PatchParams::default(), &patch).await;
    patched.expect("patched");
    settle().await;
}

/// Returns three steps: `one` and `two` are gates, `three` is a ConfigMap.
pub(crate) fn chain() -> Desired {
    Desired::new()
        .step(
            Step::new("third")
                .after("second")
                .with_value(config("three", "1")),
        )
        .step(Step::new("first").with_dependent(gate("one")))
        .step(
            Step::new("second")
                .after("first")
                .with_dependent(gate("two")),
        )
}

pub(crate) async fn there(rig: &Rig) -> Vec<String> {
    let list = rig
        .config_maps()
        .list(&kube::api::ListParams::default())
        .await;
    let names = list.expect("listed").items.into_iter();
    let names = names.filter_map(|each| each.metadata.name);
    // The cluster's own.
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

pub(crate) async fn rig_with(desired: Desired) -> Rig {
    let rig = Rig::watching().await;
    rig.want_all(desired);
    rig.bench.create("a", 1).await;
    settle().await;
    rig
}
