//! The controller of ReplicaSets: as many Pods as the spec says.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/replicaset`, and `controller_ref_manager.go` beside it.

use std::time::Duration;

use serde_json::{Value, json};

use super::child::Child;
use super::conditions::Condition;
use super::kind::Kind;
use super::reconcile::{FAILED_CREATE, Reconcile, Requeue};
use super::refusal::{Refusal, slow_start};
use super::selectors::Selectors;
use super::{adoption, conditions, template};

/// The condition of a set whose Pods are refused.
pub(super) const FAILURE: &str = "ReplicaFailure";

/// The number of Pods created or deleted before other objects get their turn.
const BURST: i64 = 100;

pub(super) fn reconcile(set: &Reconcile<'_>, selectors: &Selectors) -> Requeue {
    if let Some(next) = adoption::adopt(set, selectors) {
        return next;
    }
    let mut pods = set.children(Kind::Pod);
    let released = adoption::release(set, selectors, &mut pods);
    let mut active: Vec<&Child> = pods.iter().filter(|pod| pod.is_active()).collect();
    let wanted = set.replicas();
    let mut next = released;
    let mut created = Ok(());
    if !set.stored.is_deleting() {
        let count = i64::try_from(active.len()).unwrap_or(i64::MAX);
        // Those that are missing then follow in the reconcile that these Pods cause.
        let missing = usize::try_from((wanted - count).clamp(0, BURST)).unwrap_or(0);
        created = slow_start(missing, || set.create_pod(&template::pod(set)));
        if count > wanted {
            active.sort_by_key(|pod| rank(pod));
            let surplus = usize::try_from((count - wanted).min(BURST)).unwrap_or(0);
            for pod in active.drain(..surplus) {
                next = next.or(Requeue::from(set.delete(pod, None)));
            }
        }
    }
    let available = Available::of(set, &active);
    next.or(available.next)
        .or(Requeue::from(set.write_status(status(
            set,
            &active,
            &available,
            created.err(),
        ))))
}

/// Returns a sort key: Pods that are deleted first do not run, are not ready, or are young.
fn rank(pod: &Child) -> (bool, bool, bool, std::cmp::Reverse<String>) {
    (
        // As ActivePodsWithRanks, without its ranks by node and by restarts.
        !pod.text("/spec/nodeName").is_empty(),
        pod.text("/status/phase") == "Running",
        pod.is_ready(),
        std::cmp::Reverse(pod.text("/metadata/creationTimestamp").to_owned()),
    )
}

/// The Pods that have been ready for long enough.
#[derive(Debug)]
pub(super) struct Available {
    pub(super) count: i64,
    /// The time at which the next Pod becomes available.
    pub(super) next: Requeue,
}

impl Available {
    pub(super) fn of(owner: &Reconcile<'_>, pods: &[&Child]) -> Self {
        let mut available = Self {
            count: 0,
            next: Requeue::OnChange,
        };
        for pod in pods {
            match available_at(owner, pod) {
                None => {}
                Some(Requeue::At(at)) => available.next = available.next.or(Requeue::At(at)),
                Some(_) => available.count += 1,
            }
        }
        available
    }
}

/// Returns when a ready Pod becomes available, `Requeue::OnChange` if it is.
fn available_at(owner: &Reconcile<'_>, pod: &Child) -> Option<Requeue> {
    let since = pod.ready_since()?;
    let seconds = owner.at("/spec/minReadySeconds").as_u64().unwrap_or(0);
    if seconds == 0 {
        return Some(Requeue::OnChange);
    }
    let until = owner.until(since, Duration::from_secs(seconds));
    Some(until.map_or(Requeue::OnChange, Requeue::At))
}

/// Returns whether a Pod has been ready for long enough.
pub(super) fn is_available(owner: &Reconcile<'_>, pod: &Child) -> bool {
    available_at(owner, pod) == Some(Requeue::OnChange)
}

fn status(
    set: &Reconcile<'_>,
    active: &[&Child],
    available: &Available,
    refusal: Option<Refusal>,
) -> Value {
    let labels = set.at("/spec/template/metadata/labels");
    let is_labelled = |pod: &&&Child| {
        let mut wanted = labels.as_object().into_iter().flatten();
        wanted.all(|(name, value)| pod.label(name) == value.as_str().unwrap_or_default())
    };
    let mut status = json!({
        "replicas": active.len(),
        "observedGeneration": set.generation(),
    });
    let counts = [
        (
            "fullyLabeledReplicas",
            active.iter().filter(is_labelled).count(),
        ),
        (
            "readyReplicas",
            active.iter().filter(|pod| pod.is_ready()).count(),
        ),
        (
            "availableReplicas",
            usize::try_from(available.count).unwrap_or(0),
        ),
    ];
    // Zeros are left out, as Go does with `omitempty`.
    for (member, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        status[member] = count.into();
    }
    let conditions = conditions_after(set, refusal.filter(|refusal| !refusal.is_end));
    if conditions.as_array().is_some_and(|all| !all.is_empty()) {
        status["conditions"] = conditions;
    }
    status
}

/// Returns the conditions of a set, of which one says whether Pods were refused.
// `calculateStatus`: the condition tells of the first refusal, until there is none any more.
fn conditions_after(set: &Reconcile<'_>, refusal: Option<Refusal>) -> Value {
    let mut all = set.at("/status/conditions").clone();
    match refusal {
        None => conditions::remove(&mut all, FAILURE),
        Some(refusal) if conditions::find(&all, FAILURE).is_none() => {
            let failure = Condition::new(FAILURE, true).because(FAILED_CREATE, refusal.message);
            failure.set(&mut all, &set.now(), None);
        }
        Some(_) => {}
    }
    all
}
