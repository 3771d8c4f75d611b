//! The HTTP service and its options.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use axum::Router;
use http::HeaderMap;
use lariat_core::Gvk;
use lariat_http::{AuthError, Hosts, TokenReviews};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::auth::Auth;
use super::authorize::Authorizer;
use super::bytes::{ByteRoom, Bytes};
use super::error::VisibleError;
use super::revisions::Revisions;
use super::room::Room;
use super::shared::{ServiceState, path_of};
use super::target::Pages;
use super::turns::Turns;
use super::visible::Sight;
use super::{openapi, routes};
use crate::access::{Access, AccessReviews, User};
use crate::cache::{SqlCache, SqlKind};

const HEARTBEAT: Duration = Duration::from_secs(15);
const LONGEST_WATCH: Duration = Duration::from_secs(60);
const PAGES: Pages = Pages {
    default: 1_000,
    largest: 10_000,
};
const REQUESTS: Limit = Limit {
    of_all: 64,
    of_user: 16,
};
const BYTES: Bytes = Bytes {
    of_list: 32 << 20,
    of_user: 64 << 20,
    of_all: 256 << 20,
};
const WATCHES: Limit = Limit {
    of_all: 256,
    of_user: 32,
};

/// Serves the kinds of a [`SqlCache`] over HTTP; see the [module](super).
///
/// It refuses every request until it has [authentication](Self::authenticate) and [authorization](Self::authorize), or
/// is [open to everyone](Self::open_to_everyone). It does not terminate TLS: serve it on a loopback address, or behind
/// a proxy.
///
/// ```no_run
/// use lariat::sql::{AccessReviews, SqlCache, http::{SqlService, TokenReviews}};
///
/// # async fn example(client: kube::Client, sql: SqlCache) -> std::io::Result<()> {
/// let service = SqlService::new(&sql)
///     .authenticate(TokenReviews::new(client.clone()))
///     .authorize(AccessReviews::new(client));
/// service.serve(([127, 0, 0, 1], 8080).into()).await
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a service does nothing until it serves"]
pub struct SqlService {
    kinds: Vec<SqlKind>,
    auth: Auth,
    hosts: Hosts,
    sight: Option<Sight>,
    pages: Pages,
    requests: Limit,
    bytes: Bytes,
    watches: Limit,
    heartbeat: Duration,
    longest_watch: Duration,
    stopping: CancellationToken,
}

/// Limits on the number at a time.
#[derive(Debug, Clone, Copy)]
struct Limit {
    of_all: usize,
    of_user: usize,
}

impl Limit {
    fn room(self, what: &'static str, is_open: bool) -> Room {
        // Without authentication all requests are from one user.
        let of_user = if is_open { self.of_all } else { self.of_user };
        Room::new(what, self.of_all, of_user)
    }
}

impl SqlService {
    /// Creates a service for all kinds of a cache.
    ///
    /// It does not keep the cache alive: when the cache is stopped or dropped, watches end.
    pub fn new(sql: &SqlCache) -> Self {
        Self {
            kinds: sql.kinds().cloned().collect(),
            auth: Auth::Unset,
            hosts: Hosts::default(),
            sight: None,
            pages: PAGES,
            requests: REQUESTS,
            bytes: BYTES,
            watches: WATCHES,
            heartbeat: HEARTBEAT,
            longest_watch: LONGEST_WATCH,
            stopping: CancellationToken::new(),
        }
    }

    /// Authenticates requests by bearer tokens, which the API server reviews.
    ///
    /// [`authorize`](Self::authorize) or [`visible`](Self::visible) decide what users see; without either they see
    /// nothing.
    pub fn authenticate(self, reviews: TokenReviews) -> Self {
        let auth = Auth::Reviews(Box::new(reviews));
        Self { auth, ..self }
    }

    /// Authenticates requests by a function of their headers.
    ///
    /// [`authorize`](Self::authorize) or [`visible`](Self::visible) decide what users see; without either they see
    /// nothing. The reasons of errors are sent to clients.
    pub fn authenticate_with<F, Fut>(self, check: F) -> Self
    where
        F: Fn(&HeaderMap) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<User, AuthError>> + Send + 'static,
    {
        let auth = Auth::function(check);
        Self { auth, ..self }
    }

    /// Accepts requests without authentication, as the user `system:anonymous`.
    ///
    /// Everything is visible unless [`visible`](Self::visible) restricts it: anyone who can reach the address can read
    /// what the program may read. Requests are refused whose `Host` may be of another site (see [`host`](Self::host)),
    /// so that pages of other sites cannot send requests from a browser.
    pub fn open_to_everyone(self) -> Self {
        let auth = Auth::open();
        Self { auth, ..self }
    }

