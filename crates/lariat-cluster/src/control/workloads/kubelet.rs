//! The kubelets: let Pods start, become ready, come to their end.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::conditions::is_true;
use super::look::{Look, Next};
use super::nodes::Nodes;
use super::pod_status::{self, Address};
use crate::control::write::Written;
use crate::verbs::{Deletion, Propagation};

/// What a Pod does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Bind,
    Start,
    BecomeReady,
    End,
    Terminate,
}

/// Where every Pod is.
#[derive(Debug, Default)]
pub(super) struct Kubelet {
    /// The next step of each Pod that waits for one, and since when.
    waiting: HashMap<Arc<str>, (Step, Instant)>,
    /// How many addresses were given to Pods.
    addresses: u32,
}

impl Kubelet {
    pub(super) fn forget(&mut self, uid: &str) {
        self.waiting.remove(uid);
    }

    /// Returns until when a Pod waits for a step, or `None` if it is time.
    pub(super) fn wait(&mut self, pod: &Look<'_>, step: Step, delay: Duration) -> Option<Instant> {
        let now = Instant::now();
        let entry = self.waiting.entry(pod.stored.shared_uid());
        let (known, since) = entry.or_insert((step, now));
        if *known != step {
            (*known, *since) = (step, now);
        }
        // A delay beyond every clock is a day, after which it is looked at again.
        let at = since
            .checked_add(delay)
            .unwrap_or(now + Duration::from_secs(86_400));
        (at > now).then_some(at)
    }

    /// Takes the next step of a Pod, if it is time for it.
    pub(super) fn run(&mut self, pod: &Look<'_>, nodes: &Nodes) -> Next {
        let node = pod.text("/spec/nodeName");
        let state = nodes.get(node);
        // A Pod whose node is gone can only be deleted.
        let next = next_step(pod).filter(|(step, _)| *step == Step::Terminate || state.is_some());
        let Some((step, delay)) = next else {
            return Next::Change;
        };
        if let Some(at) = self.wait(pod, step, delay) {
            return Next::At(at);
        }
        let written = match step {
            Step::Bind => Written::Done,
            Step::Start => {
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
            Step::BecomeReady => pod.write_status(pod_status::ready(pod)),
            Step::End => pod.write_status(pod_status::ended(pod, pod_status::exit_code(pod))),
            Step::Terminate => terminate(pod),
        };
        self.waiting.remove(pod.stored.uid());
        Next::from(written)
    }

    /// Gives no address up to one that a Pod has already.
    pub(super) fn note_address(&mut self, address: &str) {
        let address = address.parse::<Ipv4Addr>().map(|each| each.octets());
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

fn next_step(pod: &Look<'_>) -> Option<(Step, Duration)> {
    let settings = pod.settings;
    if pod.stored.is_deleting() {
        let grace = pod.at("/metadata/deletionGracePeriodSeconds").as_u64();
        let grace = Duration::from_secs(grace.unwrap_or(0));
        // One that was let go already waits for its finalizers.
        return (!grace.is_zero()).then(|| (Step::Terminate, settings.termination.min(grace)));
    }
    match pod.text("/status/phase") {
        "" | "Pending" => Some((Step::Start, settings.start)),
        "Running" if !is_true(pod.at("/status/conditions"), "ContainersReady") => Some((
            Step::BecomeReady,
            settings.readiness.saturating_add(backoff(pod)),
        )),
        "Running" => Some((Step::End, pod_status::run_time(pod)?)),
        _ => None,
    }
}

/// Lets a running Pod fail at once.
pub(super) fn fail(pod: &Look<'_>) -> Next {
    match pod.text("/status/phase") {
        "Running" => Next::from(pod.write_status(pod_status::ended(pod, 1))),
        _ => Next::Change,
    }
}

/// Returns how long a container that ended waits to be started again: 10 s, doubled up to 5 min.
fn backoff(pod: &Look<'_>) -> Duration {
    let restarts = pod.at("/status/containerStatuses/0/restartCount").as_u64();
    let Some(again) = restarts.unwrap_or(0).checked_sub(1) else {
        return Duration::ZERO;
    };
    let seconds = 10_u64 << again.min(5);
    Duration::from_secs(seconds.min(300))
}

/// Lets a deleted Pod go, as a kubelet does when its containers have ended.
fn terminate(pod: &Look<'_>) -> Written {
    let deletion = Deletion {
        grace: Some(0),
        propagation: Some(Propagation::Background),
    };
    pod.writer().delete(&pod.resource, &pod.stored, deletion)
}
