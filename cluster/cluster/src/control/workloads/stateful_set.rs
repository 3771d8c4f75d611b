//! The controller of StatefulSets: Pods with stable names, created and deleted in order.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/statefulset`. It writes no ControllerRevisions, and
//! keeps the claims of Pods it deletes.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::child::Child;
use super::kind::Kind;
use super::reconcile::{FAILED_CREATE, Reconcile, Requeue};
use super::replica_set::{Available, is_available};
use super::{claims, events, template};

const REVISION: &str = "controller-revision-hash";

/// The number of Pods that are created before other objects get their turn.
const BURST: i64 = 100;

/// A StatefulSet, and its Pods by ordinal.
struct Set<'a> {
    cx: &'a Reconcile<'a>,
    /// The Pods that the spec wants, by ordinal; `None` for one that is missing.
    wanted: Vec<(i64, Option<&'a Child>)>,
    /// The Pods beyond them, the highest ordinal first.
    condemned: Vec<&'a Child>,
    /// The revision of the present template.
    revision: String,
    is_parallel: bool,
}

pub(super) fn reconcile(cx: &Reconcile<'_>) -> Requeue {
    let pods = cx.children(Kind::Pod);
    let set = Set::new(cx, &pods);
    let next = if cx.stored.is_deleting() {
        Requeue::OnChange
    } else {
        set.advance()
    };
    let all: Vec<&Child> = pods.iter().collect();
    let available = Available::of(cx, &all);
    next.or(available.next)
        .or(Requeue::from(cx.write_status(set.status(&all, &available))))
}

fn ordinal(set: &Reconcile<'_>, pod: &Child) -> Option<i64> {
    let rest = pod.name().strip_prefix(set.name())?;
    rest.strip_prefix('-')?.parse().ok()
}

