//! The builder of a console.

use std::fmt;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::metrics::prometheus_client::registry::Registry;
use lariat_http::TokenReviews;
use tokio::runtime::Handle;

use super::error::ServeError;
use super::handle::ConsoleServer;
use super::observed::Observed;
use super::settings::{LogFilter, Settings};
use super::state::ServerState;
use crate::access::Access;
use crate::health::HealthCheck;

/// Configures a server for metrics, probes and the console.
///
/// ```no_run
/// use lariat::console::{Console, Serve};
/// use lariat::SharedControllerFactory;
///
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedControllerFactory::builder(client).build();
/// factory.serve(Console::on("127.0.0.1:9090"))?;
/// factory.run(5, std::future::pending::<()>()).await?;
/// # Ok(()) }
/// ```
///
/// # Access
///
/// On a loopback address, everyone on the machine may read. Without authentication, on any address, requests are
/// refused whose `Host` may be of another site (see [`host`](Self::host)), so that pages of other sites cannot read
/// through a browser. On any other address, only
/// probes are served, unless [`token`](Self::token), [`token_reviews`](Self::token_reviews) or
/// [`open_to_everyone`](Self::open_to_everyone) allows access. There is no TLS; use a proxy for it.
///
/// [`serve`](super::Serve::serve) describes when the server starts and ends.
#[derive(Clone)]
#[must_use = "a console does nothing until it is served"]
pub struct Console {
    address: String,
    settings: Settings,
}

#[cfg(feature = "logging")]
impl LogFilter for crate::logging::LogFilter {
    fn filter(&self) -> String {
        self.current()
    }

    fn set_filter(&self, filter: &str) -> Result<(), String> {
        self.set(filter).map_err(|error| error.to_string())
    }
}

