//! Taking over Pods nobody controls, and letting those go that are selected no more.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/controller_ref_manager.go`.

use serde_json::{Value, json};

use super::child::Child;
use super::kind::Kind;
use super::look::{Look, Next};
use super::selectors::Selectors;
use crate::control::write::Written;

/// Adopts the Pods that a ReplicaSet selects; `None` if there are none to adopt.
///
/// What was adopted counts from the next look on, which follows the change of the Pod.
pub(super) fn adopt(set: &Look<'_>, selectors: &Selectors) -> Option<Next> {
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
        if written != Written::Refused {
            next = Some(next.unwrap_or(Next::Change).or(Next::from(written)));
        }
    }
    next
}

/// Lets Pods go that a ReplicaSet selects no more; `pods` are those that are left.
pub(super) fn release(set: &Look<'_>, selectors: &Selectors, pods: &mut Vec<Child>) -> Next {
    let mut next = Next::Change;
    let uid = set.stored.uid();
    pods.retain(|pod| {
        let is_kept =
            pod.is_going() || selectors.is_selected(set.stored.key(), pod.stored.labels());
        if !is_kept {
            let written = set.edit(pod, |pod| {
                let references = pod["metadata"]["ownerReferences"].as_array_mut();
                let is_other = |each: &Value| each["uid"] != uid;
                references.into_iter().for_each(|all| all.retain(is_other));
            });
            next = next.or(Next::from(written));
        }
        is_kept
    });
    next
}
