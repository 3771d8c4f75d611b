//! Adopts Pods without a controller, and releases those that are no longer selected.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/controller_ref_manager.go`.

use serde_json::{Value, json};

use super::child::Child;
use super::kind::Kind;
use super::reconcile::{Reconcile, Requeue};
use super::selectors::Selectors;
use crate::control::write::WriteOutcome;

/// Adopts the Pods that a ReplicaSet selects; `None` if there are none to adopt.
///
/// Adopted Pods count from the next reconcile on, which the change of the Pod causes.
pub(super) fn adopt(set: &Reconcile<'_>, selectors: &Selectors) -> Option<Requeue> {
    // What is being deleted adopts nothing, or its deletion would take the adopted Pods along.
    if set.stored.is_deleting() {
        return None;
    }
    let mut next = None;
    for key in selectors.orphans_of(set.stored.key()) {
        let pod = set.find(Kind::Pod, key.name());
        let Some(pod) = pod.filter(Child::is_active) else {
            continue;
        };
        let reference = set.controller_reference();
        let written = set.edit(&pod, |pod| {
            let references = &mut pod["metadata"]["ownerReferences"];
            match references.as_array_mut() {
                Some(references) => references.push(reference),
                None => *references = json!([reference]),
            }
        });
        if written != WriteOutcome::Refused {
            next = Some(next.unwrap_or(Requeue::OnChange).or(Requeue::from(written)));
        }
    }
    next
}

/// Releases Pods that a ReplicaSet no longer selects, unless it is being deleted.
///
/// `pods` are then those that it selects.
pub(super) fn release(
    set: &Reconcile<'_>,
    selectors: &Selectors,
    pods: &mut Vec<Child>,
) -> Requeue {
    let mut next = Requeue::OnChange;
    let uid = set.stored.uid();
    pods.retain(|pod| {
        let is_kept =
            pod.is_going() || selectors.is_selected(set.stored.key(), pod.stored.labels());
        // As ClaimObject: what is being deleted releases nothing, so that its Pods go with it.
        if !is_kept && !set.stored.is_deleting() {
            let written = set.edit(pod, |pod| {
                let references = pod["metadata"]["ownerReferences"].as_array_mut();
                let is_other = |each: &Value| each["uid"] != uid;
                references.into_iter().for_each(|all| all.retain(is_other));
            });
            next = next.or(Requeue::from(written));
        }
        is_kept
    });
    next
}
