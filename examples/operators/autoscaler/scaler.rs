//! The reconciler: creates and deletes Pods until there are as many as wanted.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Preconditions};
use lariat::operator::{Event, Finalizer, ReconcilerRegistration, Rule};
use lariat::prelude::*;
use lariat::{Query, describe};
use parking_lot::Mutex;

use super::kind::{Autoscaler, AutoscalerStatus};
use crate::{Paint, print_action};

/// The label of a pod with the namespace of its Autoscaler.
pub const OWNER_NAMESPACE: &str = "autoscaler.test.skuber.io/namespace";
/// The label of a pod with the name of its Autoscaler.
pub const OWNER_NAME: &str = "autoscaler.test.skuber.io/name";
/// The finalizer that keeps an Autoscaler until its pods are deleted.
const FINALIZER: &str = "autoscaler.test.skuber.io/pods";

/// Registers the reconciler of Autoscalers.
///
/// # Errors
///
/// It is registered already.
pub fn register(operator: &Operator) -> Result<ReconcilerRegistration> {
    let pods = operator.factory().for_object::<Pod>();
    let scaler = Scaler {
        pods: CachedApi::new(&pods),
        refusals: Arc::default(),
    };
    let cleaner = scaler.clone();
    let autoscalers = operator.factory().for_object::<Autoscaler>();
    let registration = operator
        .reconciler("autoscaler", &autoscalers)
        .watches(&pods, Relation::labels(OWNER_NAMESPACE, OWNER_NAME))
        // Not for its own writes of the status.
        .options(HandlerOptions::default().only(Predicate::generation_changed()))
        // For `operator.cluster_role()`; reading both kinds and the finalizer are known.
        .writes_status()
        .needs(Rule::of(&pods).verbs(["create", "delete"]))
        .needs(Rule::events())
        .finalizer(Finalizer::new(FINALIZER), move |cx| {
            let cleaner = cleaner.clone();
            async move { cleaner.delete_all(&cx).await }
        })
        .register(move |cx| {
            let scaler = scaler.clone();
            async move { scaler.reconcile(&cx).await }
        })?;
    Ok(registration)
}

/// The state of the reconciler.
#[derive(Clone)]
struct Scaler {
    pods: CachedApi<Pod>,
    /// Why the last pod of each Autoscaler was refused.
    refusals: Arc<Mutex<BTreeMap<ObjectKey, String>>>,
}

impl Scaler {
    async fn reconcile(&self, cx: &Reconcile<Autoscaler>) -> HandlerResult {
        let spec = &cx.object().spec;
        let all = Query::all().labels(selector(cx).parse()?);
        let all = self.pods.list(&all).await?.into_iter();
        let is_here = |pod: &Arc<Pod>| pod.namespace().as_ref() == Some(&spec.target_namespace);
        let (pods, strays): (Vec<_>, Vec<_>) =
            all.filter(|pod| is_available(pod)).partition(is_here);
        let available_replicas = u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let status = AutoscalerStatus {
            available_replicas,
            ready: available_replicas == spec.desired_replicas,
        };
        // Sends nothing if the status is unchanged.
        cx.set_status(&status).await?;
        // Whatever is done here is a change that calls the reconciler again.
        match (
            strays.first(),
            available_replicas.cmp(&spec.desired_replicas),
        ) {
            (Some(stray), _) => self.delete(cx, stray).await?,
            (None, Ordering::Less) => self.create(cx).await?,
            (None, Ordering::Greater) => self.delete(cx, least_useful(&pods)).await?,
            (None, Ordering::Equal) => {}
        }
        Ok(Outcome::done())
    }

    /// Creates a pod with the first free name.
    ///
    /// If the response to a creation is lost, it is retried with the same name, and refused until the cache contains
    /// the pod. With `generateName` there would be two pods.
    async fn create(&self, cx: &Reconcile<Autoscaler>) -> Result<(), HandlerError> {
        let mut number = 0;
        let key = loop {
            let name = format!("{}-{number}", cx.key().name());
            let key = ObjectKey::namespaced(&cx.object().spec.target_namespace, &name);
            match self.pods.get_opt(&key).await? {
                Some(_) => number += 1,
                None => break key,
            }
        };
        if let Err(error) = self.pods.create(&replica(cx, &key)).await {
            let event = Event::warning("FailedCreate", describe(&error));
            if self.is_news(cx, event.note()) {
                report(cx, event)
            } else {
                // Events are counted; lines would repeat.
                cx.event(event)
            }
            return Err(error.into());
        }
        let note = format!("created pod {key}");
        report(cx, Event::normal("ReplicaCreated", note));
        Ok(())
    }

    /// Records why a pod was refused; returns whether the reason is new.
    fn is_news(&self, cx: &Reconcile<Autoscaler>, reason: &str) -> bool {
        let before = self.refusals.lock().insert(cx.key().clone(), reason.into());
        cx.attempt() == 1 || before.as_deref() != Some(reason)
    }

    async fn delete(&self, cx: &Reconcile<Autoscaler>, pod: &Pod) -> Result<(), HandlerError> {
        let key = ObjectKey::namespaced(&pod.namespace().unwrap_or_default(), &pod.name_any());
        // Not a successor with the same name.
        let this_one = Preconditions {
            uid: pod.uid(),
            ..Preconditions::default()
        };
        let params = DeleteParams::default().preconditions(this_one);
        match self.pods.delete(&key, &params).await {
            Err(error) if error.is_not_found() => return Ok(()),
            outcome => outcome?,
        }
        let note = format!("deleted pod {key}");
        report(cx, Event::normal("ReplicaDeleted", note));
        Ok(())
    }

    /// Deletes the pods of an Autoscaler that is being deleted; done once there are none.
    async fn delete_all(&self, cx: &Reconcile<Autoscaler>) -> HandlerResult {
        self.refusals.lock().remove(cx.key());
        // This is the last chance to see a pod, so the API server is asked instead of the cache.
        let pods: Api<Pod> = Api::all(cx.client());
        let ours = ListParams::default().labels(&selector(cx));
        let pods = pods.list(&ours).await?.items;
        for pod in pods.iter().filter(|pod| !is_going(pod)) {
            self.delete(cx, pod).await?;
        }
        Ok(if pods.is_empty() {
            Outcome::done()
        } else {
            // The deletion of a pod calls the reconciler, too; this covers a pod that is deleted already.
            Outcome::requeue_after(Duration::from_secs(5))
        })
    }
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

/// Returns whether a pod runs or is about to run. A failed pod is replaced, and kept for inspection.
fn is_available(pod: &Pod) -> bool {
    !is_going(pod) && matches!(phase(pod), None | Some("Pending" | "Running"))
}

fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Returns the pod to delete first: one that does not run yet, or else the youngest.
fn least_useful(pods: &[Arc<Pod>]) -> &Pod {
    let uselessness = |pod: &&Arc<Pod>| {
        let is_running = phase(pod) == Some("Running");
        (!is_running, pod.creation_timestamp(), pod.name_any())
    };
    let last = pods.iter().max_by_key(uselessness);
    last.expect("there are more than are desired")
}

/// Reports what was done: as an Event for the users of the cluster, and as a line.
fn report(cx: &Reconcile<Autoscaler>, event: Event) {
    let colour = if event.is_warning() {
        Paint::Red
    } else {
        Paint::Green
    };
    print_action("Autoscaler", cx.key().name(), colour, event.note());
    cx.event(event);
}
