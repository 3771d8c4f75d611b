//! A reconciler that takes the context of a handler.

use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;

async fn reconcile(cx: Context<Pod>) -> HandlerResult {
    println!("{}", cx.key());
    Ok(Outcome::done())
}

fn register(operator: &Operator, pods: &SharedController<Pod>) {
    let _ = operator.reconciler("pods", pods).register(reconcile);
}

fn main() {}
