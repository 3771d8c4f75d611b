//! The content of a load: Deployments, and the pods of each.

use super::names::{self, hex, role, suffix, word};
use super::options::{Load, REPLICAS};
use crate::store::Draft;

/// Conditions, and which of the pod's times each came true at.
pub(super) const CONDITIONS: [(&str, usize); 4] = [
    ("Initialized", 0),
    ("Ready", 2),
    ("ContainersReady", 2),
    ("PodScheduled", 0),
];

/// The purposes of a seed, so that each draws different random numbers.
const APPS: u64 = 1;
const PODS: u64 = 2;

/// The seconds between the first and the last Deployment: twenty days.
const SPAN: u32 = 20 * 86_400;

/// One Deployment with all that belongs to it.
#[derive(Debug)]
pub(super) struct App {
    pub(super) name: String,
    pub(super) namespace: String,
    /// The hash of the pod template, which is in the name of the ReplicaSet.
    pub(super) hash: String,
    pub(super) uid: String,
    pub(super) replica_set_uid: String,
    pub(super) tag: String,
    pub(super) digest: String,
    pub(super) team: String,
    pub(super) checksum: String,
    pub(super) memory: u32,
    pub(super) sidecar: bool,
    pub(super) probe: bool,
    pub(super) restarts: u8,
    /// Names and values.
    pub(super) env: Vec<(String, String)>,
    /// The time of its creation, in seconds.
    pub(super) created: u32,
    pub(super) replicas: usize,
}

/// The values by which the pods of a Deployment differ.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) node: String,
    pub(super) host: String,
    pub(super) address: String,
    /// The volume with its token.
    pub(super) volume: String,
    /// Ids of its sandbox and its containers.
    pub(super) ids: [String; 3],
    /// The times at which it was scheduled, ran, and was ready.
    pub(super) times: [String; 3],
}

impl App {
    /// Iterates over the Deployments of a load.
    pub(super) fn all(load: &Load) -> impl Iterator<Item = Self> {
        (0..load.pods.div_ceil(REPLICAS)).map(|number| Self::new(load, number))
    }

    fn new(load: &Load, number: usize) -> Self {
        let mut rng = names::random(load.seed, APPS, number);
        let name = format!("{}-{}-{}", word(&mut rng), role(&mut rng), hex(&mut rng, 4));
        Self {
            namespace: names::namespace(number % load.namespace_count()),
            hash: suffix(&mut rng, 10),
            uid: names::uid(&mut rng),
            replica_set_uid: names::uid(&mut rng),
            tag: format!("v{}.{}.{}", rng.u8(1..5), rng.u8(..40), rng.u8(..20)),
            digest: hex(&mut rng, 64),
            team: format!("{}-{}", word(&mut rng), rng.u8(..5)),
            checksum: hex(&mut rng, 32),
            memory: 128 + 32 * rng.u32(..16),
            sidecar: number.is_multiple_of(10),
            probe: rng.bool(),
            // Most Pods never restarted, and a few did up to three times.
            restarts: rng.u8(..20).saturating_sub(16),
            env: (0..rng.usize(1..4))
                .map(|at| env(at, &name, &mut rng))
                .collect(),
            created: rng.u32(..SPAN),
            // The last Deployment has what is left.
            replicas: REPLICAS.min(load.pods - number * REPLICAS),
            name,
        }
    }

    pub(super) fn replica_set(&self) -> String {
        format!("{}-{}", self.name, self.hash)
    }

    pub(super) fn image(&self) -> String {
        format!("registry.example.com/shop/{}:{}", self.name, self.tag)
    }

    /// Returns the pod of a number, which counts over all Deployments.
    pub(super) fn instance(&self, load: &Load, number: usize) -> Instance {
        let mut rng = names::random(load.seed, PODS, number);
        let node = rng.usize(..load.node_count());
        let scheduled = self.created + rng.u32(1..30);
        let (net, high, low) = (rng.u8(128..192), rng.u8(..), rng.u8(1..255));
        Instance {
            name: format!("{}-{}", self.replica_set(), suffix(&mut rng, 5)),
            uid: names::uid(&mut rng),
            node: names::node(node),
            host: names::dotted(names::address(node)),
            address: format!("10.{net}.{high}.{low}"),
            volume: format!("kube-api-access-{}", suffix(&mut rng, 5)),
            ids: [(); 3].map(|()| hex(&mut rng, 64)),
            times: [0, 3, 14].map(|after| names::time(scheduled + after)),
        }
    }
}

impl Instance {
    /// Returns a blank instance, to be [filled](Draft::fill) with real values.
    pub(super) fn placeholders() -> Self {
        let placeholder = |at: usize| Draft::placeholder(at);
        Self {
            name: placeholder(0),
            uid: placeholder(1),
            node: placeholder(2),
            host: placeholder(3),
            address: placeholder(4),
            volume: placeholder(5),
            ids: [6, 7, 8].map(placeholder),
            times: [9, 10, 11].map(placeholder),
        }
    }

    /// Returns the values for the placeholders, in their order.
    pub(super) fn values(&self) -> [&str; 12] {
        let [sandbox, first, second] = &self.ids;
        let [scheduled, ran, ready] = &self.times;
        [
            &self.name,
            &self.uid,
            &self.node,
            &self.host,
            &self.address,
            &self.volume,
            sandbox,
            first,
            second,
            scheduled,
            ran,
            ready,
        ]
    }
}

/// Returns an environment variable.
fn env(at: usize, app: &str, rng: &mut fastrand::Rng) -> (String, String) {
    let (other, secret) = (word(rng), hex(rng, 12));
    match at {
        0 => ("LISTEN_ON".to_owned(), format!(":{}", rng.u16(8000..9000))),
        1 => (
            "DATABASE_URL".to_owned(),
            format!("postgres://{other}-{secret}.data.svc:5432/{app}"),
        ),
        // The number keeps names apart, as the list is keyed by them.
        _ => (
            format!("{}_URL_{at}", other.to_uppercase()),
            format!("http://{other}-{}.svc/{secret}", role(rng)),
        ),
    }
}
