//! The clusters that a fleet should have, as its sources and code say.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::Client;
use lariat_cache::ConnectError;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The number of a source; code has the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(pub(crate) usize);

impl SourceId {
    /// Clusters that code adds.
    pub(crate) const CODE: Self = Self(0);
}

/// How a cluster is reached.
#[derive(Clone)]
pub(crate) enum Access {
    Client(Client),
    /// A kubeconfig file, read when the cluster is connected to, and its content, by which a change is noticed.
    File(Arc<std::path::Path>, Arc<[u8]>),
    /// A kubeconfig that refers to nothing outside of it.
    Text(Arc<[u8]>),
}

impl Access {
    /// Connects to the cluster; nothing is sent yet.
    pub(crate) async fn client(&self) -> Result<Client, ConnectError> {
        match self {
            Self::Client(client) => Ok(client.clone()),
            Self::File(path, _) => lariat_cache::from_kubeconfig_file(&**path).await,
            Self::Text(text) => lariat_cache::from_kubeconfig_text(text).await,
        }
    }

    /// Returns whether another access leads to the same cluster with the same credentials.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(path, text), Self::File(other_path, other)) => {
                path == other_path && text == other
            }
            (Self::Text(text), Self::Text(other)) => text == other,
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
            Self::Text(_) => f.write_str("Text"),
        }
    }
}

/// A cluster that the fleet should have.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) source: SourceId,
    pub(crate) access: Access,
    /// A number that differs whenever the cluster was added or its access was changed.
    pub(crate) version: u64,
}

/// The clusters that the fleet should have, by name.
#[derive(Debug, Default)]
pub(crate) struct WantedClusters {
    clusters: Mutex<BTreeMap<Arc<str>, Wanted>>,
    /// The last version of a cluster. Never used again, so that one that is removed and added at once joins again.
    last: AtomicU64,
    changed: Notify,
}

impl WantedClusters {
    /// Adds a cluster of code, unless the name is taken; returns whether it was added.
    pub(crate) fn add(&self, name: &Arc<str>, client: Client) -> bool {
        let version = self.last.fetch_add(1, Ordering::Relaxed);
        let mut clusters = self.clusters.lock();
        let Entry::Vacant(entry) = clusters.entry(Arc::clone(name)) else {
            return false;
        };
        entry.insert(Wanted {
            source: SourceId::CODE,
            access: Access::Client(client),
            version,
        });
        drop(clusters);
        self.changed.notify_waiters();
        true
    }

    /// Adds a cluster, or changes its access. Returns whether the name belongs to the source.
    pub(crate) fn set(&self, source: SourceId, name: &Arc<str>, access: Access) -> bool {
        let version = self.last.fetch_add(1, Ordering::Relaxed);
        let mut clusters = self.clusters.lock();
        match clusters.entry(Arc::clone(name)) {
            Entry::Vacant(entry) => {
                entry.insert(Wanted {
                    source,
                    access,
                    version,
                });
            }
            Entry::Occupied(mut entry) => {
                let wanted = entry.get_mut();
                if wanted.source != source {
                    return false;
                }
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

    /// Removes a cluster of a source; returns whether it was there.
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

    /// Removes the clusters of a source that it does not name any more.
    pub(crate) fn retain(&self, source: SourceId, stays: impl Fn(&str) -> bool) {
        let mut clusters = self.clusters.lock();
        let before = clusters.len();
        clusters.retain(|name, wanted| wanted.source != source || stays(name));
        let has_changed = clusters.len() != before;
        drop(clusters);
        if has_changed {
            self.changed.notify_waiters();
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.clusters.lock().contains_key(name)
    }

    pub(crate) fn all(&self) -> BTreeMap<Arc<str>, Wanted> {
        self.clusters.lock().clone()
    }

    /// Returns a future that resolves at the next change.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}
