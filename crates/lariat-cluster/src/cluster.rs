//! The cluster: what a program starts, talks to and stops.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::api::listener;
use crate::api::service::ClusterService;
use crate::control;
use crate::journal::Journal;
use crate::server::Server;
use crate::store::{Draft, Ending, Write};
use lariat_core::ObjectKey;
use serde_json::json;

/// How many changes of each resource are remembered for watches, by default.
const DEFAULT_HISTORY: usize = 100_000;

/// The namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// A Kubernetes cluster in this process: an API server, its store, and the controllers it needs.
///
/// It lives in memory and ends when it is dropped; [`shutdown`](Self::shutdown) also waits for that.
/// Each cluster is on its own: a test can have one, or dozens.
///
/// Time is tokio's: under a paused clock bookmarks, timeouts and timestamps move with it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let cluster = lariat_cluster::Cluster::builder().listen().start().await?;
/// println!("kubectl --server {}", cluster.url().expect("it listens"));
/// cluster.shutdown().await;
/// # Ok(()) }
/// ```
pub struct Cluster {
    server: Arc<Server>,
    tasks: TaskTracker,
    address: Option<SocketAddr>,
}

/// Configures a [`Cluster`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is started"]
pub struct ClusterBuilder {
    address: Option<SocketAddr>,
    history: usize,
    seed: Option<u64>,
}

impl ClusterBuilder {
    /// Serves HTTP on a free loopback port. Without this there is no socket at all.
    pub fn listen(self) -> Self {
        self.listen_on((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Serves HTTP on an address.
    ///
    /// There is no authentication: whoever reaches the address may do everything.
    pub fn listen_on(self, address: SocketAddr) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }

    /// Sets how many changes of each resource are remembered (default 100,000, at least 1).
    ///
    /// A watch from a version before them is told that it has expired.
    pub fn history(self, changes: usize) -> Self {
        Self {
            history: changes.max(1),
            ..self
        }
    }

    /// Makes uids and generated names repeatable.
    pub fn seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }

    /// Starts the cluster; it serves when this returns.
    ///
    /// # Errors
    ///
    /// The address cannot be bound. A cluster that does not listen cannot fail.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn start(self) -> io::Result<Cluster> {
        let listener = match self.address {
            Some(address) => Some(TcpListener::bind(address).await?),
            None => None,
        };
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let server = Arc::new(Server::new(self.history, self.seed));
        create_namespaces(&server);
        let cluster = Cluster {
            server,
            tasks: TaskTracker::new(),
            address,
        };
        cluster.spawn(listener);
        Ok(cluster)
    }
}

fn create_namespaces(server: &Server) {
    for name in NAMESPACES {
        let object = json!({
            "kind": "Namespace", "apiVersion": "v1",
            "metadata": {
                "name": name, "uid": server.names.uid(), "creationTimestamp": server.clock.now(),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        let key = ObjectKey::cluster(name);
        let write = Write::new(
            server.kinds.namespaces,
            &key,
            None,
            object.as_object().map(Draft::new),
        );
        server.store.commit(write).expect("the store is new");
    }
}

impl Cluster {
    /// Begins to configure a cluster.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            address: None,
            history: DEFAULT_HISTORY,
            seed: None,
        }
    }

    fn spawn(&self, listener: Option<TcpListener>) {
        let server = Arc::clone(&self.server);
        self.tasks.spawn(async move {
            tokio::select! {
                () = server.store.dispatch() => {}
                () = server.stopped.cancelled() => {}
            }
        });
        self.tasks.spawn(control::run(Arc::clone(&self.server)));
        if let Some(listener) = listener {
            let tasks = self.tasks.clone();
            self.tasks
                .spawn(listener::serve(listener, self.service(), tasks));
        }
    }

    /// Returns the URL it listens on, if it does.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        self.address.map(|address| format!("http://{address}"))
    }

    /// Returns a kubeconfig for the URL, if it listens: kubectl and every client library read it.
    #[must_use]
    pub fn kubeconfig(&self) -> Option<String> {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "lariat",
            "clusters": [{"name": "lariat", "cluster": {"server": self.url()?}}],
            "contexts": [
                {"name": "lariat", "context": {"cluster": "lariat", "user": "lariat"}},
            ],
            "users": [{"name": "lariat", "user": {}}],
        });
        // Every JSON document is a YAML document.
        Some(format!("{config:#}\n"))
    }

    /// Returns the cluster as a tower service, for clients in this process.
    #[must_use]
    pub fn service(&self) -> ClusterService {
        ClusterService {
            server: Arc::clone(&self.server),
        }
    }

    /// Returns a kube client that talks to the cluster without a socket, in namespace `default`.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Returns the record of all requests.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.server.journal.clone()
    }

    /// Breaks every open watch off in the middle of a line, as a lost connection does.
    pub fn cut_watches(&self) {
        self.server.store.end_watches(None, Ending::Cut);
    }

    /// Ends every open watch cleanly, as their timeout does.
    pub fn end_watches(&self) {
        self.server.store.end_watches(None, Ending::Clean);
    }

    /// Forgets the history, so that every earlier version has expired.
    pub fn compact(&self) {
        self.server.store.compact();
    }

    /// Stops serving, ends open watches and waits for every task. Clients without a socket are answered
    /// 503 from then on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the stop back; only the wait is lost.
    pub async fn shutdown(self) {
        self.server.stopped.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
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
