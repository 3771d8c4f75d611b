//! A view that does not implement `Deserialize`.

use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;

struct Phase {
    phase: String,
}

fn view(pods: &SharedController<Pod>) {
    let phases = pods.view::<Phase>();
    phases.cache();
}

fn main() {}
