//! The sample-controller of Kubernetes: a Foo owns a Deployment, and reports its available pods.
//!
//! Foreign changes of the Deployment are reverted. A Deployment of that name that the Foo does not own is left alone:
//! an Event reports the conflict, and the Foo gets its own one as soon as the other is deleted.

#![allow(clippy::disallowed_names, reason = "Foo is what the kind is called")]

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lariat::kube::api::ObjectMeta;
use lariat::kube::{CustomResource, ResourceExt};
use lariat::operator::{ApplyError, Desired, Event, Rule};
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Paint, print_action};

/// The spec of a Foo.
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
// Its pods carry the name as a label.
#[kube(validation = Rule::new("self.metadata.name.size() <= 63").message("the name is longer than a label can be"))]
// API servers require an approval annotation for groups of Kubernetes.
#[kube(annotation("api-approved.kubernetes.io", "unapproved, experimental-only"))]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment.
    #[schemars(length(min = 1, max = 253))]
    pub deployment_name: String,
    /// The number of pods; if not set, the Foo leaves it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// The number of available pods.
    pub available_replicas: i32,
}

/// The index of Foos by the name of their Deployment.
const BY_DEPLOYMENT: &str = "deployment";

/// Registers the reconciler of Foos.
///
/// # Errors
///
/// Foos have a handler of this name, or an index, already.
pub fn register(operator: &Operator) -> anyhow::Result<()> {
    let foos = operator.factory().for_object::<Foo>();
    let deployments = operator.factory().for_object::<Deployment>();
    // A conflicting Deployment has no Foo as its owner; the Foo that waits for its name is found through this index.
    let by_deployment = foos.cache();
    by_deployment.add_index(BY_DEPLOYMENT, |foo: &Foo| {
        vec![key(foo, &foo.spec.deployment_name).to_string()]
    })?;
    let waiting = Relation::map(move |deployment: &Metadata| {
        let found = by_deployment.by_index(BY_DEPLOYMENT, deployment.key().as_str());
        let foos = found.into_iter().flatten().flatten();
        foos.map(|foo| key(&foo, &foo.name_any())).collect()
    });
    let api = operator.api::<Deployment>();
    operator
        .reconciler("foos", &foos)
        // Not for its own writes of the Foo.
        .options(HandlerOptions::default().only(Predicate::generation_changed()))
        .owns(&deployments)
        .watches(&deployments, waiting)
        // For `operator.cluster_role()`; reading both kinds is known.
        .writes_status()
        .applies(&deployments)
        .needs(Rule::events())
        .register(move |cx| reconcile(cx, api.clone()))?;
    Ok(())
}

fn key(foo: &Foo, name: &str) -> ObjectKey {
    ObjectKey::namespaced(&foo.namespace().unwrap_or_default(), name)
}

async fn reconcile(cx: Reconcile<Foo>, deployments: CachedApi<Deployment>) -> HandlerResult {
    let foo = cx.object();
    // Creates or corrects it, deletes the one with a former name, or finds nothing to do.
    let applied = match cx.apply(Desired::new().with(&deployment(foo))).await {
        Ok(applied) => applied,
        Err(error) => return refused(&cx, error),
    };
    if !applied.is_unchanged() {
        cx.event(Event::normal("Synced", "Foo synced successfully"));
        let what = format!("Synced: {applied}");
        print_action("Foo", cx.key().name(), Paint::Green, what);
    }
    // The cache contains what was just applied.
    let name = key(foo, &foo.spec.deployment_name);
    let deployment = deployments.get_opt(&name).await?;
    let status = deployment.as_ref().and_then(|found| found.status.as_ref());
    let available = status.and_then(|status| status.available_replicas);
    let available_replicas = available.unwrap_or(0);
    cx.set_status(&FooStatus { available_replicas }).await?;
    Ok(Outcome::done())
}

/// Reports a conflicting Deployment. That is not retried: its deletion is a change, which calls the reconciler.
fn refused(cx: &Reconcile<Foo>, error: ApplyError) -> HandlerResult {
    let mut failures = error.failures().iter();
    if !failures.all(|failure| failure.error.is_name_taken()) {
        return Err(error.into());
    }
    let name = &cx.object().spec.deployment_name;
    let note = format!("Resource {name:?} already exists and is not managed by Foo");
    print_action("Foo", cx.key().name(), Paint::Red, &note);
    cx.event(Event::warning("ErrResourceExists", note));
    Ok(Outcome::done())
}

/// Returns the desired Deployment. Applying it adds the owner reference; fields that are not set are left alone.
fn deployment(foo: &Foo) -> Deployment {
    let labels = [("app", "foo".to_owned()), ("controller", foo.name_any())];
    let labels = BTreeMap::from(labels.map(|(label, value)| (label.to_owned(), value)));
    let container = Container {
        name: "main".to_owned(),
        image: Some("registry.k8s.io/pause:3.10".to_owned()),
        ..Container::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![container],
            ..PodSpec::default()
        }),
    };
    let selector = LabelSelector {
        match_labels: Some(labels),
        ..LabelSelector::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: foo.spec.replicas,
            selector,
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}
