//! Foos and their Deployments, on kube-rs 5. Beside `lariat.rs`, see `docs/migrating-from-kube-rs.md`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::watcher;
use kube::{Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

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

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("Deployment {0:?} exists and is not controlled by this Foo")]
    InTheWay(String),
}

struct Operator {
    client: Client,
    recorder: Recorder,
}

pub async fn run(client: Client) {
    let foos: Api<Foo> = Api::all(client.clone());
    let deployments: Api<Deployment> = Api::all(client.clone());
    let recorder = Recorder::new(client.clone(), "foo-operator".into());
    Controller::new(foos, watcher::Config::default())
        .owns(deployments, watcher::Config::default())
        .shutdown_on_signal()
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(Operator { client, recorder }),
        )
        .for_each(|result| async move {
            if let Err(error) = result {
                tracing::warn!(%error, "reconcile failed");
            }
        })
        .await;
}

async fn reconcile(foo: Arc<Foo>, operator: Arc<Operator>) -> Result<Action, Error> {
    if foo.meta().deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let result = apply(&foo, &operator).await;
    let (available, problem) = match &result {
        Ok(available) => (Some(*available), None),
        Err(error) => (None, Some(error.to_string())),
    };
    report(&foo, &operator, available, problem).await?;
    result.map(|_| Action::await_change())
}

/// Applies the Deployment, deletes those of other names, and returns how many pods are available.
async fn apply(foo: &Foo, operator: &Operator) -> Result<i32, Error> {
    let namespace = foo.namespace().unwrap_or_default();
    let api: Api<Deployment> = Api::namespaced(operator.client.clone(), &namespace);
    let (name, uid) = (&foo.spec.deployment_name, foo.uid().unwrap_or_default());
    let is_ours = |found: &Deployment| {
        found
            .owner_references()
            .iter()
            .any(|owner| owner.controller == Some(true) && owner.uid == uid)
    };
    let found = api.get_opt(name).await?;
    if found.as_ref().is_some_and(|found| !is_ours(found)) {
        return Err(Error::InTheWay(name.clone()));
    }
    let params = PatchParams::apply("foo-operator").force();
    let applied = api
        .patch(name, &params, &Patch::Apply(deployment(foo)))
        .await?;
    if found.and_then(|found| found.resource_version()) != applied.resource_version() {
        let event = Event {
            type_: EventType::Normal,
            reason: "Applied".into(),
            note: Some(format!(
                "Deployment {name} with {} replicas",
                foo.spec.replicas
            )),
            action: "Apply".into(),
            secondary: None,
        };
        operator
            .recorder
            .publish(&event, &foo.object_ref(&()))
            .await?;
    }
    let labelled = ListParams::default().labels(&format!("foo={}", foo.name_any()));
    for old in api
        .list(&labelled)
        .await?
        .iter()
        .filter(|old| is_ours(old) && old.name_any() != *name)
    {
        api.delete(&old.name_any(), &DeleteParams::background())
            .await?;
    }
    Ok(applied
        .status
        .and_then(|status| status.available_replicas)
        .unwrap_or(0))
}

/// Writes the status, if it changed.
async fn report(
    foo: &Foo,
    operator: &Operator,
    available: Option<i32>,
    problem: Option<String>,
) -> Result<(), Error> {
    let old = foo.status.clone().unwrap_or_default();
    let status = if problem.is_none() { "True" } else { "False" };
    let before = old
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready");
    let since = before
        .filter(|before| before.status == status)
        .map(|before| before.last_transition_time.clone());
    let ready = Condition {
        type_: "Ready".into(),
        status: status.into(),
        reason: if problem.is_none() {
            "Reconciled"
        } else {
            "ReconcileError"
        }
        .into(),
        message: problem.unwrap_or_default(),
        observed_generation: foo.metadata.generation,
        last_transition_time: since.unwrap_or_else(|| Time(Timestamp::now())),
    };
    let new = FooStatus {
        available_replicas: available.unwrap_or(old.available_replicas),
        conditions: vec![ready],
    };
    if new != old {
        let api: Api<Foo> = Api::namespaced(
            operator.client.clone(),
            &foo.namespace().unwrap_or_default(),
        );
        let patch = Patch::Merge(json!({"status": new}));
        api.patch_status(&foo.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(())
}

fn deployment(foo: &Foo) -> Deployment {
    let labels = BTreeMap::from([("foo".to_owned(), foo.name_any())]);
    let container = Container {
        name: "main".into(),
        image: Some("registry.k8s.io/pause:3.10".into()),
        ..Default::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            namespace: foo.namespace(),
            labels: Some(labels.clone()),
            owner_references: foo.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..Default::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(foo.spec.replicas),
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