impl Console {
    /// Creates a console for an address, such as `127.0.0.1:9090` or `[::]:9090`.
    ///
    /// With port 0, the system chooses a free port; [`ConsoleServer::address`] returns it.
    ///
    /// ```no_run
    /// use lariat::console::{Console, Serve, ServeError};
    /// use lariat::SharedControllerFactory;
    ///
    /// # fn example(factory: &SharedControllerFactory) -> Result<(), ServeError> {
    /// let server = factory.serve(Console::on("127.0.0.1:0"))?;
    /// println!("http://{}", server.address());
    /// # Ok(()) }
    /// ```
    pub fn on(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            settings: Settings::default(),
        }
    }

    /// Adds a factory or an operator under a context id.
    ///
    /// The id is the label `ctx` of its metrics.
    ///
    /// Use it in a program with several factories. A factory replaces one that was added under the same id.
    ///
    /// ```no_run
    /// use lariat::console::{Console, ServeError};
    /// use lariat::SharedControllerFactory;
    ///
    /// # fn example(local: &SharedControllerFactory, remote: &SharedControllerFactory) -> Result<(), ServeError> {
    /// Console::on("127.0.0.1:9090").with("local", local).with("remote", remote).start()?;
    /// # Ok(()) }
    /// ```
    pub fn with(mut self, context: &str, observed: &impl Observed) -> Self {
        let settings = &mut self.settings;
        // The members are shared by reference; a clone of this console must not get the new one too.
        settings.members = settings.members.separate();
        observed.join(context, &settings.members, &mut settings.name);
        self
    }

    /// Sets the name of the program (default: of the operator or executable).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Sets the version of the program, such as `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.settings.version = Some(version.into());
        self
    }

    /// Allows access with a bearer token.
    ///
    /// The token is compared in constant time. There is no TLS, so anyone who can read the traffic can read the token.
    /// With an empty token, every request is refused.
    ///
    /// ```no_run
    /// use lariat::console::Console;
    ///
    /// # fn example() -> Result<(), std::io::Error> {
    /// let token = std::fs::read_to_string("/var/run/secrets/console/token")?;
    /// let console = Console::on("0.0.0.0:9090").token(token.trim());
    /// # let _ = console;
    /// # Ok(()) }
    /// ```
    pub fn token(self, token: impl Into<String>) -> Self {
        self.access(Access::Token(token.into().into()))
    }

    /// Allows access to users of the cluster, as far as their RBAC rules allow it.
    ///
    /// A `TokenReview` finds the user of a request's bearer token. A `SubjectAccessReview` for `nonResourceURLs`
    /// decides whether the user may `get` `/metrics`, `get` `/console`, or `post` `/console/actions`. The program needs
    /// the verb `create` for `tokenreviews.authentication.k8s.io` and `subjectaccessreviews.authorization.k8s.io`.
    ///
    /// Positive reviews are cached for a minute, negative ones for ten seconds. While the API server does not respond,
    /// the status is 503.
    ///
    /// ```no_run
    /// use lariat::console::{Console, TokenReviews};
    ///
    /// # fn example(client: kube::Client) {
    /// let console = Console::on("0.0.0.0:9090").token_reviews(TokenReviews::new(client));
    /// # let _ = console;
    /// # }
    /// ```
    pub fn token_reviews(self, reviews: TokenReviews) -> Self {
        self.access(Access::reviews(reviews))
    }

    /// Allows access to everyone who can reach the address.
    ///
    /// They can read names of objects, changed fields and error texts of all controllers.
    pub fn open_to_everyone(self) -> Self {
        self.access(Access::Everyone)
    }

    /// Allows a `Host` for requests without authentication.
    ///
    /// It is a name such as `console.shop.example`, without a port.
    ///
    /// While no authentication is needed, requests with an unknown `Host` are refused, as a page of another site may
    /// have sent them. IP addresses, `localhost`, names without a dot and names of Services are always known; add the
    /// name of an Ingress.
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.settings.hosts = self.settings.hosts.with(name);
        self
    }

    fn access(mut self, access: Access) -> Self {
        self.settings.access = access;
        self
    }

    /// Serves `/metrics` without authentication (default false).
    pub fn open_metrics(mut self, open: bool) -> Self {
        self.settings.open_metrics = open;
        self
    }

    /// Allows actions in the console (default false).
    ///
    /// A user can then enqueue keys, pause and resume handlers, relist kinds, reset guards, and change the log filter.
    /// Each action is logged with the name of the user. Requests from pages of other origins are refused.
    pub fn actions(mut self, actions: bool) -> Self {
        self.settings.actions = actions;
        self
    }

    /// Adds a health check of the program.
    ///
    /// ```
    /// use lariat::console::{Console, HealthCheck};
    ///
    /// let disk = HealthCheck::new("disk", || std::fs::exists("/tmp").map(drop));
    /// let console = Console::on("127.0.0.1:9090").check(disk);
    /// # let _ = console;
    /// ```
    pub fn check(mut self, check: HealthCheck) -> Self {
        self.settings.checks.push(check);
        self
    }

    /// Sets how long a handler's call may take (default 10 min).
    ///
    /// Longer calls fail the check `handlers`, which is for people and does not fail readiness. With zero, every running
    /// call fails it.
    pub fn stuck_after(mut self, limit: Duration) -> Self {
        self.settings.limits.stuck = limit;
        self
    }

    /// Sets how long a cache may lack a watch (default 1 min).
    ///
    /// A longer time fails the check `watches`, which is for people and does not fail readiness. A few seconds are normal
    /// while a watch is reopened. With zero, these fail it too.
    pub fn unwatched_after(mut self, limit: Duration) -> Self {
        self.settings.limits.unwatched = limit;
        self
    }

    /// Adds metrics of the program to `/metrics`.
    ///
    /// The function is called once, when the server starts.
    ///
    /// ```
    /// use lariat::console::Console;
    /// use lariat::controller::metrics::prometheus_client::metrics::counter::Counter;
    ///
    /// let orders = Counter::<u64>::default();
    /// let registered = orders.clone();
    /// let console = Console::on("127.0.0.1:9090")
    ///     .metrics(move |registry| registry.register("orders", "Orders taken", registered.clone()));
    /// orders.inc();
    /// # let _ = console;
    /// ```
    pub fn metrics(mut self, register: impl Fn(&mut Registry) + Send + Sync + 'static) -> Self {
        self.settings.metrics.push(Arc::new(register));
        self
    }

    /// Sets how many bytes of changed objects each factory keeps (default 4 MiB).
    ///
    /// For a change that is kept, the page of a key shows which fields differ, without their values. If more than this
    /// changes within ten seconds, only a part of the changes is kept. With zero, none is kept.
    pub fn remember_changes(mut self, bytes: usize) -> Self {
        self.settings.changes = bytes;
        self
    }

    /// Shows the program's log filter, and lets an action change it.
    ///
    /// ```no_run
    /// use lariat::console::{Console, LogFilter};
    ///
    /// # fn example(filter: impl LogFilter + 'static) {
    /// let console = Console::on("127.0.0.1:9090").actions(true).log_filter(filter);
    /// # let _ = console;
    /// # }
    /// ```
    pub fn log_filter(mut self, filter: impl LogFilter + 'static) -> Self {
        self.settings.log_filter = Some(Arc::new(filter));
        self
    }

    /// Listens on the address, and serves the factories that were added by [`with`].
    ///
    /// The server ends with its last factory, as that of [`Serve::serve`](super::Serve::serve).
    ///
    /// [`with`]: Self::with
    ///
    /// # Errors
    ///
    /// It is not possible to listen on the address, or there is no tokio runtime.
    pub fn start(self) -> Result<ConsoleServer, ServeError> {
        // The server has a thread of its own, which ends with the program's runtime.
        Handle::try_current().map_err(|_| ServeError::NoRuntime)?;
        let listener = self.listen().map_err(|source| ServeError::Listen {
            address: self.address.clone(),
            source,
        })?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen {
            address: self.address.clone(),
            source,
        })?;
        let is_loopback = address.ip().is_loopback();
        // A frequent mistake in containers, where the address has to be reachable from outside.
        if !is_loopback && matches!(self.settings.access, Access::OnThisMachine) {
            tracing::warn!(
                %address,
                "console serves probes only; allow access with token, token_reviews or open_to_everyone"
            );
        }
        let state = Arc::new(ServerState::new(self.settings, is_loopback));
        Ok(ConsoleServer::spawn(listener, address, state))
    }

    /// Listens on the address. Blocking, so that an error is returned at once and not from a task.
    fn listen(&self) -> std::io::Result<TcpListener> {
        let listener = TcpListener::bind(&self.address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("address", &self.address)
            .field("access", &self.settings.access)
            .field("actions", &self.settings.actions)
            .field("checks", &self.settings.checks)
            .finish_non_exhaustive()
    }
}
