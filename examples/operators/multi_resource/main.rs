//! One generic handler for two kinds: the replicas of Deployments and StatefulSets.
//!
//! Run: `cargo run -p lariat-operators --example multi_resource` (on the embedded cluster), or with `KUBECONFIG=…` on
//! your own cluster, where it sees its own namespace only.

use std::process::ExitCode;

use anyhow::Result;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use lariat::FactoryBuilder;
use lariat::cluster::testing::{Fixture, deployment, object};
use lariat::kube::api::{DeleteParams, Patch, PatchParams};
use lariat_operators::multi_resource::{self, Replicas};
use lariat_operators::{About, Options, Paint, Stage, only_in, perform_with, print_action};
use serde_json::json;

const ABOUT: About = About {
    name: "multi_resource",
    what: "one handler for several kinds, without a switch on types",
    flags: &[],
    check: |_| Ok(()),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform_with(ABOUT, configure, set_up, story).await
}

fn configure(_: &Options, namespace: &str, builder: FactoryBuilder) -> Result<FactoryBuilder> {
    Ok(builder.default_options(only_in(namespace)))
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.suggest("k create deployment web --image registry.k8s.io/pause:3.10 --replicas 2");
    stage.suggest("k scale deployment web --replicas 4");
    multi_resource::register(&stage.factory, |kind, key, replicas| match replicas {
        None => print_action(kind.kind(), key.name(), Paint::Red, "is deleted"),
        Some(Replicas { ready, wanted }) => {
            let colour = if ready == wanted {
                Paint::Green
            } else {
                Paint::Yellow
            };
            print_action(
                kind.kind(),
                key.name(),
                colour,
                format_args!("{ready} of {wanted} ready"),
            );
        }
    })
}

async fn story(stage: &Stage) -> Result<()> {
    let (deployments, sets) = (stage.api::<Deployment>(), stage.api::<StatefulSet>());
    stage.step("a Deployment with two pods, and a StatefulSet with three");
    for workload in [deployment("web", 2), stateful_set("db", 3)] {
        let image = "/spec/template/spec/containers/0/image";
        let workload = workload.set(image, "registry.k8s.io/pause:3.10");
        workload
            .namespace(&stage.namespace)
            .create(&stage.client)
            .await?;
    }
    stage.until_printed(&["Deployment web", "2 of 2"]).await?;
    stage.until_printed(&["StatefulSet db", "3 of 3"]).await?;
    stage.step("the Deployment is scaled up, and the StatefulSet down");
    let (params, four) = (PatchParams::default(), json!({"spec": {"replicas": 4}}));
    deployments
        .patch("web", &params, &Patch::Merge(four))
        .await?;
    let one = json!({"spec": {"replicas": 1}});
    sets.patch("db", &params, &Patch::Merge(one)).await?;
    stage.until_printed(&["Deployment web", "4 of 4"]).await?;
    stage.until_printed(&["StatefulSet db", "1 of 1"]).await?;
    stage.step("both are deleted");
    let params = DeleteParams::background();
    deployments.delete("web", &params).await?;
    sets.delete("db", &params).await?;
    stage.until_printed(&["Deployment web is deleted"]).await?;
    stage.until_printed(&["StatefulSet db is deleted"]).await
}

/// A StatefulSet is a Deployment with a name for its Service.
fn stateful_set(name: &str, replicas: u32) -> Fixture {
    let spec = deployment(name, replicas).value()["spec"].clone();
    object("apps/v1", "StatefulSet", name)
        .set("/spec", spec)
        .set("/spec/serviceName", name)
        .set("/spec/podManagementPolicy", "Parallel")
}
