//! How a cluster is configured and started.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use serde_json::json;
use tokio::net::TcpListener;

use crate::api::secure::Security;
use crate::cluster::Cluster;
use crate::control::Settings;
use crate::server::Server;
use crate::store::{Draft, Write};
use crate::time::Time;
use crate::workloads::Workloads;

/// How many changes of each resource are remembered for watches, by default.
const DEFAULT_HISTORY: usize = 100_000;

/// The namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Configures a [`Cluster`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is started"]
pub struct ClusterBuilder {
    address: Option<SocketAddr>,
    security: Security,
    history: usize,
    seed: Option<u64>,
    control: Settings,
}

impl ClusterBuilder {
    pub(crate) fn new() -> Self {
        Self {
            address: None,
            security: Security::none(),
            history: DEFAULT_HISTORY,
            seed: None,
            control: Settings::default(),
        }
    }

    /// Serves HTTP on a free loopback port. Without this there is no socket at all.
    ///
    /// HTTP/1.1 and HTTP/2 share the port. Without TLS a client that wants HTTP/2 just begins with it
    /// ("prior knowledge"); with TLS the two sides agree in the handshake.
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

    /// Serves HTTPS with a certificate chain and its private key, both in PEM.
    ///
    /// It has an effect on a cluster that [listens](Self::listen). The
    /// [kubeconfig](Cluster::kubeconfig) names the chain as the authority to trust: a self-signed
    /// certificate for `127.0.0.1` is all it takes. TLS is 1.3.
    #[cfg(feature = "tls")]
    pub fn tls(self, certificate_pem: impl Into<String>, key_pem: impl Into<String>) -> Self {
        Self {
            security: Security::new(certificate_pem.into(), key_pem.into()),
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

    /// Makes uids, generated names and the chance of [faults](crate::faults) repeatable.
    pub fn seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }

    /// Sets the delays of the control plane (default [`Time::fast`]).
    pub fn time(mut self, time: Time) -> Self {
        self.control.time = time;
        self
    }

    /// Sets how long an Event is kept after its last change (default 1 h; 0 keeps it for ever).
    ///
    /// A later [`time`](Self::time) overrides it.
    pub fn event_ttl(mut self, ttl: Duration) -> Self {
        self.control.time = self.control.time.event_ttl(ttl);
        self
    }

    /// Sets whether dependents of deleted owners are collected (default true).
    ///
    /// Without it the server behaves as one without a controller manager: deletions in the foreground
    /// and orphaning deletions wait for ever. [`Control`](crate::Control) switches it at any time.
    pub fn garbage_collection(mut self, on: bool) -> Self {
        self.control.garbage_collection = on;
        self
    }

    /// Sets whether deleted namespaces are emptied and let go (default true); otherwise they stay
    /// `Terminating`.
    pub fn namespace_deletion(mut self, on: bool) -> Self {
        self.control.namespace_deletion = on;
        self
    }

    /// Sets whether every namespace has the ServiceAccount `default` and the ConfigMap
    /// `kube-root-ca.crt`, as in a cluster with all its controllers (default false).
    pub fn namespace_defaults(mut self, on: bool) -> Self {
        self.control.namespace_defaults = on;
        self
    }

    /// Simulates nodes, a scheduler, kubelets and the controllers of workloads (default: none of it).
    pub fn simulate_workloads(mut self, workloads: Workloads) -> Self {
        self.control.workloads = Some(workloads);
        self
    }

    /// Starts the cluster; it serves when this returns.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or certificate and key cannot be used. A cluster that does not
    /// listen cannot fail.
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
            Some(address) => {
                let acceptor = self.security.acceptor()?;
                Some((TcpListener::bind(address).await?, acceptor))
            }
            None => None,
        };
        let server = Arc::new(Server::new(self.history, self.seed, self.control));
        create_namespaces(&server);
        Cluster::spawn(server, self.security, listener)
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