    /// Allows a `Host` for requests without authentication.
    ///
    /// It is a name such as `sql.shop.example`, without a port.
    ///
    /// While no authentication is needed, requests with an unknown `Host` are refused. IP addresses, `localhost`, names
    /// without a dot and names of Services are always known.
    pub fn host(self, name: impl Into<String>) -> Self {
        let hosts = self.hosts.with(name);
        Self { hosts, ..self }
    }

    /// Shows users the objects that the API server lets them list, by reviews.
    ///
    /// A user sees all objects of a kind, or those in the namespaces where the user may `list` it; that verb also
    /// covers single objects and watches. Namespaces themselves are visible to users who may `get` them. Permissions
    /// for objects by name are not considered. Plurals and scopes of kinds are looked up by discovery. The program
    /// needs the verb `create` for `subjectaccessreviews.authorization.k8s.io`.
    ///
    /// A request that names up to 64 namespaces is reviewed for those, any other request for all namespaces in which
    /// the kind has objects, with one review each unless the user may see all; see [`AccessReviews`] for how long the
    /// answers are used. A user whose [budget](AccessReviews::with_budget) of reviews is spent gets 429. This replaces
    /// [`visible`](Self::visible).
    pub fn authorize(self, reviews: AccessReviews) -> Self {
        let sight = Some(Sight::Reviews(Arc::new(Authorizer::new(reviews))));
        Self { sight, ..self }
    }

    /// Decides by a function what users see, instead of [reviews](Self::authorize).
    ///
    /// The function is called for each list and object, and at the start of each watch; it should cache expensive
    /// results. An error shows nothing and is answered with 503.
    ///
    /// ```no_run
    /// use lariat::sql::{Access, SqlCache, http::SqlService};
    ///
    /// # fn example(sql: &SqlCache) {
    /// // Everyone sees the objects of one namespace.
    /// let service = SqlService::new(sql)
    ///     .open_to_everyone()
    ///     .visible(|_user, _kind| async { Ok(Access::of_namespaces(["shop"])) });
    /// # let _ = service; }
    /// ```
    pub fn visible<F, Fut>(self, look: F) -> Self
    where
        F: Fn(User, Gvk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Access, VisibleError>> + Send + 'static,
    {
        let sight = Some(Sight::function(look));
        Self { sight, ..self }
    }

    /// Sets the default number of objects in a list (1,000; zero counts as one).
    pub fn default_page(mut self, objects: u64) -> Self {
        self.pages.default = objects.max(1);
        // A default beyond the largest page would refuse each list without a limit.
        self.pages.largest = self.pages.largest.max(self.pages.default);
        self
    }

    /// Sets the largest number of objects in a list (default 10,000).
    ///
    /// It is at least the [default page](Self::default_page). A list that requests more is refused.
    pub fn largest_page(mut self, objects: u64) -> Self {
        self.pages.largest = objects.max(self.pages.default);
        self
    }

    /// Sets the largest size of a list in bytes (default 32 MiB).
    ///
    /// A list ends before the object with which it would be larger, with `continue` for the following ones; it has at
    /// least one object. A page of a `pagesize` that is larger is refused with 400, because the next page would skip
    /// objects. The sort keys of the objects and the counts of summaries are included.
    pub fn largest_list(mut self, bytes: u64) -> Self {
        self.bytes.of_list = bytes;
        self
    }

    /// Sets how many bytes of unread answers are held (default 256 MiB).
    ///
    /// The bytes of a list or object count until the client has read the whole answer, or is disconnected. A request
    /// whose answer has no room gets 429 before its objects are read, unless no other answer is held.
    pub fn held_bytes(mut self, bytes: u64) -> Self {
        self.bytes.of_all = bytes;
        self
    }

    /// Sets how many [bytes](Self::held_bytes) one user may hold (default 64 MiB).
    ///
    /// Further requests of the user get 429, unless the user holds no other answer. Users are identified by their
    /// names. The limit does not apply if the service is [open to everyone](Self::open_to_everyone).
    pub fn held_bytes_per_user(mut self, bytes: u64) -> Self {
        self.bytes.of_user = bytes;
        self
    }

    /// Sets how many lists and objects are served at a time (default 64).
    ///
    /// Zero counts as one. Further requests get 429. An answer counts until its client has read it.
    pub fn requests(mut self, requests: usize) -> Self {
        self.requests.of_all = requests;
        self
    }

    /// Sets how many [requests](Self::requests) one user may have (default 16).
    ///
    /// Zero counts as one. Further requests get 429. Users are identified by their names. There is no such limit if the
    /// service is [open to everyone](Self::open_to_everyone).
    pub fn requests_per_user(mut self, requests: usize) -> Self {
        self.requests.of_user = requests;
        self
    }

    /// Sets how many watches may be open at a time (default 256).
    ///
    /// Zero counts as one. Further watches get 429.
    pub fn watches(mut self, watches: usize) -> Self {
        self.watches.of_all = watches;
        self
    }

    /// Sets how many [watches](Self::watches) one user may have (default 32).
    ///
    /// Zero counts as one. Further watches get 429. As for [requests](Self::requests_per_user), there is no such limit
    /// if the service is open to everyone.
    pub fn watches_per_user(mut self, watches: usize) -> Self {
        self.watches.of_user = watches;
        self
    }

    /// Sets how often a watch sends a heartbeat (default 15 seconds).
    ///
    /// A heartbeat contains the revision from which the client can resume. Zero counts as a millisecond.
    pub fn heartbeat(self, heartbeat: Duration) -> Self {
        let heartbeat = heartbeat.max(Duration::from_millis(1));
        Self { heartbeat, ..self }
    }

    /// Sets the longest duration of a watch (default 60 seconds; zero means no limit).
    ///
    /// The client reconnects and resumes, unless its token was revoked or it may not see anything any more. Access is
    /// checked only then: a shorter time revokes access sooner, at the cost of more requests. Watches of a service that
    /// is [open to everyone](Self::open_to_everyone) do not end, unless [`visible`](Self::visible) restricts access.
    pub fn longest_watch(self, longest_watch: Duration) -> Self {
        Self {
            longest_watch,
            ..self
        }
    }

    /// Ends watches and [`serve`](Self::serve) when a token is cancelled.
    pub fn stop_with(self, stopping: CancellationToken) -> Self {
        Self { stopping, ..self }
    }

    /// Returns the routes, for a program that serves them itself.
    ///
    /// They can be served with others, or [nested](Router::nest) below a path. The program must then limit connections,
    /// the sizes of heads and the time that a client may take to read.
    ///
    /// ```no_run
    /// use lariat::sql::{SqlCache, http::SqlService};
    ///
    /// # fn example(sql: &SqlCache) {
    /// let service = SqlService::new(sql).open_to_everyone();
    /// let router: axum::Router = axum::Router::new().nest("/objects", service.into_router());
    /// # let _ = router; }
    /// ```
    pub fn into_router(self) -> Router {
        self.router()
    }

    /// Serves HTTP/1.1 on an address until it is [stopped](Self::stop_with).
    ///
    /// There are at most 1,024 connections; a further client takes the place of the one that has been idle for the
    /// longest time. A client has 30 seconds to send a head, and is disconnected if it does not read for 30 seconds. At
    /// the stop watches end, and running requests have 10 seconds.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes all connections.
    pub async fn serve(self, address: SocketAddr) -> io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        self.serve_on(listener).await
    }

