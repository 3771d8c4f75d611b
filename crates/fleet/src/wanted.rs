//! The clusters that a fleet should have, according to its sources and code.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::Client;
use lariat_client::ConnectError;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The number of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(pub(crate) usize);

impl SourceId {
    /// The source of clusters that code adds.
    pub(crate) const CODE: Self = Self(0);
}

/// How a cluster is reached.
#[derive(Clone)]
pub(crate) enum Access {
    /// With this client.
    Client(Client),
    /// With a kubeconfig file and its content.
    ///
    /// The file is read when the fleet connects; the content is compared to notice changes.
    File(Arc<std::path::Path>, Arc<[u8]>),
    /// With a kubeconfig that refers to nothing outside of it.
    Text(Arc<[u8]>),
}

impl Access {
    /// Creates a client for the cluster; sends no request to it.
    pub(crate) async fn client(&self) -> Result<Client, ConnectError> {
        match self {
            Self::Client(client) => Ok(client.clone()),
            Self::File(path, _) => lariat_client::from_kubeconfig_file(&**path).await,
            Self::Text(text) => lariat_client::from_kubeconfig_text(text).await,
        }
    }

    /// Returns whether the file has another content by now.
    pub(crate) async fn is_outdated(&self) -> bool {
        let Self::File(path, text) = self else {
            return false;
        };
        let present = tokio::fs::read(path).await;
        present.is_ok_and(|present| present[..] != text[..])
    }

    /// Returns whether both lead to the same cluster with the same credentials.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(path, text), Self::File(other_path, other)) => {
                path == other_path && text == other
            }
            (Self::Text(text), Self::Text(other)) => text == other,
            // Clients cannot be compared, and a source never changes its form of access.
            _ => false,
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Kubeconfigs have credentials.
        match self {
            Self::Client(_) => f.write_str("Client"),
            Self::File(path, _) => f.debug_tuple("File").field(path).finish(),
            Self::Text(..) => f.write_str("Text"),
        }
    }
}

/// A cluster that the fleet should have.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The source it comes from.
    pub(crate) source: SourceId,
    /// How it is reached.
    pub(crate) access: Access,
    /// Changes when the cluster is added.
    pub(crate) stay: u64,
    /// Changes when the cluster is added or its access changes.
    pub(crate) version: u64,
}

/// The clusters that the fleet should have, by name.
#[derive(Debug, Default)]
pub(crate) struct WantedClusters {
    /// The clusters.
    clusters: Mutex<BTreeMap<Arc<str>, Wanted>>,
    /// The last version of any cluster.
    ///
    /// Versions are never reused, so a cluster that is removed and added again joins again.
    last: AtomicU64,
    /// Notifies of changes.
    changed: Notify,
}

impl WantedClusters {
    /// Adds a cluster from code; returns `false` if the name is taken.
    pub(crate) fn add(&self, name: &Arc<str>, client: Client) -> bool {
        let version = self.last.fetch_add(1, Ordering::Relaxed);
        let mut clusters = self.clusters.lock();
        let Entry::Vacant(entry) = clusters.entry(Arc::clone(name)) else {
            return false;
        };
        entry.insert(Wanted {
            source: SourceId::CODE,
            access: Access::Client(client),
            stay: version,
            version,
        });
        drop(clusters);
        self.changed.notify_waiters();
        true
    }

    /// Adds a cluster, or changes its access; returns `false` if the name is taken.
    pub(crate) fn set(&self, source: SourceId, name: &Arc<str>, access: Access) -> bool {
        let version = self.last.fetch_add(1, Ordering::Relaxed);
        let mut clusters = self.clusters.lock();
        match clusters.entry(Arc::clone(name)) {
            Entry::Vacant(entry) => {
                entry.insert(Wanted {
                    source,
                    access,
                    stay: version,
                    version,
                });
            }
            Entry::Occupied(mut entry) => {
                let wanted = entry.get_mut();
                if wanted.source != source {
                    return false;
                }
                // Sources report a cluster again with every read. Without a change it keeps running.
                if wanted.access.is_same(&access) {
                    return true;
                }
                wanted.access = access;
                wanted.version = version;
            }
        }
        drop(clusters);
        self.changed.notify_waiters();
        true
    }

    /// Removes a cluster of a source; returns whether it existed.
    pub(crate) fn remove(&self, source: SourceId, name: &str) -> bool {
        let mut clusters = self.clusters.lock();
        let is_its = clusters.get(name).is_some_and(|it| it.source == source);
        if is_its {
            clusters.remove(name);
        }
        drop(clusters);
        if is_its {
            self.changed.notify_waiters();
        }
        is_its
    }

    /// Removes all clusters of a source.
    pub(crate) fn forget(&self, source: SourceId) {
        self.clusters
            .lock()
            .retain(|_, wanted| wanted.source != source);
        self.changed.notify_waiters();
    }

    /// Returns the names of the clusters of a source.
    pub(crate) fn of(&self, source: SourceId) -> Vec<Arc<str>> {
        let clusters = self.clusters.lock();
        let own = clusters.iter().filter(|(_, it)| it.source == source);
        own.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Returns whether the fleet should have a cluster with this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.clusters.lock().contains_key(name)
    }

    /// Returns a copy of all clusters.
    pub(crate) fn all(&self) -> BTreeMap<Arc<str>, Wanted> {
        self.clusters.lock().clone()
    }

    /// Returns a future that resolves at the next change.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}
