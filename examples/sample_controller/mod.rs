//! The sample-controller of Kubernetes: a Foo has a Deployment, and tells how many of its pods are available.
//!
//! What happens to the Deployment behind the Foo's back is repaired. One of that name that is not the Foo's is left
//! alone: an Event says that it is in the way, and the Foo is reconciled as soon as it is gone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use lariat::Query;
use lariat::kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams};
use lariat::kube::{CustomResource, Resource, ResourceExt};
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Paint, tell};

/// The Deployment a Foo wants.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "samplecontroller.k8s.io", version = "v1alpha1", kind = "Foo")]
#[kube(namespaced, status = "FooStatus", derive = "PartialEq")]
#[kube(printcolumn(
    name = "Deployment",
    type_ = "string",
    json_path = ".spec.deploymentName"
))]
#[kube(printcolumn(
    name = "Available",
    type_ = "integer",
    json_path = ".status.availableReplicas"
))]
// API servers want to know that somebody allowed the use of their own groups.
#[kube(annotation("api-approved.kubernetes.io", "unapproved, experimental-only"))]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub deployment_name: String,
    /// How many pods it has; whoever scales the Deployment decides if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// How many of the pods are available.
    pub available_replicas: i32,
}

/// The index of Foos by the Deployment they want.
const BY_DEPLOYMENT: &str = "deployment";

/// Registers the reconciler of Foos.
///
/// # Errors
///
/// Foos have a handler of this name, or an index, already.
pub fn register(operator: &Operator) -> anyhow::Result<()> {
    let foos = operator.factory().for_object::<Foo>();
    let deployments = operator.factory().for_object::<Deployment>();
    // A Deployment that is in the way is not a Foo's own; the Foo that waits for its name is found through this index.
    let by_deployment = foos.cache();
    by_deployment.add_index(BY_DEPLOYMENT, |foo: &Foo| {
        vec![key(foo, &foo.spec.deployment_name).to_string()]
    })?;
    let waiting = Relation::map(move |deployment: &Metadata| {
        let found = by_deployment.by_index(BY_DEPLOYMENT, deployment.key().as_str());
        let foos = found.into_iter().flatten().flatten();
        foos.map(|foo| key(&*foo, &foo.name_any())).collect()
    });
    let api = operator.api::<Deployment>();
    operator
        .reconciler("foos", &foos)
        .owns(&deployments)
        .watches(&deployments, waiting)
        .register(move |cx| reconcile(cx, api.clone()))?;
    Ok(())
}

fn key(foo: &Foo, name: &str) -> ObjectKey {
    ObjectKey::namespaced(&foo.namespace().unwrap_or_default(), name)
}

async fn reconcile(cx: Reconcile<Foo>, deployments: CachedApi<Deployment>) -> HandlerResult {
    let foo = cx.object();
    let name = key(foo, &foo.spec.deployment_name);
    let found = deployments.get_opt(&name).await?;
    if let Some(found) = found.as_deref().filter(|found| !is_controlled(found, foo)) {
        return Err(in_the_way(&cx, &found.name_any()));
    }
    let is_as_wanted = |found: &Deployment| {
        let spec = found.spec.as_ref();
        let replicas = spec.and_then(|spec| spec.replicas);
        foo.spec
            .replicas
            .is_none_or(|wanted| replicas == Some(wanted))
    };
    let deployment = match found {
        Some(found) if is_as_wanted(&found) => found,
        _ => {
            let params = PatchParams::apply("sample-controller").force();
            let applied = deployments
                .patch(&name, &params, &Patch::Apply(deployment(foo)))
                .await?;
            tell("Foo", cx.key().name(), Paint::Green, "Synced");
            applied.into()
        }
    };
    prune(&deployments, &cx, &name).await?;
    let available = deployment.status.as_ref();
    let available = available.and_then(|status| status.available_replicas);
    report(&cx, available.unwrap_or(0)).await?;
    Ok(Outcome::done())
}

fn in_the_way(cx: &Reconcile<Foo>, name: &str) -> HandlerError {
    let text = format!("Resource {name:?} already exists and is not managed by Foo");
    tell("Foo", cx.key().name(), Paint::Red, &text);
    HandlerError::terminal(text)
}

fn is_controlled(deployment: &Deployment, foo: &Foo) -> bool {
    let owners = deployment.owner_references();
    owners
        .iter()
        .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == foo.uid().as_ref())
}

/// Deletes Deployments the Foo had under other names.
async fn prune(
    deployments: &CachedApi<Deployment>,
    cx: &Reconcile<Foo>,
    name: &ObjectKey,
) -> Result<(), HandlerError> {
    for old in deployments.list(&Query::owned_by(cx.raw().uid())).await? {
        let old = key(cx.object(), &old.name_any());
        if old != *name {
            deployments
                .delete(&old, &DeleteParams::background())
                .await?;
        }
    }
    Ok(())
}

async fn report(cx: &Reconcile<Foo>, available_replicas: i32) -> Result<(), HandlerError> {
    let status = FooStatus { available_replicas };
    if cx.object().status.as_ref() != Some(&status) {
        let foos: lariat::kube::Api<Foo> =
            lariat::kube::Api::namespaced(cx.client(), cx.key().namespace().unwrap_or_default());
        foos.patch_status(
            cx.key().name(),
            &PatchParams::default(),
            &Patch::Merge(json!({"status": status})),
        )
        .await?;
    }
    Ok(())
}

/// Returns the Deployment a Foo wants. What is left out is nobody's business of ours.
fn deployment(foo: &Foo) -> Deployment {
    let labels = BTreeMap::from(
        [("app", "foo"), ("controller", &foo.name_any())]
            .map(|(k, v)| (k.to_owned(), v.to_owned())),
    );
    let container = Container {
        name: "main".to_owned(),
        image: Some("registry.k8s.io/pause:3.10".to_owned()),
        ..Container::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            namespace: foo.namespace(),
            owner_references: foo
                .controller_owner_ref(&())
                .map(|owner: OwnerReference| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: foo.spec.replicas,
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![container],
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}
