//! A handler that is a plain function.

use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;

fn log(cx: Context<Pod>) -> HandlerResult {
    println!("{}", cx.key());
    Ok(Outcome::done())
}

fn register(pods: &SharedController<Pod>) {
    let _ = pods.register_handler("log", log);
}

fn main() {}
