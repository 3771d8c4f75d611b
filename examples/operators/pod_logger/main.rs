//! Logs what happens to pods: created, updated, deleted.
//!
//! Run: `cargo run -p lariat-operators --example pod_logger` (on the embedded cluster), or with `KUBECONFIG=…` on your
//! own cluster. With `-- --watch` it logs the pods of all namespaces until Ctrl-C or SIGTERM.

use std::process::ExitCode;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::cache::KindOptions;
use lariat::cluster::testing::pod;
use lariat::prelude::*;
use lariat::{FactoryBuilder, Selection};
use lariat_operators::pod_logger::{self, Event};
use lariat_operators::{About, Options, Paint, Stage, delete, perform_with, print_action};

const ABOUT: About = About {
    name: "pod_logger",
    what: "three handlers of one kind, each for one kind of change",
    flags: &[],
    check: |_| Ok(()),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform_with(ABOUT, configure, set_up, story).await
}

/// The story is about its own pods; `--watch` shows all pods.
fn configure(
    options: &Options,
    namespace: &str,
    builder: FactoryBuilder,
) -> Result<FactoryBuilder> {
    let selection = if options.watch {
        Selection::all()
    } else {
        Selection::all().in_namespaces([namespace])
    };
    let cache = KindOptions::default().selection(selection);
    let pods = Gvk::new("", "v1", "Pod");
    Ok(builder.kind_options(pods, pod_logger::options().cache(cache)))
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.suggest("k run web --image registry.k8s.io/pause:3.10");
    stage.suggest("k delete pod web");
    let everywhere = stage.options.watch;
    pod_logger::register(&stage.factory, move |event, key, phase| {
        let colour = match event {
            Event::Created => Paint::Green,
            Event::Updated => Paint::Yellow,
            Event::Deleted => Paint::Red,
        };
        // The story's pods are all in one namespace.
        let name = if everywhere { key.as_str() } else { key.name() };
        print_action(event.as_str(), name, colour, phase);
    })
}

async fn story(stage: &Stage) -> Result<()> {
    let pods = stage.api::<Pod>();
    let names = ["web-0", "web-1"];
    stage.step("two pods are created");
    for name in names {
        let pod = pod(name).namespace(&stage.namespace);
        let pod = pod.set("/spec/containers/0/image", "registry.k8s.io/pause:3.10");
        pod.create(&stage.client).await?;
    }
    for name in names {
        stage.until_printed(&["updated", name, "Running"]).await?;
    }
    stage.step("they are deleted");
    for name in names {
        delete(&pods, name).await?;
        // An update before says that the pod is being deleted.
        stage.until_printed(&[&format!("deleted {name}")]).await?;
    }
    Ok(())
}
