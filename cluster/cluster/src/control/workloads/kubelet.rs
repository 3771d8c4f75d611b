//! The kubelets: start Pods, make them ready, end them.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::conditions::is_true;
use super::nodes::Nodes;
use super::pod_status::{self, Address};
use super::reconcile::{Reconcile, Requeue};
use crate::control::write::WriteOutcome;
use crate::verbs::{Deletion, Propagation};

/// The next transition of a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    Bind,
    Start,
    BecomeReady,
    End,
    Terminate,
}

/// The kubelets of all nodes.
#[derive(Debug, Default)]
pub(super) struct Kubelet {
    /// The next transition of each Pod that waits for one, and since when it waits.
    waiting: HashMap<Arc<str>, (Transition, Instant)>,
    /// The number of addresses that were given to Pods.
    addresses: u32,
}

impl Kubelet {
    pub(super) fn forget(&mut self, uid: &str) {
        self.waiting.remove(uid);
    }

    /// Returns until when a Pod waits for a transition, or `None` if it is due.
    pub(super) fn wait(
        &mut self,
        pod: &Reconcile<'_>,
        transition: Transition,
        delay: Duration,
    ) -> Option<Instant> {
        let now = Instant::now();
        let entry = self.waiting.entry(pod.stored.shared_uid());
        let (known, since) = entry.or_insert((transition, now));
        // The time runs from the moment at which this transition became the next one.
        if *known != transition {
            (*known, *since) = (transition, now);
        }
        // What is too far ahead for the clock is enqueued for tomorrow, and then again.
        let at = since
            .checked_add(delay)
            .unwrap_or(now + Duration::from_secs(86_400));
        (at > now).then_some(at)
    }

    /// Carries out the next transition of a Pod, if it is due.
    pub(super) fn run(&mut self, pod: &Reconcile<'_>, nodes: &Nodes) -> Requeue {
        let node = pod.text("/spec/nodeName");
        let state = nodes.get(node);
        // A Pod whose node is gone can only be deleted.
        let is_possible =
            |next: &(Transition, Duration)| next.0 == Transition::Terminate || state.is_some();
        let Some((transition, delay)) = next_transition(pod).filter(is_possible) else {
            return Requeue::OnChange;
        };
        if let Some(at) = self.wait(pod, transition, delay) {
            return Requeue::At(at);
        }
        let written = match transition {
            // The scheduler waits under this transition, and carries it out itself.
            Transition::Bind => WriteOutcome::Done,
            Transition::Start => {
                let address = self.address();
                let host = state.map_or("", |state| &state.address);
                pod.write_status(pod_status::running(
                    pod,
                    &Address {
                        host,
                        own: &address,
                    },
                ))
            }
            Transition::BecomeReady => pod.write_status(pod_status::ready(pod)),
            Transition::End => pod.write_status(pod_status::ended(pod, pod_status::exit_code(pod))),
            Transition::Terminate => terminate(pod),
        };
        self.waiting.remove(pod.stored.uid());
        Requeue::from(written)
    }

    /// Skips all addresses up to one that a Pod has already.
    pub(super) fn note_address(&mut self, address: &str) {
        let address = address.parse::<Ipv4Addr>().map(|each| each.octets());
        // All addresses are in 10.64.0.0/10; others are of Pods whose status a client wrote.
        if let Ok([10, second @ 64..128, third, fourth]) = address {
            let number = u32::from_be_bytes([0, second - 64, third, fourth]);
            self.addresses = self.addresses.max(number);
        }
    }

    fn address(&mut self) -> String {
        self.addresses += 1;
        let [_, second, third, fourth] = self.addresses.to_be_bytes();
        Ipv4Addr::new(10, 64 + second % 64, third, fourth).to_string()
    }
}

fn next_transition(pod: &Reconcile<'_>) -> Option<(Transition, Duration)> {
    let settings = pod.settings;
    if pod.stored.is_deleting() {
        let seconds = pod.at("/metadata/deletionGracePeriodSeconds").as_u64();
        let grace = Duration::from_secs(seconds.unwrap_or(0));
        // A Pod that was terminated already waits for its finalizers.
        return (!grace.is_zero())
            .then(|| (Transition::Terminate, settings.termination.min(grace)));
    }
    match pod.text("/status/phase") {
        "" | "Pending" => Some((Transition::Start, settings.start)),
        "Running" if !is_true(pod.at("/status/conditions"), "ContainersReady") => Some((
            Transition::BecomeReady,
            settings.readiness.saturating_add(backoff(pod)),
        )),
        "Running" => Some((Transition::End, pod_status::run_time(pod)?)),
        _ => None,
    }
}

/// Fails a running Pod at once.
pub(super) fn fail(pod: &Reconcile<'_>) -> Requeue {
    match pod.text("/status/phase") {
        "Running" => Requeue::from(pod.write_status(pod_status::ended(pod, 1))),
        _ => Requeue::OnChange,
    }
}

/// Returns the back-off of a container that is restarted: 10 s, doubled up to 5 min.
fn backoff(pod: &Reconcile<'_>) -> Duration {
    let restarts = pod.at("/status/containerStatuses/0/restartCount").as_u64();
    let Some(again) = restarts.unwrap_or(0).checked_sub(1) else {
        return Duration::ZERO;
    };
    // The shift is bounded, since a Pod may restart any number of times.
    let seconds = 10_u64 << again.min(5);
    Duration::from_secs(seconds.min(300))
}

/// Deletes a Pod for good, as a kubelet does when its containers have ended.
fn terminate(pod: &Reconcile<'_>) -> WriteOutcome {
    let deletion = Deletion {
        grace: Some(0),
        propagation: Some(Propagation::Background),
    };
    pod.writer().delete(&pod.resource, &pod.stored, deletion)
}
