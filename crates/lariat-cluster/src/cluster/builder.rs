//! How a cluster is configured and started.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use tokio::net::TcpListener;

use crate::access::{Access, Mode, Tokens, User};
use crate::api::secure::Security;
use crate::bootstrap;
use crate::cluster::Cluster;
use crate::journal::Journal;
use crate::persist::Data;
use crate::random::Random;
use crate::server::Server;
use crate::store::{Retention, Snapshot};
use crate::switches::Settings;
use crate::time::Time;
#[cfg(feature = "workloads")]
use crate::workloads::Workloads;

/// How many changes of each resource are remembered for watches, by default.
const DEFAULT_CHANGES: usize = 100_000;

/// How much memory the changes of all resources may take, by default.
const DEFAULT_BYTES: usize = 256 << 20;

/// Configures a [`Cluster`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is started"]
pub struct ClusterBuilder {
    address: Option<SocketAddr>,
    security: Security,
    history: Retention,
    journal: usize,
    seed: Option<u64>,
    snapshot: Option<Snapshot>,
    data: Data,
    admin: bool,
    control: Settings,
    tokens: TokenList,
    mode: Mode,
}

/// Tokens and their users, in the order they were given.
#[derive(Clone, Default)]
struct TokenList(Vec<(String, User)>);

