//! A read-only view of a running cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::faults::Faults;
use crate::journal::Journal;
use crate::open_watches::OpenWatch;
use crate::server::Server;
use crate::store::TableCounts;

/// Shows the contents and activity of a running cluster; clones share it.
///
/// It makes no requests: nothing is recorded in the journal, and no fault applies. It does not keep the cluster
/// running; after the end of the cluster it shows the last state.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let cluster = lariat::cluster::Cluster::builder().start().await?;
/// let resources = cluster.inspector().resources();
/// let namespaces = resources.iter().find(|each| each.kind == "Namespace");
/// assert!(namespaces.is_some_and(|each| each.objects >= 4));
/// assert!(cluster.inspector().watches().is_empty());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Inspector {
    pub(super) server: Arc<Server>,
}

/// The objects and the history of one resource, in numbers.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::{Cluster, Load};
///
/// let cluster = Cluster::builder().start().await?;
/// cluster.load(Load::pods(100)).await;
/// let resources = cluster.inspector().resources();
/// let pods = resources.iter().find(|each| each.resource == "pods").expect("pods are loaded");
/// assert_eq!(pods.objects, 100);
/// assert!(pods.bytes > 100 * 4_000);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceCount {
    /// The group, empty for the core group.
    pub group: String,
    /// The kind of the objects.
    pub kind: String,
    /// The plural name.
    pub resource: String,
    /// The number of objects.
    pub objects: usize,
    /// The number of objects by namespace; those without one are under an empty name.
    pub namespaces: BTreeMap<String, usize>,
    /// The size of the objects in JSON, in bytes.
    pub bytes: usize,
    /// The number of changes that are kept for watches and reads of old states.
    pub changes: usize,
    /// The memory of these changes beside the objects, in bytes.
    pub history_bytes: usize,
    /// The oldest version from which a watch may go on.
    pub oldest: u64,
}

impl Inspector {
    /// Returns the resources that have objects or a history, by group and name.
    ///
    /// It visits all keys, so it takes time in proportion to the number of objects.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceCount> {
        let catalog = self.server.kinds.catalog();
        let mut counts: BTreeMap<_, TableCounts> = self
            .server
            .store
            .counts()
            .into_iter()
            .map(|counts| (counts.table, counts))
            .collect();
        let mut resources: Vec<ResourceCount> = catalog
            .each_table()
            .filter_map(|resource| {
                let counts = counts.remove(&resource.table)?;
                Some(ResourceCount {
                    group: resource.group.clone(),
                    kind: resource.kind.clone(),
                    resource: resource.plural.clone(),
                    objects: counts.namespaces.values().sum(),
                    namespaces: counts.namespaces,
                    bytes: counts.bytes,
                    changes: counts.changes,
                    history_bytes: counts.history_bytes,
                    oldest: counts.oldest,
                })
            })
            .filter(|count| count.objects > 0 || count.changes > 0)
            .collect();
        resources.sort_unstable_by(|a, b| (&a.group, &a.resource).cmp(&(&b.group, &b.resource)));
        resources
    }

    /// Returns the open watches, oldest first.
    #[must_use]
    pub fn watches(&self) -> Vec<OpenWatch> {
        self.server.watches.all()
    }

    /// Returns the resource version of the last change of any object.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.server.store.revision()
    }

    /// Returns the maximum number of kept changes of a resource.
    ///
    /// See the [builder](crate::ClusterBuilder::history).
    #[must_use]
    pub fn history(&self) -> usize {
        self.server.store.retention().changes
    }

    /// Returns the maximum memory of the changes of all resources, in bytes.
    ///
    /// See the [builder](crate::ClusterBuilder::history_bytes).
    #[must_use]
    pub fn history_bytes(&self) -> usize {
        self.server.store.retention().bytes
    }

    /// Returns how many clients a [write] or [body timeout] has cut off.
    ///
    /// [write]: crate::ClusterBuilder::write_timeout
    /// [body timeout]: crate::ClusterBuilder::body_timeout
    #[must_use]
    pub fn cut_off(&self) -> u64 {
        self.server.cut_off.load(Ordering::Relaxed)
    }

    /// Returns how many connections were accepted since the start.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.server.connections.load(Ordering::Relaxed)
    }

    /// Returns the record of all requests.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.server.journal.clone()
    }

    /// Returns the handle that adds and removes fault rules.
    #[must_use]
    pub fn faults(&self) -> Faults {
        Faults {
            server: Arc::clone(&self.server),
        }
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").finish_non_exhaustive()
    }
}
