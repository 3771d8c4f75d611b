//! A handler that returns no outcome.

use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;

fn register(pods: &SharedController<Pod>) {
    let _ = pods.register_handler("log", |cx: Context<Pod>| async move {
        println!("{}", cx.key());
    });
}

fn main() {}
