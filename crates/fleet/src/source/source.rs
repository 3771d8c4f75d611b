//! The sources of clusters.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::SharedControllerFactory;
use lariat_lease::Leadership;
use tokio_util::sync::CancellationToken;

use super::directory;
use super::secrets::{Naming, Secrets};
use crate::error::FleetError;
use crate::wanted::{SourceId, WantedClusters};

/// How often a directory is read by default.
const PERIOD: Duration = Duration::from_secs(10);

/// A source of clusters, which is read while the fleet runs.
///
/// A cluster that appears in the source joins the fleet, and one that is removed from it leaves. A cluster whose
/// kubeconfig changes is started again with the new one once that works. If two sources contain a cluster with the same
/// name, the first one keeps it until it is removed there; the other logs a warning.
///
/// ```
/// use std::time::Duration;
/// use lariat::fleet::ClusterSource;
/// use lariat::SharedControllerFactory;
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

/// The kinds of sources.
enum Kind {
    /// A directory and the period of reading it.
    Directory { path: PathBuf, every: Duration },
    /// Secrets of a hub.
    Secrets(Secrets),
}

impl ClusterSource {
    /// Reads the files of a directory as kubeconfigs.
    ///
    /// The name of a cluster is the name of its file without `.kubeconfig`, `.yaml` or `.yml`. Files whose name begins
    /// with a dot are skipped, so a mounted Secret works. The current context of each kubeconfig is used. If a file or
    /// the directory cannot be read, its clusters stay in the fleet, and the error is logged once.
    ///
    /// A cluster leaves when its file is missing at two reads in a row, in which the directory had another entry of any
    /// name. An empty directory may be a mount that came off, so its clusters stay. To remove the last cluster, leave
    /// another file there, such as `.keep`; a mounted Secret has `..data`.
    ///
    /// Only the kubeconfig itself is compared. When a file of a token or certificate that it refers to changes, the
    /// cluster is not started again: its client reads such files every minute, and after a 401 or a failure of TLS.
    ///
    /// The replicas of a program all read the directory, so all of them would run its clusters:
    /// [`FleetBuilder::fenced_by`](crate::FleetBuilder::fenced_by) makes one of them the leader.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Directory {
            path: path.into(),
            every: PERIOD,
        })
    }

    /// Reads kubeconfigs from Secrets of a hub cluster that match a label selector.
    ///
    /// The kubeconfig is in the key `kubeconfig`; see [`data_key`](Self::data_key). The name of a cluster is
    /// `namespace/name` of its Secret, or `name` if the source is limited to one [namespace](Self::namespace).
    ///
    /// Only metadata of Secrets is watched. A kubeconfig is read when its Secret has changed. It must contain its
    /// certificates and tokens: commands and paths of files are refused, because whoever can write the Secret could run
    /// commands in this process.
    ///
    /// The factory of the hub must not divide its keys among replicas: [`Fleet::run`](crate::Fleet::run) is an error
    /// then. With a leader election the clusters of all sources are those of the leader, as if the fleet were
    /// [fenced by](crate::FleetBuilder::fenced_by) the hub.
    ///
    /// The program must start the hub's factory. The factory watches Secrets as its
    /// [`KindOptions`](lariat_cache::KindOptions) say (default: in all namespaces), and needs permission to list, watch
    /// and get them.
    pub fn secrets(hub: &SharedControllerFactory, selector: &str) -> Self {
        Self(Kind::Secrets(Secrets::new(hub, selector, Naming::Secret)))
    }

    /// Reads the kubeconfigs that Cluster API writes for its `Cluster` objects.
    ///
    /// These are Secrets named after the cluster, with the suffix `-kubeconfig` and the key `value`. Otherwise it works
    /// as [`secrets`](Self::secrets) does. A cluster whose control plane is not up yet is retried until it is. For EKS there
    /// is a second Secret for users, `prod-user-kubeconfig` beside `prod-kubeconfig`: its member is not started, since
    /// both are one cluster.
    pub fn cluster_api(hub: &SharedControllerFactory) -> Self {
        let label = "cluster.x-k8s.io/cluster-name";
        Self(Kind::Secrets(Secrets::new(hub, label, Naming::ClusterApi)))
    }

    /// Sets how often a directory is read (default: every 10 seconds).
    ///
    /// Less than a second counts as a second. It has no effect on Secrets, which are watched.
    pub fn every(mut self, period: Duration) -> Self {
        if let Kind::Directory { every, .. } = &mut self.0 {
            *every = period.max(Duration::from_secs(1));
        }
        self
    }

    /// Limits the source to Secrets of one namespace (default: all).
    ///
    /// It does not change which Secrets the hub's factory watches. It has no effect on directories.
    pub fn namespace(mut self, namespace: &str) -> Self {
        if let Kind::Secrets(secrets) = &mut self.0 {
            secrets.namespace = Some(namespace.to_owned());
        }
        self
    }

    /// Sets the key of the kubeconfig in Secrets.
    ///
    /// The default is `kubeconfig`, or `value` for Cluster API. It has no effect on directories.
    pub fn data_key(mut self, key: &str) -> Self {
        if let Kind::Secrets(secrets) = &mut self.0 {
            secrets.data_key = key.to_owned();
        }
        self
    }

    /// Returns the leadership of the hub that its clusters need, if there is one.
    pub(crate) fn leadership(&self) -> Option<Leadership> {
        match &self.0 {
            // A hub with shards is refused when it is followed.
            Kind::Secrets(secrets) if secrets.hub.shards().is_some() => None,
            Kind::Secrets(secrets) => secrets.hub.leadership(),
            Kind::Directory { .. } => None,
        }
    }

    /// Reads the source until the token is cancelled.
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
