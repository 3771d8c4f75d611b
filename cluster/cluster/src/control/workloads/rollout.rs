//! The rollout of a Deployment, from its old ReplicaSets to the new one.

use super::child::Child;
use super::kind::Kind;
use super::reconcile::{Reconcile, Requeue};
use super::template::share;

/// A Deployment and its ReplicaSets.
pub(super) struct Rollout<'a> {
    pub(super) deployment: &'a Reconcile<'a>,
    /// The set of the present template.
    pub(super) new: Option<Child>,
    /// The others, the oldest first.
    pub(super) old: Vec<Child>,
    pub(super) replicas: i64,
    /// The number of Pods that may exist beyond `replicas`.
    pub(super) surge: i64,
    /// The number of `replicas` that may be unavailable.
    pub(super) unavailable: i64,
    recreates: bool,
}

impl<'a> Rollout<'a> {
    pub(super) fn new(deployment: &'a Reconcile<'a>, new: Option<Child>, old: Vec<Child>) -> Self {
        let replicas = deployment.replicas();
        let recreates = deployment.text("/spec/strategy/type") == "Recreate";
        let given = |member: &str, rounds_up| {
            let pointer = format!("/spec/strategy/rollingUpdate/{member}");
            share(deployment.at(&pointer), 25, replicas, rounds_up)
        };
        let (surge, mut unavailable) = if recreates {
            (0, 0)
        } else {
            (
                given("maxSurge", true),
                given("maxUnavailable", false).min(replicas),
            )
        };
        // With neither the rollout could not begin.
        if surge == 0 && unavailable == 0 && !recreates {
            unavailable = 1;
        }
        Self {
            deployment,
            new,
            old,
            replicas,
            surge,
            unavailable,
            recreates,
        }
    }

    /// Returns the sum of a number over all sets.
    pub(super) fn sum(&self, pointer: &str) -> i64 {
        self.sum_old(pointer) + self.new_number(pointer)
    }

    fn sum_old(&self, pointer: &str) -> i64 {
        self.old.iter().map(|set| set.number(pointer)).sum()
    }

    pub(super) fn new_number(&self, pointer: &str) -> i64 {
        self.new.as_ref().map_or(0, |set| set.number(pointer))
    }

    /// Returns whether all Pods are of the present template, and available.
    pub(super) fn is_complete(&self) -> bool {
        self.new_number("/status/replicas") == self.replicas
            && self.sum("/status/replicas") == self.replicas
            && self.sum("/status/availableReplicas") >= self.replicas
            && self.sum_old("/spec/replicas") == 0
    }

    /// Returns whether a rollout progressed since the Deployment's status was written.
    pub(super) fn has_moved(&self) -> bool {
        // As DeploymentProgressing.
        let known = |member: &str| {
            let number = self.deployment.number(&format!("/status/{member}"));
            number.unwrap_or(0)
        };
        let updated = known("updatedReplicas");
        let old = known("replicas") - updated;
        self.new_number("/status/replicas") > updated
            || self.sum_old("/status/replicas") < old
            || self.sum("/status/readyReplicas") > known("readyReplicas")
            || self.sum("/status/availableReplicas") > known("availableReplicas")
    }

    /// Returns how many Pods the new set may have now.
    pub(super) fn new_replicas(&self) -> i64 {
        let present = self.new_number("/spec/replicas");
        if present >= self.replicas {
            return self.replicas;
        }
        if self.recreates {
            return if self.has_old_pods() {
                present
            } else {
                self.replicas
            };
        }
        let room = self.replicas + self.surge - self.sum("/spec/replicas");
        present + room.clamp(0, self.replicas - present)
    }

    fn has_old_pods(&self) -> bool {
        self.sum_old("/spec/replicas") > 0
            // Old Pods must have ended, not only be unwanted, and the numbers in the status come late.
            || self.old.iter().any(|set| {
                let cx = Reconcile::new(
                    self.deployment.plane,
                    self.deployment.settings,
                    Kind::ReplicaSet,
                    set.stored.key(),
                );
                let pods = cx.map(|cx| cx.children(Kind::Pod)).unwrap_or_default();
                pods.iter().any(|pod| !pod.is_over())
            })
    }

    /// Scales the sets as far as the strategy allows now.
    pub(super) fn advance(&self) -> Requeue {
        let is_paused = self.deployment.at("/spec/paused") == true;
        let mut next = Requeue::OnChange;
        if let Some(new) = &self.new {
            let wanted = if is_paused {
                new.number("/spec/replicas").min(self.replicas)
            } else {
                self.new_replicas()
            };
            if wanted != new.number("/spec/replicas") {
                next = next.or(Requeue::from(self.deployment.scale(new, wanted)));
            }
        }
        if is_paused {
            return next;
        }
        let mut room = self.old_surplus();
        let mut healthy_room = self.sum("/status/availableReplicas") - self.least();
        for set in &self.old {
            let present = set.number("/spec/replicas");
            let unavailable = (present - set.number("/status/availableReplicas")).max(0);
            // As cleanupUnhealthyReplicas: unavailable Pods go first, since that takes no availability away.
            let unhealthy = unavailable.min(room).min(present);
            let healthy = (present - unhealthy)
                .min(healthy_room)
                .min(room - unhealthy)
                .max(0);
            let less = if self.recreates {
                present
            } else {
                unhealthy.max(0) + healthy
            };
            if less > 0 {
                room -= less;
                healthy_room -= healthy;
                next = next.or(Requeue::from(self.deployment.scale(set, present - less)));
            }
        }
        next
    }

    /// Returns how many Pods have to be available.
    fn least(&self) -> i64 {
        self.replicas - self.unavailable
    }

    /// Returns how many Pods of old sets may be deleted now.
    fn old_surplus(&self) -> i64 {
        let unavailable =
            self.new_number("/spec/replicas") - self.new_number("/status/availableReplicas");
        (self.sum("/spec/replicas") - self.least() - unavailable).max(0)
    }
}
