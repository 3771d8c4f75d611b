//! The controller of StatefulSets: Pods with names that stay, in their order.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/statefulset`. It writes no ControllerRevisions, and
//! leaves the claims of Pods it deletes where they are.

use serde_json::{Value, json};

use super::child::Child;
use super::kind::Kind;
use super::look::{Look, Next};
use super::replica_set::{Available, is_available};
use super::{claims, template};

const REVISION: &str = "controller-revision-hash";

/// How many Pods are created before the others get their turn.
const BURST: i64 = 100;

/// A StatefulSet, and its Pods by ordinal.
struct Set<'a> {
    look: &'a Look<'a>,
    /// The Pods that the spec wants, by ordinal; `None` for one that is missing.
    wanted: Vec<(i64, Option<&'a Child>)>,
    /// The Pods beyond them, the highest ordinal first.
    condemned: Vec<&'a Child>,
    /// The revision of the present template.
    revision: String,
    is_parallel: bool,
}

pub(super) fn reconcile(look: &Look<'_>) -> Next {
    let pods = look.children(Kind::Pod);
    let set = Set::new(look, &pods);
    let next = if look.stored.is_deleting() {
        Next::Change
    } else {
        set.advance()
    };
    let all: Vec<&Child> = pods.iter().collect();
    let available = Available::of(look, &all);
    next.or(available.next)
        .or(Next::from(look.write_status(set.status(&all, &available))))
}

fn ordinal(set: &Look<'_>, pod: &Child) -> Option<i64> {
    let rest = pod.name().strip_prefix(set.name())?;
    rest.strip_prefix('-')?.parse().ok()
}

impl<'a> Set<'a> {
    fn new(look: &'a Look<'a>, pods: &'a [Child]) -> Self {
        let first = look.number("/spec/ordinals/start").unwrap_or(0).max(0);
        let replicas = look.replicas();
        let ordinals = first..first.saturating_add(replicas);
        // No more than can be created at once, however many are wanted.
        let room = i64::try_from(pods.len()).unwrap_or(0).saturating_add(BURST);
        let near = first..ordinals.end.min(first.saturating_add(room));
        let by_ordinal = |wanted: i64| pods.iter().find(|pod| ordinal(look, pod) == Some(wanted));
        let is_wanted =
            |pod: &&Child| ordinal(look, pod).is_some_and(|each| ordinals.contains(&each));
        let mut condemned: Vec<&Child> = pods.iter().filter(|pod| !is_wanted(pod)).collect();
        condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal(look, pod)));
        let hash = template::hash(look.at("/spec/template"), 0);
        Self {
            look,
            wanted: near.map(|each| (each, by_ordinal(each))).collect(),
            condemned,
            revision: format!("{}-{hash}", look.name()),
            is_parallel: look.text("/spec/podManagementPolicy") == "Parallel",
        }
    }

    /// Does what is to be done next: in order, one Pod after the other, unless they are parallel.
    fn advance(&self) -> Next {
        for (ordinal, pod) in &self.wanted {
            match pod {
                None => {
                    if !self.create(*ordinal) || !self.is_parallel {
                        return Next::Change;
                    }
                }
                Some(pod) if pod.is_over() && !pod.is_going() => {
                    return Next::from(self.look.delete(pod, None));
                }
                Some(pod) => {
                    let is_settled = !pod.is_going() && is_available(self.look, pod);
                    if !is_settled && !self.is_parallel {
                        return self.remake(pod);
                    }
                }
            }
        }
        self.shrink().unwrap_or_else(|| self.update())
    }

    /// Waits for a Pod that is not available, unless it never will be because its template is old.
    fn remake(&self, pod: &Child) -> Next {
        let is_stuck = !pod.is_going() && !pod.is_ready() && !self.is_current(pod);
        if is_stuck && self.updates(pod) {
            Next::from(self.look.delete(pod, None))
        } else {
            Next::Change
        }
    }

    /// Deletes Pods that are too many; `None` if there are none.
    fn shrink(&self) -> Option<Next> {
        let mut next = None;
        for pod in &self.condemned {
            let deleted = if pod.is_going() {
                Next::Change
            } else {
                Next::from(self.look.delete(pod, None))
            };
            next = Some(next.unwrap_or(Next::Change).or(deleted));
            if !self.is_parallel {
                break;
            }
        }
        next
    }

    /// Deletes the last Pod whose template is old, once those behind it are available.
    fn update(&self) -> Next {
        for (_, pod) in self.wanted.iter().rev() {
            let Some(pod) = pod else {
                return Next::Change;
            };
            if !self.is_current(pod) && self.updates(pod) && !pod.is_going() {
                return Next::from(self.look.delete(pod, None));
            }
            if pod.is_going() || !is_available(self.look, pod) {
                return Next::Change;
            }
        }
        Next::Change
    }

    fn is_current(&self, pod: &Child) -> bool {
        pod.label(REVISION) == self.revision
    }

    /// Returns whether a Pod is to follow the template.
    fn updates(&self, pod: &Child) -> bool {
        let partition = self
            .look
            .number("/spec/updateStrategy/rollingUpdate/partition");
        let strategy = self.look.text("/spec/updateStrategy/type");
        strategy != "OnDelete" && ordinal(self.look, pod) >= Some(partition.unwrap_or(0))
    }

    fn create(&self, ordinal: i64) -> bool {
        let name = format!("{}-{ordinal}", self.look.name());
        let mut pod = template::pod(self.look);
        pod["metadata"]["name"] = name.as_str().into();
        template::label(&mut pod, "statefulset.kubernetes.io/pod-name", &name);
        template::label(
            &mut pod,
            "apps.kubernetes.io/pod-index",
            &ordinal.to_string(),
        );
        template::label(&mut pod, REVISION, &self.revision);
        pod["spec"]["hostname"] = name.into();
        let subdomain = self.look.text("/spec/serviceName");
        if !subdomain.is_empty() {
            pod["spec"]["subdomain"] = subdomain.into();
        }
        claims::claim(self.look, &mut pod, ordinal);
        self.look.create(Kind::Pod, &pod)
    }

    fn status(&self, pods: &[&Child], available: &Available) -> Value {
        let count = |is: &dyn Fn(&Child) -> bool| pods.iter().filter(|pod| is(pod)).count();
        let updated = count(&|pod| self.is_current(pod) && !pod.is_going());
        let is_over = updated == pods.len() && self.condemned.is_empty();
        let before = self.look.text("/status/currentRevision");
        let current = if is_over || before.is_empty() {
            self.revision.as_str()
        } else {
            before
        };
        json!({
            "observedGeneration": self.look.generation(), "collisionCount": 0,
            "replicas": pods.len(), "readyReplicas": count(&Child::is_ready),
            "availableReplicas": available.count, "updatedReplicas": updated,
            "currentReplicas": count(&|pod| pod.label(REVISION) == current && !pod.is_going()),
            "currentRevision": current, "updateRevision": self.revision,
        })
    }
}
