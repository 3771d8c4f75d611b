//! A handler that takes the object, as reconcilers of kube-rs do, instead of a context.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;

async fn log(pod: Arc<Pod>) -> HandlerResult {
    println!("{:?}", pod.metadata.name);
    Ok(Outcome::done())
}

fn register(pods: &SharedController<Pod>) {
    let _ = pods.register_handler("log", log);
}

fn main() {}