impl fmt::Debug for TokenList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A token is a credential: it must not get into any log.
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
            history: Retention {
                changes: DEFAULT_CHANGES,
                bytes: DEFAULT_BYTES,
            },
            journal: Journal::CAPACITY,
            seed: None,
            snapshot: None,
            data: Data::none(),
            admin: false,
            control: Settings::default(),
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
    /// Every client that reaches the address may do everything, unless the cluster
    /// [requires authentication](Self::require_authentication). Web pages in a browser on the same machine are kept
    /// out: without authentication, requests with an `Origin` header are answered 403, and on a loopback address so are
    /// those whose `Host` is neither an IP address nor `localhost`.
    pub fn listen_on(self, address: SocketAddr) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }

    /// Serves HTTPS with a certificate chain and its private key, both in PEM.
    ///
    /// It has an effect on a cluster that [listens](Self::listen). The [kubeconfig](Cluster::kubeconfig) names the
    /// chain as the authority to trust, so a self-signed certificate for `127.0.0.1` will do, if it is no authority
    /// itself (`basicConstraints=CA:FALSE`): clients that use rustls refuse a server with the certificate of an
    /// authority, and `openssl req -x509` makes one without `-addext basicConstraints=CA:FALSE`.
    /// [`tls_generated`](Self::tls_generated) needs no files. TLS is 1.3.
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

    /// Requires authentication; others may only read the version and the health.
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
    /// Members of the group `system:masters` may do everything, as administrators are. The roles and bindings of a
    /// real cluster exist from the start.
    pub fn rbac(self) -> Self {
        Self {
            mode: Mode::Rbac,
            ..self
        }
    }

    /// Sets how many changes of a resource are kept (default 100,000, at least 1).
    ///
    /// A watch from a version before them expires, as does one from before what is kept by
    /// [size](Self::history_bytes) and [age](Self::history_age).
    pub fn history(mut self, changes: usize) -> Self {
        self.history.changes = changes.max(1);
        self
    }

    /// Sets the memory of the changes of all resources (default 256 MiB).
    ///
    /// What is too much goes from the resource whose changes take most, oldest first; the last change of each resource
    /// stays, whatever its size, and with 0 only that. A change takes what its object was before, and a deletion also
    /// the last state; present objects do not count.
    pub fn history_bytes(mut self, bytes: usize) -> Self {
        self.history.bytes = bytes;
        self
    }

    /// Sets how long a change is kept (default 5 min, as kube-apiserver keeps etcd's).
    ///
    /// A list at an older version expires, continued ones included; so does a watch from one, if the resource has
    /// changed since. Watches that are open lose nothing. Changes are forgotten up to a quarter later than that. With 0
    /// age forgets nothing. A later [`time`](Self::time) overrides it.
    pub fn history_age(mut self, age: Duration) -> Self {
        self.control.time = self.control.time.history_age(age);
        self
    }

    /// Sets when an HTTP client that reads nothing is cut off (default 30 s).
    ///
    /// That is a client for which something is ready to be sent, such as an event of a watch, and whose connection has
    /// taken no byte for so long; one that reads slowly is not cut off. Over HTTP/1.1 the connection is reset. Over
    /// HTTP/2 it is the stream, if only that is not read. The [journal](Cluster::journal) marks the
    /// [watch](crate::Request::cut_off), and the [inspector](crate::Inspector::cut_off) counts. With 0 no client is cut off.
    ///
    /// Time is tokio's, but a clock that jumps, as a paused one may, cuts off none that reads when it can: the time is
    /// over only if it passes in eight steps, and the runtime was idle in each. Clients in this process have
    /// no connection and are never cut off. A later [`time`](Self::time) overrides it.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.control.time = self.control.time.write_timeout(timeout);
        self
    }

    /// Sets how long the body of a request over HTTP may take to arrive (default 60 s).
    ///
    /// As with `--request-timeout` of kube-apiserver, which has the same default, a request whose body is not complete
    /// by then is answered 504. With 0 bodies may take for ever. The remarks on time of
    /// [`write_timeout`](Self::write_timeout) apply. A later [`time`](Self::time) overrides it.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.control.time = self.control.time.body_timeout(timeout);
        self
    }

    /// Sets how many requests the journal keeps (default [`Journal::CAPACITY`]).
    ///
    /// See [`Cluster::journal`]. The oldest are forgotten first. 0 keeps none, so that everything which counts requests
    /// finds none.
    pub fn journal(self, requests: usize) -> Self {
        Self {
            journal: requests,
            ..self
        }
    }

    /// Makes uids, generated names and chance in [faults](crate::faults) repeatable.
    ///
    /// Two clusters that were started with the same seed at the same time, and get the same requests in
    /// the same order, answer the same bytes. That holds in process, on a current-thread runtime with
    /// paused time, and without a data file. In what order watches wake that wait for the same change is
    /// up to tokio, whose `rng_seed` repeats it. One thing is left to chance, as on a real server: the
    /// order in which a CEL rule of a custom kind goes through the keys of a map.
    pub fn seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }

    /// Begins with the objects of a snapshot, at its resource version.
    ///
    /// Uids and timestamps are those of the snapshot, and custom kinds are served from the start. A
    /// cluster with a data file begins so only if the file is new: later starts go on with
    /// the file.
    pub fn from_snapshot(self, snapshot: &Snapshot) -> Self {
        Self {
            snapshot: Some(snapshot.clone()),
            ..self
        }
    }

    /// Keeps everything in an SQLite file.
    ///
    /// The next cluster with this file continues where this one ended. The file is made if it is missing, readable by
    /// its owner alone; its directory has to be there. Beside it lies `-wal`, which belongs to it. A write is answered,
    /// and shown to watchers, when it is on disk: nothing that a client has seen is lost, whenever the process or
    /// the machine ends. Writes that come together share one flush of the disk. Reads are answered from memory, but not
    /// before that which they show is on disk.
    ///
    /// Objects, uids, timestamps, versions and custom kinds survive, and of the history as many changes
    /// as [`history`](Self::history) and [`history_bytes`](Self::history_bytes) say, counted over all resources:
    /// clients resume their watches without a new list. Versions go on above the last, with a small gap.
    ///
    /// Only one cluster at a time uses a file. Wait for [`shutdown`](Cluster::shutdown) before the next.
    /// If the disk fails while the cluster runs, requests are answered 500 with the reason until it
    /// takes writes again; those that were refused so may have been carried out.
    #[cfg(feature = "sqlite")]
    pub fn data(self, path: impl Into<std::path::PathBuf>) -> Self {
        Self {
            data: Data::at(path.into()),
            ..self
        }
    }

    /// Serves the admin endpoint under `/lariat/` (default: no).
    ///
    /// With it every client that reaches the cluster over HTTP can add faults, read the journal, cut watches and
    /// restore snapshots, from any language.
    ///
    #[doc = include_str!("../api/admin/admin.md")]
    pub fn admin(self, serves: bool) -> Self {
        Self {
            admin: serves,
            ..self
        }
    }

    /// Sets the delays of the control plane (default [`Time::fast`]).
    pub fn time(mut self, time: Time) -> Self {
        self.control.time = time;
        self
    }

    /// Sets how long an Event is kept after its last change (default 1 h).
    ///
    /// With 0 it is kept for ever. A later [`time`](Self::time) overrides it.
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

    /// Sets whether deleted namespaces are emptied and removed (default true).
    ///
    /// Otherwise they stay `Terminating`.
    pub fn namespace_deletion(mut self, on: bool) -> Self {
        self.control.namespace_deletion = on;
        self
    }

    /// Sets whether namespaces get their default objects (default false).
    ///
    /// These are the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`, as in a cluster with all its
    /// controllers.
    pub fn namespace_defaults(mut self, on: bool) -> Self {
        self.control.namespace_defaults = on;
        self
    }

    /// Sets whether Pods run as service accounts (default false).
    ///
    /// As with the admission plugin `ServiceAccount`, a new Pod gets the account `default` unless it names one, a volume
    /// with its token, and its pull secrets; one that names an account that is not there is refused. Namespaces get
    /// their [default objects](Self::namespace_defaults).
    pub fn service_accounts(mut self, on: bool) -> Self {
        self.control.service_accounts = on;
        self
    }

    /// Sets whether ResourceQuotas are enforced and counted (default true).
    ///
    /// Otherwise they have no effect, as on a server without a controller manager.
    pub fn quotas(mut self, on: bool) -> Self {
        self.control.quotas = on;
        self
    }

    /// Sets where the server of a Service is that webhooks name.
    ///
    /// Nothing routes the cluster addresses of an embedded cluster. Without this the webhook of a Service is called at
    /// an address of its EndpointSlices, at the port its Service's port is called there.
    #[cfg(feature = "webhooks")]
    pub fn webhook_service(
        mut self,
        namespace: impl Into<String>,
        name: impl Into<String>,
        address: SocketAddr,
    ) -> Self {
        let service = (namespace.into(), name.into());
        self.control.services.insert(service, address);
        self
    }

    /// Simulates nodes, scheduler, kubelets and workload controllers (default: none).
    #[cfg(feature = "workloads")]
    pub fn simulate_workloads(mut self, workloads: Workloads) -> Self {
        self.control.workloads = Some(workloads);
        self
    }

    #[cfg(feature = "client")]
    pub(crate) fn chosen_seed(&self) -> Option<u64> {
        self.seed
    }

    /// Starts the cluster; it serves when this returns.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, certificate and key cannot be used, or the data file cannot: it is not
    /// readable, in use by another cluster, of something else, or damaged; the error names its path. A
    /// cluster that does not listen and lives in memory cannot fail.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn start(self) -> io::Result<Cluster> {
        let security = self
            .security
            .ready(self.address.map(|address| address.ip()))?;
        let listener = match self.address {
            Some(address) => {
                let acceptor = security.acceptor()?;
                Some((TcpListener::bind(address).await?, acceptor))
            }
            None => None,
        };
        let (store, keeper) = self.data.open(self.history, self.snapshot).await?;
        let revision = store.revision();
        let begins_empty = store.census().is_empty();
        // The names a seed leads to must not be those it has led to before.
        let seed = self
            .seed
            .map(|seed| if begins_empty { seed } else { seed ^ revision });
        let mut tokens = self.tokens.0;
        if tokens.is_empty() && self.mode != Mode::Open {
            tokens.push((Random::new(self.seed).secret()?, User::admin()));
        }
        let identity = tokens.first().map(|(token, _)| token.clone());
        let access = Access {
            mode: self.mode,
            is_local: self
                .address
                .is_some_and(|address| address.ip().is_loopback()),
            tokens: Tokens::new(tokens.into_iter().collect()),
        };
        let server = Arc::new(Server {
            journal: Journal::new(self.journal),
            ..Server::new(store, seed, self.admin, self.control, access)
        });
        let address = listener.as_ref().map(|(socket, _)| socket.local_addr());
        bootstrap::create_objects(&server, address.transpose()?);
        let mut cluster = Cluster::spawn(Arc::clone(&server), security, listener, keeper)?;
        cluster.identity = identity;
        if !begins_empty {
            server.reconciled().await.map_err(io::Error::other)?;
        }
        Ok(cluster)
    }
}
