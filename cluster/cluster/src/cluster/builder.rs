//! Configuration and start of a cluster.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use tokio::net::TcpListener;

use crate::access::{Access, Mode, Signer, Tokens, User};
use crate::api::secure::ServingTls;
use crate::bootstrap;
use crate::cluster::Cluster;
use crate::journal::Journal;
use crate::persist::{Data, Opened};
use crate::random::Random;
use crate::server::Server;
use crate::store::{Retention, Snapshot};
use crate::switches::Settings;
use crate::time::Time;
#[cfg(feature = "workloads")]
use crate::workloads::Workloads;

/// The default number of changes of each resource that are kept for watches.
const DEFAULT_CHANGES: usize = 100_000;

/// The default memory of the changes of all resources.
const DEFAULT_BYTES: usize = 256 << 20;

/// Configures a [`Cluster`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::{Cluster, Time, User};
///
/// let cluster = Cluster::builder()
///     .rbac()
///     .token_of("s3cret", User::new("jane").group("developers"))
///     .time(Time::real())
///     .history(1_000)
///     .start()
///     .await?;
/// assert_eq!(cluster.inspector().history(), 1_000);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is started"]
pub struct ClusterBuilder {
    address: Option<SocketAddr>,
    security: ServingTls,
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
            security: ServingTls::none(),
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
    /// HTTP/1.1 and HTTP/2 share the port. Without TLS, HTTP/2 clients need "prior knowledge"; with TLS the protocol is
    /// negotiated in the handshake.
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
            security: ServingTls::new(certificate_pem.into(), key_pem.into()),
            ..self
        }
    }

    /// Serves HTTPS with a generated certificate.
    ///
    /// The certificate is valid for `127.0.0.1`, `::1` and `localhost`. Its authority is generated too; the
    /// [kubeconfig](Cluster::kubeconfig) contains that authority. It has an effect on a cluster that
    /// [listens](Self::listen).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().listen().tls_generated().start().await?;
    /// assert!(cluster.url().is_some_and(|url| url.starts_with("https://127.0.0.1:")));
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls_generated(self) -> Self {
        Self {
            security: ServingTls::generated(),
            ..self
        }
    }

    /// Accepts a bearer token of an administrator, who may do everything.
    ///
    /// The [kubeconfig](Cluster::kubeconfig) has the first token; kubectl sends it over HTTPS only. A request with an
    /// unknown token is answered 401. A request without a token has the rights of an administrator, unless the cluster
    /// [requires authentication](Self::require_authentication).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().listen().token("s3cret").start().await?;
    /// let kubeconfig = cluster.kubeconfig().expect("it listens");
    /// assert!(kubeconfig.contains("s3cret"));
    /// # Ok(()) }
    /// ```
    pub fn token(self, token: impl Into<String>) -> Self {
        self.token_of(token, User::admin())
    }

    /// Accepts a bearer token of a user.
    ///
    /// Of several users with the same token the last counts. What the user may do depends on [`rbac`](Self::rbac);
    /// without it every authenticated user may do everything.
    pub fn token_of(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.0.push((token.into(), user));
        self
    }

    /// Requires authentication for all paths but version and health.
    ///
    /// Without a [token](Self::token) one is generated, for the [kubeconfig](Cluster::kubeconfig). Clients in this
    /// process need no token: they are administrators.
    pub fn require_authentication(self) -> Self {
        Self {
            mode: self.mode.max(Mode::Authenticated),
            ..self
        }
    }

    /// Authorizes requests by RBAC, and requires authentication.
    ///
    /// Roles and bindings in the cluster decide; those of a real cluster exist from the start. Members of the group
    /// `system:masters`, which administrators are, may do everything.
    pub fn rbac(self) -> Self {
        Self {
            mode: Mode::Rbac,
            ..self
        }
    }

    /// Sets how many changes of a resource are kept (default 100,000, at least 1).
    ///
    /// A watch from an older version fails with 410: the version has expired. The
    /// [size](Self::history_bytes) and the [age](Self::history_age) of changes limit the history too.
    pub fn history(mut self, changes: usize) -> Self {
        self.history.changes = changes.max(1);
        self
    }

    /// Bounds the memory of kept changes, over all resources (default 256 MiB).
    ///
    /// Beyond it changes are dropped, oldest first, from the resource whose changes take most memory. The last change
    /// of each resource always stays; with 0 only that one does. The memory of a change is that of the state before it,
    /// for a deletion also that of the last state. Present objects do not count.
    pub fn history_bytes(mut self, bytes: usize) -> Self {
        self.history.bytes = bytes;
        self
    }

    /// Sets how long a change is kept (default 5 min, as kube-apiserver keeps etcd's).
    ///
    /// A list at an older version fails with 410, also one that continues with a token. So does a watch from an older
    /// version, if the resource has changed since. Open watches miss nothing. Changes are dropped up to a quarter of
    /// the age later. With 0 changes are not dropped by age. A later [`time`](Self::time) overrides it.
    pub fn history_age(mut self, age: Duration) -> Self {
        self.control.time = self.control.time.history_age(age);
        self
    }

    /// Sets when an HTTP client that reads nothing is cut off (default 30 s).
    ///
    /// This applies while data is ready to be sent, such as an event of a watch, and the connection accepts no byte for
    /// this time. A client that reads slowly is not cut off. Over HTTP/1.1 the connection is reset. Over HTTP/2 the
    /// stream is reset, if only that stream is not read. The [journal](Cluster::journal) marks the
    /// [watch](crate::RecordedRequest::cut_off), and the [inspector](crate::Inspector::cut_off) counts. With 0 no
    /// client is cut off.
    ///
    /// The time is measured by tokio's clock. A clock that jumps, as a paused one does, cuts off no client that reads
    /// when it can: the time passes in eight steps, and in each the runtime must have been idle. Clients in this
    /// process have no connection and are never cut off. A later [`time`](Self::time) overrides it.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.control.time = self.control.time.write_timeout(timeout);
        self
    }

    /// Sets how long a request body may take to arrive over HTTP (default 60 s).
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
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().journal(2).start().await?;
    /// for _ in 0..3 {
    ///     cluster.client().apiserver_version().await?;
    /// }
    /// assert_eq!(cluster.journal().requests().len(), 2);
    /// assert_eq!(cluster.journal().total(), 3);
    /// # Ok(()) }
    /// ```
    pub fn journal(self, requests: usize) -> Self {
        Self {
            journal: requests,
            ..self
        }
    }

    /// Seeds uids, generated names, secrets and probabilities of [faults](crate::faults).
    ///
    /// Two clusters that start with the same seed at the same time and get the same requests in the same order answer
    /// the same bytes, if the client is in process, the runtime is a current-thread one with paused time, and there is
    /// no data file. tokio chooses the order in which watches of the same change wake; its `rng_seed` makes it
    /// repeatable. As on a real server, the order in which a CEL rule iterates over the keys of a map is random.
    /// Without a seed everything is random.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let one = Cluster::builder().seed(7).start().await?;
    /// let two = Cluster::builder().seed(7).start().await?;
    /// assert_eq!(one.objects("namespaces")[0].uid(), two.objects("namespaces")[0].uid());
    /// # Ok(()) }
    /// ```
    pub fn seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }

    /// Starts with the objects of a snapshot, at its resource version.
    ///
    /// Uids and timestamps are those of the snapshot, and custom kinds are served from the start. With a data file the
    /// snapshot is used only if the file is new; otherwise the cluster continues with the contents of the file.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::ObjectKey;
    /// use lariat::cluster::{Cluster, testing::config_map};
    ///
    /// let first = Cluster::builder().start().await?;
    /// config_map("settings", &[("color", "red")]).create(&first.client()).await?;
    ///
    /// let second = Cluster::builder().from_snapshot(&first.snapshot()).start().await?;
    /// let key = ObjectKey::namespaced("default", "settings");
    /// assert!(second.object("configmaps", &key).is_some());
    /// # Ok(()) }
    /// ```
    pub fn from_snapshot(self, snapshot: &Snapshot) -> Self {
        Self {
            snapshot: Some(snapshot.clone()),
            ..self
        }
    }

    /// Stores the cluster in an SQLite file, so that it survives its process.
    ///
    /// The next cluster with this file continues where this one ended. The file is made if it is missing, readable by
    /// its owner alone; its directory must exist. A second file with the suffix `-wal` belongs to it. A write is
    /// answered and sent to watchers once it is on disk, so nothing that a client has seen is lost if the process or
    /// the machine crashes. Concurrent writes share one flush. Reads are served from memory, and answered once
    /// everything they show is on disk.
    ///
    /// Objects, uids, timestamps, versions and custom kinds survive, and of the history as many changes
    /// as [`history`](Self::history) and [`history_bytes`](Self::history_bytes) say, counted over all resources:
    /// clients resume their watches without a new list. New versions continue above the last one, with a small gap.
    ///
    /// With the feature `signatures` the key that signs tokens of service accounts is in the file too, unless it comes
    /// from a [seed](Self::seed), so that tokens outlive the process. The file is as secret as they are.
    ///
    /// Only one cluster at a time uses a file. Wait for [`shutdown`](Cluster::shutdown) before the next.
    /// If the disk fails while the cluster runs, requests are answered 500 with the reason until it
    /// takes writes again; a write that was refused in this way may have been carried out.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::ObjectKey;
    /// use lariat::cluster::{Cluster, testing::config_map};
    ///
    /// # let path = std::env::temp_dir().join(format!("lariat-example-{}.db", std::process::id()));
    /// let cluster = Cluster::builder().data(&path).start().await?;
    /// config_map("settings", &[("color", "red")]).create(&cluster.client()).await?;
    /// cluster.shutdown().await;
    ///
    /// let cluster = Cluster::builder().data(&path).start().await?;
    /// let key = ObjectKey::namespaced("default", "settings");
    /// assert!(cluster.object("configmaps", &key).is_some());
    /// # cluster.shutdown().await;
    /// # std::fs::remove_file(&path)?;
    /// # Ok(()) }
    /// ```
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
    /// As with the admission plugin `ServiceAccount`, a new Pod gets the account `default` unless it names one, a
    /// volume with its token, and its pull secrets; one that names an account that is not there is refused. Namespaces
    /// get their [default objects](Self::namespace_defaults).
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

    /// Sets whether unused deleted volumes and claims are removed (default true).
    ///
    /// Otherwise they keep the finalizer of their protection, as on a server without a controller manager.
    pub fn volume_protection(mut self, on: bool) -> Self {
        self.control.volume_protection = on;
        self
    }

    /// Sets whether ClusterRoles are aggregated (default true).
    ///
    /// Otherwise they keep the rules they were written with, as on a server without a controller manager.
    pub fn role_aggregation(mut self, on: bool) -> Self {
        self.control.role_aggregation = on;
        self
    }

    /// Sets the address at which webhooks of a Service are called.
    ///
    /// The cluster IPs of an embedded cluster are not routed. By default a webhook of a Service is called at an address
    /// of its EndpointSlices, at the port that has the name of the Service's port.
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
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::testing::{deployment, wait_for_condition};
    /// use lariat::cluster::{Cluster, Workloads};
    ///
    /// let cluster = Cluster::builder().simulate_workloads(Workloads::default().nodes(3)).start().await?;
    /// let web = deployment("web", 2);
    /// web.create(&cluster.client()).await?;
    /// wait_for_condition(&web.api(&cluster.client()), "web", "Available").await?;
    /// assert_eq!(cluster.objects("pods").len(), 2);
    /// # Ok(()) }
    /// ```
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
    /// The address cannot be bound, the certificate or key is invalid, or the data file cannot be used: it is
    /// unreadable, used by another cluster, damaged, or not a data file; the error names its path. A cluster in memory
    /// that does not listen always starts.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// assert!(cluster.url().is_none(), "it has no socket");
    /// cluster.shutdown().await;
    /// # Ok(()) }
    /// ```
    pub async fn start(self) -> io::Result<Cluster> {
        let security = self
            .security
            .ready(self.address.map(|address| address.ip()))?;
        // An address that is taken is found before the data file is touched.
        let listener = match self.address {
            Some(address) => {
                let acceptor = security.acceptor()?;
                Some((bind(address).await?, acceptor))
            }
            None => None,
        };
        // From the seed as it was given, so that token and key are the same after a restart.
        let secrets = Random::new(self.seed);
        let token = secrets.secret()?;
        // With a seed the key comes from that, and the file has none.
        let key = match self.seed {
            Some(_) => None,
            None => Some(Signer::generate()?),
        };
        let opened = self.data.open(self.history, self.snapshot, key).await?;
        let Opened {
            store,
            writer,
            signer,
        } = opened;
        let signer = match signer {
            Some(signer) => signer,
            None => Signer::repeatable(&secrets.secret()?)?,
        };
        let revision = store.revision();
        let begins_empty = store.count_by_resource().is_empty();
        // The names a seed leads to must not be those it has led to before.
        let seed = self
            .seed
            .map(|seed| if begins_empty { seed } else { seed ^ revision });
        let mut tokens = self.tokens.0;
        if tokens.is_empty() && self.mode != Mode::Open {
            tokens.push((token, User::admin()));
        }
        let address = listener.as_ref().map(|(socket, _)| socket.local_addr());
        let address = address.transpose()?;
        let identity = tokens.first().map(|(token, _)| token.clone());
        let access = Access {
            mode: self.mode,
            is_local: self
                .address
                .is_some_and(|address| address.ip().is_loopback()),
            tokens: Tokens::new(tokens.into_iter().collect(), signer),
            origin: bootstrap::origin(security.scheme(), address),
        };
        let server = Arc::new(Server {
            journal: Journal::new(self.journal),
            ..Server::new(store, seed, self.admin, self.control, access)
        });
        // Before anything runs: the first request finds these objects, and no watch sees them come.
        bootstrap::create_objects(&server, address);
        let mut cluster = Cluster::spawn(Arc::clone(&server), security, listener, writer)?;
        cluster.identity = identity;
        // Custom kinds of the data file or the snapshot are served when this returns.
        if !begins_empty {
            server.reconciled().await.map_err(io::Error::other)?;
        }
        Ok(cluster)
    }
}

/// Listens on an address; the error names it.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })
}
