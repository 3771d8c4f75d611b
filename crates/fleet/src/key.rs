//! Keys of objects in a set of clusters.

use std::fmt;
use std::sync::Arc;

use lariat_core::ObjectKey;

/// The key of an object in one of several clusters.
///
/// ```
/// use lariat::fleet::ClusterKey;
/// use lariat::ObjectKey;
///
/// let key = ClusterKey::new("eu-1", ObjectKey::namespaced("shop", "web"));
/// assert_eq!(key.to_string(), "eu-1: shop/web");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterKey {
    /// The name of the cluster.
    cluster: Arc<str>,
    /// The key within the cluster.
    key: ObjectKey,
}

impl ClusterKey {
    /// Creates the key of an object in a cluster.
    #[must_use]
    pub fn new(cluster: impl Into<Arc<str>>, key: ObjectKey) -> Self {
        Self {
            cluster: cluster.into(),
            key,
        }
    }

    /// Returns the name of the cluster.
    #[must_use]
    pub fn cluster(&self) -> &Arc<str> {
        &self.cluster
    }

    /// Returns the key within the cluster.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cluster, self.key)
    }
}
