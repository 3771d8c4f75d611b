//! A handler of ConfigMaps that is registered for Pods.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use lariat::prelude::*;

async fn log(cx: Context<ConfigMap>) -> HandlerResult {
    println!("{}", cx.key());
    Ok(Outcome::done())
}

fn register(pods: &SharedController<Pod>) {
    let _ = pods.register_handler("log", log);
}

fn main() {}
