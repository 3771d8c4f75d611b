//! How a cluster is configured and started.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use lariat_core::ObjectKey;
use serde_json::json;
use tokio::net::TcpListener;

use crate::access::{self, Access, Mode, Tokens, User};
use crate::api::secure::Security;
use crate::cluster::Cluster;
use crate::names::Names;
use crate::server::Server;
use crate::store::{Draft, Write};

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
    tokens: TokenList,
    mode: Mode,
}

/// Tokens and their users, in the order they were given.
#[derive(Clone, Default)]
struct TokenList(Vec<(String, User)>);

impl fmt::Debug for TokenList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever has a token is its user: it must not get into any log.
        f.debug_list()
            .entries(self.0.iter().map(|(_, user)| user))
            .finish()
    }
}

impl ClusterBuilder {
    pub(crate) fn new() -> Self {
        Self {
            address: None,
            security: Security::none(),
            history: DEFAULT_HISTORY,
            seed: None,
            tokens: TokenList::default(),
            mode: Mode::Open,
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
    /// Whoever reaches the address may do everything, unless the cluster
    /// [requires authentication](Self::require_authentication).
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

    /// Serves HTTPS with a certificate made for the occasion.
    ///
    /// The certificate is good for `127.0.0.1`, `::1` and `localhost`, and comes from an authority that
    /// is made along with it; the [kubeconfig](Cluster::kubeconfig) names that as the one to trust.
    #[cfg(feature = "tls")]
    pub fn tls_generated(self) -> Self {
        Self {
            security: Security::generated(),
            ..self
        }
    }

    /// Takes a bearer token for that of an administrator, who may do everything.
    ///
    /// The [kubeconfig](Cluster::kubeconfig) has the first token; mind that kubectl sends it over HTTPS
    /// only. A request with a token the cluster
    /// does not know is answered 401; one without any is an administrator's too, unless the cluster
    /// [requires authentication](Self::require_authentication).
    pub fn token(self, token: impl Into<String>) -> Self {
        self.token_of(token, User::admin())
    }

    /// Takes a bearer token for that of a user.
    pub fn token_of(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.0.push((token.into(), user));
        self
    }

    /// Lets only those in who say who they are; anybody else may ask for the version and the health.
    ///
    /// Without a [token](Self::token) one is made up, for the [kubeconfig](Cluster::kubeconfig).
    /// Clients in this process need none: who has the cluster in hand is its administrator.
    pub fn require_authentication(self) -> Self {
        Self {
            mode: self.mode.max(Mode::Authenticated),
            ..self
        }
    }

    /// Allows what the stored roles and bindings allow, which takes authentication.
    ///
    /// Members of the group `system:masters` may do everything, as administrators are. The cluster
    /// roles `cluster-admin`, `admin`, `edit`, `view` and those for discovery exist from the start.
    pub fn rbac(self) -> Self {
        Self {
            mode: Mode::Rbac,
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
        let security = self.security.ready()?;
        let listener = match self.address {
            Some(address) => {
                let acceptor = security.acceptor()?;
                Some((TcpListener::bind(address).await?, acceptor))
            }
            None => None,
        };
        let mut tokens = self.tokens.0;
        if tokens.is_empty() && self.mode != Mode::Open {
            tokens.push((Names::new(self.seed).secret(), User::admin()));
        }
        let identity = tokens.first().map(|(token, _)| token.clone());
        let access = Access {
            mode: self.mode,
            tokens: Tokens::new(tokens.into_iter().collect()),
        };
        let server = Arc::new(Server::new(self.history, self.seed, access));
        create_namespaces(&server);
        if self.mode == Mode::Rbac {
            access::create_roles(&server);
        }
        let mut cluster = Cluster::spawn(server, security, listener)?;
        cluster.identity = identity;
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
