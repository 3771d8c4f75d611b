//! A handler that keeps an `Rc` across an await point.

use std::rc::Rc;

use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;

async fn log(cx: Context<Pod>) -> HandlerResult {
    let name = Rc::new(cx.key().name().to_owned());
    std::future::ready(()).await;
    println!("{name}");
    Ok(Outcome::done())
}

fn register(pods: &SharedController<Pod>) {
    let _ = pods.register_handler("log", log);
}

fn main() {}