    /// Serves on a listener, like [`serve`](Self::serve).
    ///
    /// # Errors
    ///
    /// Fails if the listener has no address.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes all connections.
    pub async fn serve_on(self, listener: TcpListener) -> io::Result<()> {
        let stopping = self.stopping.clone();
        lariat_http::serve("the SQL service", listener, self.router(), stopping).await;
        Ok(())
    }

    fn router(self) -> Router {
        let kinds: BTreeMap<String, SqlKind> = self
            .kinds
            .into_iter()
            .map(|kind| (path_of(kind.schema().gvk()), kind))
            .collect();
        let openapi = openapi::document(&kinds, self.pages, self.auth.is_open());
        let is_open = self.auth.is_open();
        let readers = kinds.values().map(SqlKind::readers).next().unwrap_or(1);
        // With one user and no access rules nothing can be revoked, so no watch has to end for a new check.
        let is_always_the_same = is_open && self.sight.is_none();
        let is_endless = self.longest_watch.is_zero() || is_always_the_same;
        routes::router(Arc::new(ServiceState {
            kinds,
            auth: self.auth,
            sight: self.sight,
            pages: self.pages,
            requests: self.requests.room("requests", is_open),
            bytes: ByteRoom::new(self.bytes.of_one_user(is_open)),
            revisions: Revisions::new(),
            turns: Turns::new(readers, is_open),
            watches: self.watches.room("watches", is_open),
            heartbeat: self.heartbeat,
            longest_watch: Some(self.longest_watch).filter(|_| !is_endless),
            stopping: self.stopping,
            // With authentication a page of another site has no token to send, so any `Host` is fine.
            hosts: Some(self.hosts).filter(|_| is_open),
            openapi,
        }))
    }
}

impl fmt::Debug for SqlService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self
            .kinds
            .iter()
            .map(|kind| path_of(kind.schema().gvk()))
            .collect();
        f.debug_struct("SqlService")
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}
