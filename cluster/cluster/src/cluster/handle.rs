//! The handle of a running cluster.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{fmt, io};

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use lariat_core::ObjectKey;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::api::listener::{self, ListenerContext};
use crate::api::secure::{Acceptor, ServingTls};
use crate::api::service::ClusterService;
#[cfg(feature = "client")]
use crate::api::service::SignedService;
use crate::bootstrap;
use crate::cluster::{ClusterBuilder, Inspector};
#[cfg(feature = "workloads")]
use crate::control::SimulatedWorkloads;
use crate::control::{self, Control};
use crate::faults::Faults;
use crate::journal::Journal;
use crate::persist::LogWriter;
use crate::server::Server;
use crate::store::{Commit, Ending, Snapshot, StoredObject};

/// A Kubernetes cluster in this process.
///
/// It has an API server, its store, and the controllers it needs. It lives in memory, unless it has a data file, and
/// ends when it is dropped; [`shutdown`](Self::shutdown) also waits for that. Each cluster is on its own: a test can
/// have one, or dozens.
///
/// Time is tokio's: under a paused clock bookmarks, timeouts and timestamps move with it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let cluster = lariat::cluster::Cluster::builder().listen().start().await?;
/// println!("kubectl --server {}", cluster.url().expect("it listens"));
/// cluster.shutdown().await;
/// # Ok(()) }
/// ```
pub struct Cluster {
    pub(crate) server: Arc<Server>,
    tasks: TaskTracker,
    address: Option<SocketAddr>,
    security: ServingTls,
    /// The token of the kubeconfig.
    pub(crate) identity: Option<String>,
}

