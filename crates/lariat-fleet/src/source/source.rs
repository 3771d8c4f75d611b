//! The sources of clusters.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::SharedControllerFactory;
use tokio_util::sync::CancellationToken;

use super::directory;
use super::secrets::{Naming, Secrets};
use crate::error::FleetError;
use crate::wanted::{SourceId, WantedClusters};

/// How often a directory is read.
const PERIOD: Duration = Duration::from_secs(10);

/// Where clusters of a fleet come from, while it runs.
///
/// A cluster that a source names joins the fleet, one that it names no more leaves, and one whose credentials change
/// leaves and joins again. If two sources name the same cluster, the one that named it first has it until it gives it up, and
/// a warning is logged.
///
/// ```
/// use std::time::Duration;
/// use lariat_controller::SharedControllerFactory;
/// use lariat_fleet::ClusterSource;
///
/// fn sources(hub: &SharedControllerFactory) -> [ClusterSource; 3] {
///     [
///         ClusterSource::directory("/etc/clusters").every(Duration::from_secs(60)),
///         ClusterSource::secrets(hub, "example.com/cluster=true").namespace("clusters"),
///         ClusterSource::cluster_api(hub).namespace("capi"),
///     ]
/// }
/// # let _ = sources;
/// ```
#[must_use = "a source does nothing until a fleet has it"]
pub struct ClusterSource(Kind);

enum Kind {
    Directory { path: PathBuf, every: Duration },
    Secrets(Secrets),
}

impl ClusterSource {
    /// Takes the files of a directory as kubeconfigs.
    ///
    /// Each is of a cluster with the name of the file. The ending `.kubeconfig`, `.yaml` or `.yml` does not belong to the name. Files that begin with a dot are skipped,
    /// so a mounted Secret works. The current context of the file counts. A file that cannot be read keeps its cluster;
    /// an unreadable directory keeps all of them, and is logged once.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Directory {
            path: path.into(),
            every: PERIOD,
        })
    }

    /// Takes Secrets of a hub cluster that match a label selector.
    ///
    /// They have a kubeconfig in the key `kubeconfig`. The cluster has the name of the Secret, behind its namespace and a slash unless one
    /// [namespace](Self::namespace) is read. Only metadata of Secrets is watched; a kubeconfig is read when the Secret
    /// has changed, and has to contain its certificates and tokens: commands and paths to files are refused, because
    /// who may write the Secret may not run commands here.
    ///
    /// The hub's factory has to be started by the program. It watches Secrets as its options say: in all namespaces unless
    /// [`KindOptions`](lariat_cache::KindOptions) restrict it, for which it needs the permission to list and watch them.
    pub fn secrets(hub: &SharedControllerFactory, selector: &str) -> Self {
        Self(Kind::Secrets(Secrets::new(hub, selector, Naming::Secret)))
    }

    /// Takes the kubeconfigs that Cluster API writes for its `Cluster`s.
    ///
    /// They are Secrets with the name of the cluster and `-kubeconfig`, and the key `value`. Otherwise as for
    /// [`secrets`](Self::secrets); a cluster whose control plane is not up yet is tried again until it is.
    pub fn cluster_api(hub: &SharedControllerFactory) -> Self {
        let label = "cluster.x-k8s.io/cluster-name";
        Self(Kind::Secrets(Secrets::new(hub, label, Naming::ClusterApi)))
    }

    /// Sets how often a directory is read (default: 10 seconds).
    ///
    /// Less than a second counts as a second. It has no effect on Secrets, which are watched.
    pub fn every(mut self, period: Duration) -> Self {
        if let Kind::Directory { every, .. } = &mut self.0 {
            *every = period.max(Duration::from_secs(1));
        }
        self
    }

    /// Takes Secrets of one namespace only (default: of all).
    ///
    /// What the hub's factory watches is not changed by it. It has no effect on directories.
    pub fn namespace(mut self, namespace: &str) -> Self {
        if let Kind::Secrets(secrets) = &mut self.0 {
            secrets.namespace = Some(namespace.to_owned());
        }
        self
    }

    /// Sets the key of the kubeconfig in Secrets.
    ///
    /// The default is `kubeconfig`, and for Cluster API `value`. It has no effect on directories.
    pub fn data_key(mut self, key: &str) -> Self {
        if let Kind::Secrets(secrets) = &mut self.0 {
            secrets.data_key = key.to_owned();
        }
        self
    }

    /// Writes down the clusters until the token is cancelled.
    pub(crate) async fn follow(
        &self,
        id: SourceId,
        wanted: Arc<WantedClusters>,
        until: CancellationToken,
    ) -> Result<(), FleetError> {
        match &self.0 {
            Kind::Directory { path, every } => {
                directory::follow(path, *every, id, &wanted, &until).await;
                Ok(())
            }
            Kind::Secrets(secrets) => secrets.follow(id, wanted, until).await,
        }
    }
}

impl fmt::Debug for ClusterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Directory { path, every } => f
                .debug_struct("Directory")
                .field("path", path)
                .field("every", every)
                .finish(),
            Kind::Secrets(secrets) => secrets.fmt(f),
        }
    }
}
