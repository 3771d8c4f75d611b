//! The size of a load.

/// The number of pods of a Deployment.
pub(super) const REPLICAS: usize = 8;

/// The largest number of namespaces, unless a number is given.
const NAMESPACES: usize = 50;

/// The number of pods on a node, unless a number of nodes is given.
const PODS_PER_NODE: usize = 30;

/// Realistic objects for [`Cluster::load`](crate::Cluster::load), in any number.
///
/// Pods have 5 to 6 kB each, belong to ReplicaSets of Deployments (eight each), run on nodes, and are
/// spread over namespaces; all of these are created, too. Names, images, environments, addresses,
/// uids and the owners of fields differ as they do in production, so the objects do not compress better
/// than real ones. The same load with the same [seed](Self::seed) is always the same, byte for byte.
///
/// It parses the syntax of the command line: `"pods=20000,nodes=500".parse::<Load>()`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// use lariat::cluster::{Cluster, Load};
///
/// let cluster = Cluster::builder().start().await?;
/// let loaded = cluster.load(Load::pods(1000)).await;
/// // 1000 pods, 125 Deployments and ReplicaSets, 34 nodes and three namespaces.
/// assert_eq!(loaded.created(), 1000 + 2 * 125 + 34 + 3);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "a load does nothing until a cluster is filled with it"]
pub struct Load {
    pub(super) pods: usize,
    pub(super) config_maps: usize,
    pub(super) nodes: Option<usize>,
    pub(super) namespaces: Option<usize>,
    pub(super) seed: u64,
}

impl Load {
    /// Returns a load of pods with their Deployments, ReplicaSets, nodes, namespaces.
    pub fn pods(pods: usize) -> Self {
        Self {
            pods,
            ..Self::default()
        }
    }

    /// Adds ConfigMaps of about 1 kB each (default 0), spread over the namespaces.
    pub fn config_maps(self, config_maps: usize) -> Self {
        Self {
            config_maps,
            ..self
        }
    }

    /// Sets the number of nodes.
    ///
    /// The default is one for every 30 pods, and at least 1 when there are pods.
    pub fn nodes(self, nodes: usize) -> Self {
        Self {
            nodes: Some(nodes),
            ..self
        }
    }

    /// Sets the number of namespaces.
    ///
    /// The default is one for every 400 pods or ConfigMaps, at most 50, and at least 1 when there are objects for them.
    pub fn namespaces(self, namespaces: usize) -> Self {
        Self {
            namespaces: Some(namespaces),
            ..self
        }
    }

    /// Sets the seed of names, uids and everything else that is random (default 0).
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    pub(super) fn node_count(&self) -> usize {
        let needed = usize::from(self.pods > 0);
        self.nodes
            .unwrap_or(self.pods.div_ceil(PODS_PER_NODE))
            .max(needed)
    }

    pub(super) fn namespace_count(&self) -> usize {
        let inside = self.pods + self.config_maps;
        let default = inside.div_ceil(400).min(NAMESPACES);
        self.namespaces
            .unwrap_or(default)
            .max(usize::from(inside > 0))
    }
}
