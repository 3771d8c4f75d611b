//! The controller of DaemonSets: a Pod on every node.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/daemon`. It writes no ControllerRevisions.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};

use super::child::Child;
use super::kind::Kind;
use super::nodes::Nodes;
use super::reconcile::{Reconcile, Requeue};
use super::refusal::slow_start;
use super::replica_set::Available;
use super::scheduler::selects;
use super::template::{self, share};

const REVISION: &str = "controller-revision-hash";

pub(super) fn reconcile(set: &Reconcile<'_>, nodes: &Nodes) -> Requeue {
    let pods = set.children(Kind::Pod);
    let selector = set.at("/spec/template/spec/nodeSelector");
    let fitting = nodes.iter().filter(|(_, node)| selects(selector, node));
    let wanted: BTreeSet<&str> = fitting.map(|(name, _)| name.as_str()).collect();
    let taken: HashSet<&str> = pods.iter().map(node_of).collect();
    let hash = template::hash(set.at("/spec/template"), 0);
    let mut next = Requeue::OnChange;
    if !set.stored.is_deleting() {
        // A Pod that is being deleted has to be gone first.
        let mut free = wanted.iter().filter(|node| !taken.contains(*node));
        let missing = free.clone().count();
        // What is refused is recorded where it happens, and the status says nothing of it.
        drop(slow_start(missing, || match free.next() {
            Some(node) => set.create_pod(&pod(set, node, &hash)),
            None => Ok(()),
        }));
        let firsts = firsts(&pods);
        let is_duplicate = |pod: &Child| {
            let first = firsts.get(node_of(pod));
            first.is_some_and(|first| age(first) < age(pod))
        };
        let is_surplus = |pod: &&Child| {
            !pod.is_going()
                // As podsShouldBeOnNode, without its back-off: a Pod that has ended is replaced.
                && (pod.is_over() || !wanted.contains(node_of(pod)) || is_duplicate(pod))
        };
        for pod in pods.iter().filter(is_surplus) {
            next = next.or(Requeue::from(set.delete(pod, None)));
        }
        next = next.or(update(set, &pods, wanted.len(), &hash));
    }
    let placed: Vec<&Child> = pods
        .iter()
        .filter(|pod| wanted.contains(node_of(pod)))
        .collect();
    let available = Available::of(set, &placed);
    let status = status(set, &placed, wanted.len(), pods.len(), &available, &hash);
    next.or(available.next)
        .or(Requeue::from(set.write_status(status)))
}

/// Returns the oldest Pod of each node; ties are ordered by name.
fn firsts(pods: &[Child]) -> HashMap<&str, &Child> {
    let mut firsts: HashMap<&str, &Child> = HashMap::new();
    for pod in pods.iter().filter(|pod| pod.is_active()) {
        let first = firsts.entry(node_of(pod)).or_insert(pod);
        if age(pod) < age(first) {
            *first = pod;
        }
    }
    firsts
}

/// Returns a sort key: Pods that are bound come first, then the oldest.
fn age(pod: &Child) -> (bool, &str, &str) {
    let is_waiting = pod.text("/spec/nodeName").is_empty();
    let created = pod.text("/metadata/creationTimestamp");
    (is_waiting, created, pod.name())
}

/// Returns the node that a Pod is bound or pinned to.
fn node_of(pod: &Child) -> &str {
    // A new Pod names its node in this affinity until the scheduler binds it.
    let pinned = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
        /nodeSelectorTerms/0/matchFields/0/values/0";
    match pod.text("/spec/nodeName") {
        "" => pod.text(pinned),
        node => node,
    }
}

fn pod(set: &Reconcile<'_>, node: &str, hash: &str) -> Value {
    let mut pod = template::pod(set);
    let generation = set.generation().to_string();
    template::label(&mut pod, REVISION, hash);
    // As CreatePodTemplate in daemonset_util.go, which still writes this deprecated label.
    template::label(&mut pod, "pod-template-generation", &generation);
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    pod["spec"]["affinity"]["nodeAffinity"] = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [field]}],
        },
    });
    pod
}

/// Deletes Pods of an old template, as many as may be unavailable.
fn update(set: &Reconcile<'_>, pods: &[Child], wanted: usize, hash: &str) -> Requeue {
    if set.text("/spec/updateStrategy/type") == "OnDelete" {
        return Requeue::OnChange;
    }
    let all = i64::try_from(wanted).unwrap_or(i64::MAX);
    let given = set.at("/spec/updateStrategy/rollingUpdate/maxUnavailable");
    let allowed = match given {
        Value::Null => 1,
        // With 0 no Pod could ever be replaced.
        given => share(given, 0, all, true).max(1),
    };
    let is_working = |pod: &&Child| pod.is_active() && pod.is_ready();
    let working = i64::try_from(pods.iter().filter(is_working).count()).unwrap_or(0);
    // Negative when more are unavailable than may be; then none that works is deleted.
    let room = usize::try_from(allowed - (all - working)).unwrap_or(0);
    let old = |pod: &&Child| !pod.is_going() && pod.label(REVISION) != hash;
    // Pods that are not available do not count against the limit.
    let (working, broken): (Vec<&Child>, Vec<&Child>) =
        pods.iter().filter(old).partition(is_working);
    let doomed = broken.into_iter().chain(working.into_iter().take(room));
    doomed.fold(Requeue::OnChange, |next, pod| {
        next.or(Requeue::from(set.delete(pod, None)))
    })
}

fn status(
    set: &Reconcile<'_>,
    placed: &[&Child],
    wanted: usize,
    all: usize,
    available: &Available,
    hash: &str,
) -> Value {
    let count = |is: &dyn Fn(&Child) -> bool| placed.iter().filter(|pod| is(pod)).count();
    let desired = i64::try_from(wanted).unwrap_or(i64::MAX);
    let mut status = json!({
        "observedGeneration": set.generation(), "desiredNumberScheduled": wanted,
        "currentNumberScheduled": placed.len(), "numberMisscheduled": all - placed.len(),
        "numberReady": count(&Child::is_ready),
    });
    let counts = [
        ("numberAvailable", available.count),
        ("numberUnavailable", desired - available.count),
    ];
    for (member, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        status[member] = count.into();
    }
    let updated = count(&|pod| pod.label(REVISION) == hash);
    if updated > 0 {
        status["updatedNumberScheduled"] = updated.into();
    }
    status
}
