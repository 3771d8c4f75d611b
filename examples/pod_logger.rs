//! Logs what happens to pods, everywhere in the cluster: created, updated, deleted.
//!
//! Run: `cargo run --example pod_logger` (embedded cluster with a few pods that come and go), or with
//! `KUBECONFIG=…` on a cluster of yours. Ctrl-C or SIGTERM ends it.

use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat::kube::{self, Client};
use lariat::prelude::*;
use lariat_examples::{Paint, Place, error_exit, log_errors, output_closed, paint, say};
use serde_json::json;
use tokio::time::sleep;

/// One line for everything that happened to the pod since the last call.
async fn log(cx: Context<Pod>) -> HandlerResult {
    // Read as it is now; for a deletion, as it was last.
    let pod = cx.object()?.or(cx.deleted()?);
    let status = pod.as_ref().and_then(|pod| pod.status.as_ref());
    let phase = status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("unknown");
    for cause in cx.causes().iter() {
        let what = match cause {
            Cause::Added { .. } => paint(Paint::Green, "created", 8),
            Cause::Updated { .. } => paint(Paint::Yellow, "updated", 8),
            Cause::Deleted { .. } => paint(Paint::Red, "deleted", 8),
            _ => continue,
        };
        let (key, phase) = (
            paint(Paint::Cyan, cx.key(), 24),
            paint(Paint::Dim, phase, 0),
        );
        say(format_args!("{what} {key} {phase}"));
    }
    Ok(Outcome::done())
}

/// Pods that come, change and go, so that there is something to see.
async fn workload(client: Client) {
    let pods: Api<Pod> = Api::default_namespaced(client);
    for number in 0.. {
        if let Err(error) = come_and_go(&pods, &format!("web-{}", number % 100)).await {
            eprintln!("{}", paint(Paint::Dim, lariat::describe(&error), 0));
        }
    }
}

async fn come_and_go(pods: &Api<Pod>, name: &str) -> kube::Result<()> {
    let container = json!({"name": "main", "image": "busybox:stable"});
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
    let pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
    pods.create(&PostParams::default(), &pod).await?;
    sleep(Duration::from_millis(500)).await;
    let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
    pods.patch_status(name, &PatchParams::default(), &running)
        .await?;
    sleep(Duration::from_millis(500)).await;
    pods.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

async fn run() -> Result<()> {
    let place = Place::find(None).await?;
    say(format_args!("logging pods of {}; Ctrl-C ends", place.name));
    let factory = SharedControllerFactory::builder(place.client.clone()).build();
    factory.for_object::<Pod>().register_handler("log", log)?;
    let work = async {
        match place.embedded {
            Some(_) => workload(place.client.clone()).await,
            None => pending().await,
        }
    };
    // The workload never ends, so it is the signal that ends both.
    let end = async {
        tokio::select!(() = work => {}, () = lariat::termination() => {}, () = output_closed() => {})
    };
    factory.run(1, end).await?;
    say("stopped");
    place.leave().await;
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    log_errors();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error_exit(&error),
    }
}
