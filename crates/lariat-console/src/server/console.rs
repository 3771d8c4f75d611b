//! The settings of a console.

use std::fmt;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::metrics::prometheus_client::registry::Registry;
use lariat_http::TokenReviews;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use super::error::ServeError;
use super::handle::ConsoleServer;
use super::observed::Observed;
use super::settings::{LogFilter, Settings};
use super::state::ServerState;
use crate::access::Access;
use crate::health::HealthCheck;

/// Metrics, probes and a console, to be served on an address.
///
/// ```no_run
/// use lariat_console::{Console, Serve};
/// use lariat_controller::SharedControllerFactory;
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
/// On a loopback address everyone on the machine may look; requests whose `Host` is neither an IP address nor
/// `localhost` are refused, so that pages of other sites cannot look from a browser. On any other address there are only
/// probes, unless [`token`](Self::token), [`token_reviews`](Self::token_reviews) or
/// [`open_to_everyone`](Self::open_to_everyone) says who may look. There is no TLS.
///
/// [`serve`](super::Serve::serve) describes when the server begins and ends.
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
    /// Creates a console that is served on an address, such as `127.0.0.1:9090` or `[::]:9090`.
    ///
    /// With port 0 the system chooses one: see [`ConsoleServer::address`].
    pub fn on(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            settings: Settings::default(),
        }
    }

    /// Adds a factory or an operator under a context id, which metrics have as the label `ctx`.
    ///
    /// For a program with several factories; one that is added under the id of another replaces it.
    ///
    /// ```no_run
    /// use lariat_console::{Console, ServeError};
    /// use lariat_controller::SharedControllerFactory;
    ///
    /// # fn example(local: &SharedControllerFactory, remote: &SharedControllerFactory) -> Result<(), ServeError> {
    /// Console::on("127.0.0.1:9090").with("local", local).with("remote", remote).start()?;
    /// # Ok(()) }
    /// ```
    pub fn with(mut self, context: &str, observed: &impl Observed) -> Self {
        let settings = &mut self.settings;
        // A clone of the console has members of its own.
        settings.members = settings.members.separate();
        observed.join(context, &settings.members, &mut settings.name);
        self
    }

    /// Sets the name of the program (default: that of the first operator, or of the executable).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Sets the version of the program, such as `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.settings.version = Some(version.into());
        self
    }

    /// Lets in who sends this bearer token.
    ///
    /// Tokens are compared in constant time. Since there is no TLS, whoever sees the traffic sees the token. An empty
    /// token lets no one in.
    pub fn token(self, token: impl Into<String>) -> Self {
        self.access(Access::Token(token.into().into()))
    }

    /// Lets in who has a token that the API server knows, and may do what is asked for.
    ///
    /// A `TokenReview` finds the user, and a `SubjectAccessReview` for `nonResourceURLs` says whether the user may
    /// `get` `/metrics`, `get` `/console`, or `post` `/console/actions`. The program needs the verb `create` for
    /// `tokenreviews.authentication.k8s.io` and `subjectaccessreviews.authorization.k8s.io`. Answers are used for a
    /// minute, refusals for ten seconds. While the API server cannot be asked, the answer is 503.
    pub fn token_reviews(self, reviews: TokenReviews) -> Self {
        self.access(Access::reviews(reviews))
    }

    /// Lets in everyone who can reach the address.
    ///
    /// They see names of objects, changed fields and texts of errors of all controllers.
    pub fn open_to_everyone(self) -> Self {
        self.access(Access::Everyone)
    }

    fn access(mut self, access: Access) -> Self {
        self.settings.access = access;
        self
    }

    /// Answers `/metrics` without authentication (default no).
    pub fn open_metrics(mut self, open: bool) -> Self {
        self.settings.open_metrics = open;
        self
    }

    /// Allows actions: to enqueue keys, pause handlers, relist kinds, reset guards, change the log filter (default no).
    ///
    /// Each is logged with the name of the user. Requests of pages of other origins are refused.
    pub fn actions(mut self, actions: bool) -> Self {
        self.settings.actions = actions;
        self
    }

    /// Adds a check of the program's health.
    pub fn check(mut self, check: HealthCheck) -> Self {
        self.settings.checks.push(check);
        self
    }

    /// Sets how long a call of a handler may take before the program is not ready (default 10 minutes).
    ///
    /// With zero every call in progress counts.
    pub fn stuck_after(mut self, limit: Duration) -> Self {
        self.settings.limits.stuck = limit;
        self
    }

    /// Sets how long a cache may be without a watch before the program is not ready (default 1 minute).
    ///
    /// Some seconds are usual when a watch is opened again; with zero each of these counts.
    pub fn unwatched_after(mut self, limit: Duration) -> Self {
        self.settings.limits.unwatched = limit;
        self
    }

    /// Adds metrics of the program to `/metrics`.
    ///
    /// The function is called once, when the server starts.
    ///
    /// ```
    /// use lariat_console::Console;
    /// use lariat_controller::metrics::prometheus_client::metrics::counter::Counter;
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

    /// Sets how many bytes of changed objects each factory remembers (default 4 MiB; zero remembers none).
    ///
    /// Of a change that is remembered, the page of a key shows which fields differ. Their values are not shown. When more
    /// than that changes within ten seconds, a part of the changes is remembered.
    pub fn remember_changes(mut self, bytes: usize) -> Self {
        self.settings.changes = bytes;
        self
    }

    /// Shows the filter of the program's log, and lets an action change it.
    pub fn log_filter(mut self, filter: impl LogFilter + 'static) -> Self {
        self.settings.log_filter = Some(Arc::new(filter));
        self
    }

    /// Listens on the address and serves, as [`Serve::serve`](super::Serve::serve) does, for the factories that were added by
    /// [`with`](Self::with).
    ///
    /// # Errors
    ///
    /// The address cannot be listened on, or there is no tokio runtime.
    pub fn start(self) -> Result<ConsoleServer, ServeError> {
        let runtime = Handle::try_current().map_err(|_| ServeError::NoRuntime)?;
        let _entered = runtime.enter();
        let listener = self.listen().map_err(|source| ServeError::Listen {
            address: self.address.clone(),
            source,
        })?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen {
            address: self.address.clone(),
            source,
        })?;
        let is_loopback = address.ip().is_loopback();
        if !is_loopback && matches!(self.settings.access, Access::OnThisMachine) {
            tracing::warn!(
                %address,
                "the console answers probes only: say who may use it by token, token_reviews or open_to_everyone"
            );
        }
        let state = Arc::new(ServerState::new(self.settings, is_loopback));
        Ok(ConsoleServer::spawn(listener, address, state))
    }

    fn listen(&self) -> std::io::Result<TcpListener> {
        let listener = StdListener::bind(&self.address)?;
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
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
