//! Foos and their Deployments, on Lariat. Beside `kube_rs.rs`, see `docs/migrating-from-kube-rs.md`.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use kube::api::ObjectMeta;
use lariat::operator::{Desired, Event};
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Deployment a Foo wants.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.dev",
    version = "v1",
    kind = "Foo",
    namespaced,
    status = "FooStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    pub deployment_name: String,
    pub replicas: i32,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    #[serde(default)]
    pub available_replicas: i32,
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

pub async fn run(client: Client) -> anyhow::Result<()> {
    let factory = SharedControllerFactory::builder(client).build();
    let operator = Operator::new("foo-operator", &factory);
    let deployments = operator.api::<Deployment>();
    operator
        .reconciler("foos", &factory.for_object::<Foo>())
        .owns(&factory.for_object::<Deployment>())
        .report_errors("Ready")
        .register(move |cx| reconcile(cx, deployments.clone()))?;
    Ok(operator.run(5, lariat::termination()).await?)
}

async fn reconcile(cx: Reconcile<Foo>, deployments: CachedApi<Deployment>) -> HandlerResult {
    let FooSpec {
        deployment_name,
        replicas,
    } = &cx.object().spec;
    let applied = cx.apply(Desired::new().with(&deployment(&cx))).await?;
    if !applied.is_unchanged() {
        cx.event(Event::normal(
            "Applied",
            format!("Deployment {deployment_name} with {replicas} replicas"),
        ));
    }
    let key = ObjectKey::namespaced(cx.key().namespace().unwrap_or_default(), deployment_name);
    let status = deployments
        .get(&key)
        .await?
        .status
        .clone()
        .unwrap_or_default();
    let available = status.available_replicas.unwrap_or(0);
    cx.update_status(|status: &mut FooStatus| status.available_replicas = available)
        .await?;
    Ok(Outcome::done())
}

fn deployment(cx: &Reconcile<Foo>) -> Deployment {
    let labels = BTreeMap::from([("foo".to_owned(), cx.key().name().to_owned())]);
    let container = Container {
        name: "main".into(),
        image: Some("registry.k8s.io/pause:3.10".into()),
        ..Default::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(cx.object().spec.deployment_name.clone()),
            namespace: cx.key().namespace().map(str::to_owned),
            labels: Some(labels.clone()),
            ..Default::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(cx.object().spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..Default::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..Default::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![container],
                    ..Default::default()
                }),
            },
            ..Default::default()
        }),
        status: None,
    }
}
