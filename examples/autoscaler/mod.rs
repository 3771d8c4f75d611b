//! Autoscaler: keeps as many pods as its spec says, in whatever namespace it says.
//!
//! A small ReplicaSet, but for the namespace: an owner reference cannot lead to another one, and the garbage collector
//! deletes what has one that does. So two labels tell whose a pod is, and a finalizer deletes the pods with their
//! Autoscaler. One label with `namespace/name` would not do, since the value of a label has no slashes; an annotation
//! could have that value, but neither the cache nor the API server finds objects by annotations.
//!
//! Each call creates or deletes one pod at most. That change calls the reconciler again, until there is nothing left to
//! do. The cache shows what was written through it, so no call counts without the pod the one before has made.

mod kind;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Preconditions};
use kube::ResourceExt;
use lariat::Query;
use lariat::operator::{Event, Finalizer, ReconcilerRegistration};
use lariat::prelude::*;

use crate::{Paint, tell};
pub use kind::{Autoscaler, AutoscalerSpec, AutoscalerStatus};

/// The label of a pod that tells the namespace of its Autoscaler.
pub const OWNER_NAMESPACE: &str = "autoscaler.test.skuber.io/namespace";
/// The label of a pod that tells the name of its Autoscaler.
pub const OWNER_NAME: &str = "autoscaler.test.skuber.io/name";

/// Registers the reconciler of Autoscalers.
///
/// # Errors
///
/// It is registered already.
pub fn register(operator: &Operator) -> Result<ReconcilerRegistration> {
    let pods = operator.factory().for_object::<Pod>();
    let scaler = Scaler(CachedApi::new(&pods));
    let autoscalers = operator.factory().for_object::<Autoscaler>();
    let registration = operator
        .reconciler("autoscaler", &autoscalers)
        .watches(&pods, Relation::labels(OWNER_NAMESPACE, OWNER_NAME))
        // Its own writes of the status are no reason to look again.
        .options(HandlerOptions::default().only(Predicate::generation_changed()))
        .finalizer(Finalizer::new("autoscaler.test.skuber.io/pods"), delete_all)
        .register(move |cx| {
            let scaler = scaler.clone();
            async move { scaler.reconcile(&cx).await }
        })?;
    Ok(registration)
}

/// What the reconciler works with: pods, from the cache.
#[derive(Clone)]
struct Scaler(CachedApi<Pod>);

impl Scaler {
    async fn reconcile(&self, cx: &Reconcile<Autoscaler>) -> HandlerResult {
        let spec = &cx.object().spec;
        let pods = self
            .0
            .list(&Query::all().labels(selector(cx).parse()?))
            .await?;
        let pods = pods.into_iter().filter(|pod| is_available(pod));
        let (pods, strays): (Vec<_>, Vec<_>) =
            pods.partition(|pod| pod.namespace().as_ref() == Some(&spec.target_namespace));
        let available = u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let ready = available == spec.desired_replicas;
        // Sends nothing if that is what it says already.
        cx.set_status(&AutoscalerStatus {
            available_replicas: available,
            ready,
        })
        .await?;
        match (strays.first(), available.cmp(&spec.desired_replicas)) {
            (Some(stray), _) => self.delete(cx, stray).await?,
            (None, Ordering::Less) => self.create(cx).await?,
            (None, Ordering::Greater) => self.delete(cx, least_useful(&pods)).await?,
            (None, Ordering::Equal) => {}
        }
        Ok(Outcome::done())
    }

    /// Creates a pod under the first name that is free. A creation whose answer was lost is tried again under the same
    /// name, and refused until the cache shows the pod; with names made up by the server there would be two.
    async fn create(&self, cx: &Reconcile<Autoscaler>) -> Result<(), HandlerError> {
        let mut number = 0;
        let key = loop {
            let name = format!("{}-{number}", cx.key().name());
            let key = ObjectKey::namespaced(&cx.object().spec.target_namespace, &name);
            match self.0.get_opt(&key).await? {
                Some(_) => number += 1,
                None => break key,
            }
        };
        self.0.create(&replica(cx, &key)).await?;
        report(
            cx,
            Event::normal("ReplicaCreated", format!("created pod {key}")),
        );
        Ok(())
    }

    async fn delete(&self, cx: &Reconcile<Autoscaler>, pod: &Pod) -> Result<(), HandlerError> {
        let key = ObjectKey::namespaced(&pod.namespace().unwrap_or_default(), &pod.name_any());
        // Not another one of that name.
        let this_one = Preconditions {
            uid: pod.uid(),
            ..Preconditions::default()
        };
        match self
            .0
            .delete(&key, &DeleteParams::default().preconditions(this_one))
            .await
        {
            Err(error) if error.is_not_found() => return Ok(()),
            outcome => outcome?,
        }
        report(
            cx,
            Event::normal("ReplicaDeleted", format!("deleted pod {key}")),
        );
        Ok(())
    }
}

/// Deletes the pods of an Autoscaler that is to go, and lets it go once there are none.
async fn delete_all(cx: Reconcile<Autoscaler>) -> HandlerResult {
    // There is no later chance to see a pod, so for once the API server is asked, and not the cache.
    let all: Api<Pod> = Api::all(cx.client());
    let pods = all
        .list(&ListParams::default().labels(&selector(&cx)))
        .await?
        .items;
    for pod in pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let deleted = Api::<Pod>::namespaced(cx.client(), &namespace)
            .delete(&name, &DeleteParams::default())
            .await;
        match deleted {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            outcome => drop(outcome?),
        }
        report(
            &cx,
            Event::normal(
                "ReplicaDeleted",
                format!("deleted pod {namespace}/{name} with its Autoscaler"),
            ),
        );
    }
    Ok(match pods.is_empty() {
        true => Outcome::done(),
        // That a pod is gone calls again, too.
        false => Outcome::requeue_after(std::time::Duration::from_secs(5)),
    })
}

/// Selects the pods of an Autoscaler, in all namespaces.
fn selector(cx: &Reconcile<Autoscaler>) -> String {
    let (namespace, name) = (cx.key().namespace().unwrap_or_default(), cx.key().name());
    format!("{OWNER_NAMESPACE}={namespace},{OWNER_NAME}={name}")
}

fn replica(cx: &Reconcile<Autoscaler>, key: &ObjectKey) -> Pod {
    let owner = [
        (OWNER_NAMESPACE, cx.key().namespace().unwrap_or_default()),
        (OWNER_NAME, cx.key().name()),
    ];
    let labels = owner.map(|(label, value)| (label.to_owned(), value.to_owned()));
    let container = Container {
        name: "replica".to_owned(),
        image: Some(cx.object().spec.image.clone()),
        ..Container::default()
    };
    Pod {
        metadata: ObjectMeta {
            name: Some(key.name().to_owned()),
            namespace: key.namespace().map(str::to_owned),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![container],
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}

/// Returns whether a pod runs or is about to.
fn is_available(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && matches!(phase, None | Some("Pending" | "Running"))
}

/// Returns the pod that is missed least: one that does not run yet, or else the youngest.
fn least_useful(pods: &[Arc<Pod>]) -> &Pod {
    let use_of = |pod: &&Arc<Pod>| {
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        (
            phase != Some("Running"),
            pod.creation_timestamp(),
            pod.name_any(),
        )
    };
    pods.iter()
        .max_by_key(use_of)
        .expect("there are more than are desired")
}

/// Tells of what was done: as an Event for the users of the cluster, and as a line.
fn report(cx: &Reconcile<Autoscaler>, event: Event) {
    tell("Autoscaler", cx.key().name(), Paint::Green, event.note());
    cx.event(event);
}
