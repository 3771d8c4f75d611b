//! Several named handlers on one watch, one cache and one queue per kind.
//!
//! A small workload creates, changes and deletes Pods and Widgets (a custom kind). Three handlers handle the Pods: one
//! typed, one dynamic, and one that fails at first and is retried separately. One handler handles the Widgets. Code
//! enqueues keys directly. A table at the end shows the cost.
//!
//! Run: `cargo run --example quickstart` (on the embedded cluster), or with `KUBECONFIG=…` or `-- --kubeconfig PATH` on
//! your own cluster. With `-- --watch` it runs until Ctrl-C.

mod handlers;
mod journal;
mod options;
mod summary;
mod workload;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;
use lariat_examples::{
    ExampleCluster, Paint, arguments, error_exit, log_errors, output_closed, paint, say,
};
use options::Options;
use tokio::time::Instant;

/// The number of workers per kind.
const WORKERS: usize = 5;

#[tokio::main]
async fn main() -> ExitCode {
    log_errors();
    let outcome = match arguments::<Options>() {
        Ok(Some(options)) => run(options).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error_exit(&error),
    }
}

async fn run(options: Options) -> Result<()> {
    let target = ExampleCluster::find(options.kubeconfig.clone()).await?;
    let title = paint(Paint::Bold, "Lariat quickstart", 0);
    say(format_args!("{title} on {}", target.name));
    let legend = "numbers behind what happened are resource versions";
    say(format_args!("{}\n", paint(Paint::Dim, legend, 0)));
    let workload = workload::Workload::new(target.client.clone());
    let log = journal::Journal::new(workload.namespace());
    let factory = SharedControllerFactory::builder(target.client.clone()).build();
    let outcome = tokio::select! {
        biased;
        () = lariat::termination() => {
            log.note("stopping");
            Ok(())
        }
        outcome = control(&factory, &workload, &log, options.watch) => outcome,
        () = output_closed() => Ok(()),
    };
    // The objects are deleted however it ended.
    let stopped = factory.stop().await;
    let cleaned_up = workload.clean_up().await;
    outcome?;
    stopped?;
    cleaned_up?;

    summary::print(&factory.status(), target.embedded.as_ref());
    target.leave().await;
    Ok(())
}

/// Registers the handlers, starts the factory and runs the workload.
async fn control(
    factory: &SharedControllerFactory,
    workload: &workload::Workload,
    log: &journal::Journal,
    for_ever: bool,
) -> Result<()> {
    workload.prepare().await?;

    // The same controller twice: once typed, once dynamic.
    let pods = factory.for_object::<Pod>();
    let same_pods = factory.for_kind(Gvk::new("", "v1", "Pod"));
    pods.register_handler("announce", log.handler(handlers::announce))?;
    same_pods.register_handler("audit", log.handler(handlers::audit))?;
    pods.register_handler("register", log.handler(handlers::register))?;

    let widgets = factory.for_kind(workload::widget());
    widgets.register_handler("resize", log.handler(handlers::resize))?;

    // Keys can be enqueued before the start. There is no such pod, so handlers get no object.
    log.note("code enqueues a pod that does not exist");
    pods.enqueue(&ObjectKey::namespaced(workload.namespace(), "absent"));

    let started = Instant::now();
    factory.start(WORKERS).await?;
    log.note(&format!(
        "{WORKERS} workers per kind, caches filled in {}",
        summary::time(started.elapsed())
    ));

    log.note("code enqueues web-1 for later, at 1.5 s");
    let later = ObjectKey::namespaced(workload.namespace(), "web-1");
    pods.enqueue_after(&later, Duration::from_millis(1500));
    workload.run(log, for_ever).await
}