impl<'a> Set<'a> {
    fn new(cx: &'a Reconcile<'a>, pods: &'a [Child]) -> Self {
        let first = cx.number("/spec/ordinals/start").unwrap_or(0).max(0);
        let replicas = cx.replicas();
        let ordinals = first..first.saturating_add(replicas);
        // Not more than one burst beyond the present Pods, however many are wanted.
        let room = i64::try_from(pods.len()).unwrap_or(0).saturating_add(BURST);
        let near = first..ordinals.end.min(first.saturating_add(room));
        let mut by_ordinal = HashMap::new();
        for pod in pods {
            if let Some(ordinal) = ordinal(cx, pod) {
                by_ordinal.entry(ordinal).or_insert(pod);
            }
        }
        let is_wanted =
            |pod: &&Child| ordinal(cx, pod).is_some_and(|each| ordinals.contains(&each));
        let mut condemned: Vec<&Child> = pods.iter().filter(|pod| !is_wanted(pod)).collect();
        // As descendingOrdinal in stateful_set_utils.go.
        condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal(cx, pod)));
        let hash = template::hash(cx.at("/spec/template"), 0);
        Self {
            cx,
            wanted: near.map(|each| (each, by_ordinal.remove(&each))).collect(),
            condemned,
            revision: format!("{}-{hash}", cx.name()),
            is_parallel: cx.text("/spec/podManagementPolicy") == "Parallel",
        }
    }

    /// Creates, deletes or replaces the next Pod; all at once if `Parallel`.
    fn advance(&self) -> Requeue {
        for (ordinal, pod) in &self.wanted {
            match pod {
                None => {
                    // In order, the next Pod is created only once this one is available, which a change will say.
                    if !self.create(*ordinal) || !self.is_parallel {
                        return Requeue::OnChange;
                    }
                }
                // A Pod that has ended is deleted, to be created again under its name.
                Some(pod) if pod.is_over() && !pod.is_going() => {
                    return Requeue::from(self.cx.delete(pod, None));
                }
                Some(pod) => {
                    let is_settled = !pod.is_going() && is_available(self.cx, pod);
                    if !is_settled && !self.is_parallel {
                        return self.replace(pod);
                    }
                }
            }
        }
        self.shrink().unwrap_or_else(|| self.update())
    }

    /// Waits for a Pod to become available.
    ///
    /// An unready Pod of an old template is deleted.
    fn replace(&self, pod: &Child) -> Requeue {
        let is_stuck = !pod.is_going() && !pod.is_ready() && !self.is_current(pod);
        if is_stuck && self.updates(pod) {
            Requeue::from(self.cx.delete(pod, None))
        } else {
            Requeue::OnChange
        }
    }

    /// Deletes surplus Pods; `None` if there are none.
    fn shrink(&self) -> Option<Requeue> {
        let mut next = None;
        for pod in &self.condemned {
            let deleted = if pod.is_going() {
                Requeue::OnChange
            } else {
                Requeue::from(self.cx.delete(pod, None))
            };
            next = Some(next.unwrap_or(Requeue::OnChange).or(deleted));
            if !self.is_parallel {
                break;
            }
        }
        next
    }

    /// Deletes the last Pod whose template is old, once those behind it are available.
    fn update(&self) -> Requeue {
        for (_, pod) in self.wanted.iter().rev() {
            let Some(pod) = pod else {
                return Requeue::OnChange;
            };
            if !self.is_current(pod) && self.updates(pod) && !pod.is_going() {
                return Requeue::from(self.cx.delete(pod, None));
            }
            if pod.is_going() || !is_available(self.cx, pod) {
                return Requeue::OnChange;
            }
        }
        Requeue::OnChange
    }

    fn is_current(&self, pod: &Child) -> bool {
        pod.label(REVISION) == self.revision
    }

    /// Returns whether the update strategy applies to a Pod.
    fn updates(&self, pod: &Child) -> bool {
        let partition = self
            .cx
            .number("/spec/updateStrategy/rollingUpdate/partition");
        let strategy = self.cx.text("/spec/updateStrategy/type");
        strategy != "OnDelete" && ordinal(self.cx, pod) >= Some(partition.unwrap_or(0))
    }

    fn create(&self, ordinal: i64) -> bool {
        let name = format!("{}-{ordinal}", self.cx.name());
        let mut pod = template::pod(self.cx);
        pod["metadata"]["name"] = name.as_str().into();
        template::label(&mut pod, "statefulset.kubernetes.io/pod-name", &name);
        template::label(
            &mut pod,
            "apps.kubernetes.io/pod-index",
            &ordinal.to_string(),
        );
        template::label(&mut pod, REVISION, &self.revision);
        pod["spec"]["hostname"] = name.into();
        let subdomain = self.cx.text("/spec/serviceName");
        if !subdomain.is_empty() {
            pod["spec"]["subdomain"] = subdomain.into();
        }
        let created = claims::claim(self.cx, &mut pod, ordinal);
        let created = created.and_then(|()| self.cx.try_create(Kind::Pod, &pod));
        if let Err(refusal) = &created
            && !refusal.is_taken
        {
            let (set, name) = (self.cx.name(), &pod["metadata"]["name"]);
            let name = name.as_str().unwrap_or_default();
            let reason = &refusal.message;
            let message = format!("Create Pod {name} in StatefulSet {set} failed error: {reason}");
            events::warn(self.cx, FAILED_CREATE, &message);
        }
        created.is_ok()
    }

    fn status(&self, pods: &[&Child], available: &Available) -> Value {
        let count = |is: &dyn Fn(&Child) -> bool| pods.iter().filter(|pod| is(pod)).count();
        let updated = count(&|pod| self.is_current(pod) && !pod.is_going());
        let is_over = updated == pods.len() && self.condemned.is_empty();
        let before = self.cx.text("/status/currentRevision");
        // As completeRollingUpdate: the revision is the current one as soon as all Pods have it.
        let current = if is_over || before.is_empty() {
            self.revision.as_str()
        } else {
            before
        };
        json!({
            "observedGeneration": self.cx.generation(), "collisionCount": 0,
            "replicas": pods.len(), "readyReplicas": count(&Child::is_ready),
            "availableReplicas": available.count, "updatedReplicas": updated,
            "currentReplicas": count(&|pod| pod.label(REVISION) == current && !pod.is_going()),
            "currentRevision": current, "updateRevision": self.revision,
        })
    }
}