impl Cluster {
    /// Returns a builder: in memory, in process, without authentication.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::new()
    }

    /// Starts everything that runs for a cluster.
    pub(crate) fn spawn(
        server: Arc<Server>,
        security: ServingTls,
        listener: Option<(TcpListener, Acceptor)>,
        writer: Option<LogWriter>,
    ) -> io::Result<Self> {
        let local = |(listener, _): &(TcpListener, Acceptor)| listener.local_addr();
        let cluster = Self {
            // The port is known only now if the system chose it.
            address: listener.as_ref().map(local).transpose()?,
            tasks: TaskTracker::new(),
            server,
            security,
            identity: None,
        };
        let server = Arc::clone(&cluster.server);
        cluster.tasks.spawn(async move {
            tokio::select! {
                () = server.store.dispatch() => {}
                () = server.stopped.cancelled() => {}
            }
        });
        let server = Arc::clone(&cluster.server);
        cluster.tasks.spawn(control::run(server));
        if let Some(writer) = writer {
            let server = Arc::clone(&cluster.server);
            cluster
                .tasks
                .spawn(writer.run(server, cluster.tasks.clone()));
        }
        if let Some((listener, acceptor)) = listener {
            let context = ListenerContext {
                acceptor,
                service: cluster.service(),
                tasks: cluster.tasks.clone(),
            };
            cluster.tasks.spawn(listener::serve(listener, context));
        }
        Ok(cluster)
    }

    /// Returns the URL on which it listens; `None` if it does not.
    ///
    /// If it listens on all addresses, the URL has one of this machine.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        let scheme = self.security.scheme();
        let address = self.address.map(bootstrap::reached);
        address.map(|address| format!("{scheme}://{address}"))
    }

    /// Returns a kubeconfig for the URL; `None` if it does not listen.
    ///
    /// It is YAML with one context, `lariat`, and has the first [token](ClusterBuilder::token) and the authority of the
    /// server's certificate.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().listen().start().await?;
    /// let kubeconfig = cluster.kubeconfig().expect("it listens");
    /// let config = kube::config::Kubeconfig::from_yaml(&kubeconfig)?;
    /// assert_eq!(config.current_context.as_deref(), Some("lariat"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn kubeconfig(&self) -> Option<String> {
        let mut cluster = json!({"server": self.url()?});
        if let Some(authority) = self.security.authority() {
            cluster["certificate-authority-data"] = BASE64.encode(authority).into();
        }
        let user = match &self.identity {
            Some(token) => json!({"token": token}),
            None => json!({}),
        };
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "lariat",
            "clusters": [{"name": "lariat", "cluster": cluster}],
            "contexts": [
                {"name": "lariat", "context": {"cluster": "lariat", "user": "lariat"}},
            ],
            "users": [{"name": "lariat", "user": user}],
        });
        // Every JSON document is a YAML document.
        Some(format!("{config:#}\n"))
    }

    /// Returns the cluster as a tower service, for clients in this process.
    #[must_use]
    pub fn service(&self) -> ClusterService {
        ClusterService {
            server: Arc::clone(&self.server),
            connection: None,
        }
    }

    /// Returns a kube client of the cluster without a socket.
    ///
    /// Its default namespace is `default`. It is an administrator, needs no token, and works on a paused clock. Clones
    /// of one client share the cluster; after [`shutdown`](Self::shutdown) requests are answered 503.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Namespace;
    /// use kube::Api;
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let namespaces: Api<Namespace> = Api::all(cluster.client());
    /// let default = namespaces.get("default").await?;
    /// assert_eq!(default.metadata.name.as_deref(), Some("default"));
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "client")]
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Returns a kube client without a socket whose requests carry a token.
    ///
    /// The client acts as the token's user, with the user's permissions in a cluster with
    /// [`rbac`](ClusterBuilder::rbac). A token of no user is answered 401, except by a cluster that neither knows
    /// tokens nor requires them. The client works on a paused clock, as [`client`](Self::client) does.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::Api;
    /// use kube::api::ListParams;
    /// use lariat::cluster::{Cluster, User};
    ///
    /// let user = User::new("ann").group("system:authenticated");
    /// let cluster = Cluster::builder().rbac().token_of("sesame", user).start().await?;
    /// let secrets: Api<Secret> = Api::all(cluster.client_with_token("sesame"));
    /// let error = secrets.list(&ListParams::default()).await.unwrap_err();
    /// assert!(error.to_string().contains(r#"User "ann" cannot list resource "secrets""#));
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "client")]
    #[must_use]
    pub fn client_with_token(&self, token: &str) -> kube::Client {
        kube::Client::new(SignedService::new(self.service(), token), "default")
    }

    /// Returns the record of all requests.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.server.journal.clone()
    }

    /// Returns the handle that adds and removes fault rules.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Namespace;
    /// use kube::Api;
    /// use lariat::cluster::Cluster;
    /// use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let refusal = Refusal::new(StatusCode::FORBIDDEN);
    /// let rule = cluster.faults().add(Rule::new(Action::Refuse(refusal)).verb("list"));
    /// let namespaces: Api<Namespace> = Api::all(cluster.client());
    /// assert!(namespaces.list(&Default::default()).await.is_err());
    /// assert_eq!(cluster.faults().hits(rule), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn faults(&self) -> Faults {
        Faults {
            server: Arc::clone(&self.server),
        }
    }

    /// Returns a read-only view of contents and activity.
    #[must_use]
    pub fn inspector(&self) -> Inspector {
        Inspector {
            server: Arc::clone(&self.server),
        }
    }

    /// Returns the handle that pauses the controllers inside the cluster.
    #[must_use]
    pub fn control(&self) -> Control {
        Control {
            server: Arc::clone(&self.server),
        }
    }

    /// Returns a handle on the simulated workloads.
    #[cfg(feature = "workloads")]
    #[must_use]
    pub fn workloads(&self) -> SimulatedWorkloads {
        SimulatedWorkloads {
            server: Arc::clone(&self.server),
        }
    }

    /// Returns how many connections were accepted since the start.
    ///
    /// Over HTTP/2 many requests share one. Clients without a socket have none.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.server.connections.load(Ordering::Relaxed)
    }

    /// Starts recording commits, for tests that check what clients see.
    ///
    /// The record begins with all present objects. Faults, compactions and cut watches do not affect it. It grows until
    /// it is [taken](Commits::take). A later call starts a new record in place of this one.
    #[must_use]
    pub fn commits(&self) -> Commits {
        self.server.store.record_commits();
        Commits {
            server: Arc::clone(&self.server),
        }
    }

    /// Returns the stored objects of a resource, ordered by key.
    ///
    /// It makes no request. The resource is named by its plural, and its group behind a dot unless that is the core
    /// group: `configmaps`, `deployments.apps`. One that does not exist has no objects.
    ///
    /// The read bypasses the API: it is not in the journal, no fault applies to it, and it never waits. Tests compare
    /// the result with what clients see.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let cluster = lariat::cluster::Cluster::builder().start().await?;
    /// let namespaces = cluster.objects("namespaces");
    /// assert_eq!(namespaces[0].key().name(), "default");
    /// assert!(namespaces[0].revision() <= cluster.revision());
    /// assert_eq!(namespaces[0].value()["status"]["phase"], "Active");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn objects(&self, resource: &str) -> Vec<StoredObject> {
        self.server.store.objects(resource)
    }

    /// Returns one stored object of a resource, as [`objects`](Self::objects) does.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::ObjectKey;
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// assert!(cluster.object("namespaces", &ObjectKey::cluster("default")).is_some());
    /// assert!(cluster.object("namespaces", &ObjectKey::cluster("shop")).is_none());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn object(&self, resource: &str, key: &ObjectKey) -> Option<StoredObject> {
        self.server.store.object(resource, key)
    }

    /// Returns the resource version of the last change of any object.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.server.store.revision()
    }

    /// Breaks every open watch in the middle of a line, as a lost connection does.
    pub fn cut_watches(&self) {
        self.server.store.end_watches(None, Ending::Cut);
    }

    /// Ends every open watch cleanly, as a watch timeout does.
    pub fn end_watches(&self) {
        self.server.store.end_watches(None, Ending::Clean);
    }

    /// Drops the history, so that every earlier version has expired.
    ///
    /// Open watches continue. A new watch or an exact list from an earlier version is answered that it has expired
    /// (410).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// cluster.compact();
    /// let resources = cluster.inspector().resources();
    /// assert!(resources.iter().all(|each| each.oldest == cluster.revision()));
    /// # Ok(()) }
    /// ```
    pub fn compact(&self) {
        self.server.store.compact();
    }

    /// Takes a snapshot of all objects.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.server.store.snapshot()
    }

    /// Restores the objects of a snapshot by new changes, as between two tests.
    ///
    /// Objects that differ are deleted, created or modified in one atomic step, whatever their finalizers and grace
    /// periods. These are changes like any other: resource versions rise and open watches see them, so the caches of a
    /// running program end up with the objects of the snapshot. Uids and timestamps are those of the snapshot. An
    /// object that does not differ keeps its version; every other one gets a new version. When this returns, custom
    /// kinds are served as they were.
    ///
    /// The snapshot may be that of another cluster.
    ///
    /// # Errors
    ///
    /// The data file cannot be written. The objects are restored in memory.
    ///
    /// # Cancel safety
    ///
    /// The objects are restored as soon as the future is polled; only the wait is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::ObjectKey;
    /// use lariat::cluster::{Cluster, testing::config_map};
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let clean = cluster.snapshot();
    /// config_map("scratch", &[]).create(&cluster.client()).await?;
    /// cluster.restore(&clean).await?;
    /// let key = ObjectKey::namespaced("default", "scratch");
    /// assert!(cluster.object("configmaps", &key).is_none());
    /// # Ok(()) }
    /// ```
    pub async fn restore(&self, snapshot: &Snapshot) -> io::Result<()> {
        self.server.store.restore(snapshot);
        self.server.vary_names();
        self.server.reconciled().await.map_err(io::Error::other)
    }

    /// Restores a snapshot, resource version included.
    ///
    /// It simulates a cluster whose etcd is restored from a backup. This is an **illegal** fault: resource versions go
    /// back. Every open watch is cut, and versions before the snapshot have expired. A list from a newer version is
    /// answered 504 with the cause `ResourceVersionTooLarge`. A watch from a newer version sends nothing until the
    /// cluster reaches that version, and never sends the changes up to there.
    ///
    /// # Errors
    ///
    /// The data file cannot be written. The objects are restored in memory.
    ///
    /// # Cancel safety
    ///
    /// As [`restore`](Self::restore).
    pub async fn rewind_to(&self, snapshot: &Snapshot) -> io::Result<()> {
        self.server.store.rewind_to(snapshot);
        self.server.vary_names();
        self.server.reconciled().await.map_err(io::Error::other)
    }

    /// Stops serving, ends open watches and waits for every task.
    ///
    /// Clients without a socket are answered 503 from then on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo the stop; only the wait is lost.
    pub async fn shutdown(self) {
        self.server.stopped.cancel();
        // Otherwise `wait` would not end, as more tasks might come.
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing can be awaited here: the tasks see that the cluster has stopped, and end by themselves.
        self.server.stopped.cancel();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

/// The commits of a cluster in their order, recorded without requests.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// use lariat::cluster::{Cluster, Commit};
///
/// let cluster = Cluster::builder().start().await?;
/// let commits = cluster.commits();
/// let first = commits.take();
/// assert!(matches!(first[0], Commit::Reset { .. }), "what there was comes first");
/// assert!(commits.take().is_empty());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Commits {
    server: Arc<Server>,
}

impl Commits {
    /// Returns the commits since the last call, oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<Commit> {
        self.server.store.take_commits()
    }
}
