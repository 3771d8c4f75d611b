//! The state that all requests share.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::request::Parts;
use lariat_controller::metrics::prometheus_client::registry::Registry;
use lariat_core::{Gvk, clock};
use lariat_http::{Hosts, LONGEST_URL, User};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "operator")]
use super::guards::GuardMetrics;
use super::refusal::Refusal;
use super::settings::{LogFilter, Settings};
use crate::access::{Access, Permission};
use crate::api;
use crate::health::Checkup;
use crate::members::{Member, Members};
use crate::recent::Recent;
use crate::samples::Samples;
use crate::text;
use crate::view;

/// The maximum number of concurrent requests.
const REQUESTS: usize = 16;
/// The maximum number of concurrent streams.
const STREAMS: usize = 32;
/// How long an overview is reused.
const FRESH: Duration = Duration::from_millis(500);

/// The state that all requests share.
pub(super) struct ServerState {
    pub(super) members: Members,
    pub(super) samples: Samples,
    pub(super) checkup: Checkup,
    pub(super) registry: Registry,
    pub(super) access: Access,
    hosts: Hosts,
    pub(super) open_metrics: bool,
    pub(super) actions: bool,
    pub(super) log_filter: Option<Arc<dyn LogFilter>>,
    /// The last overview, without the permissions of a user.
    overviews: Recent<Arc<api::Overview>>,
    requests: Semaphore,
    streams: Arc<Semaphore>,
    pub(super) stopping: CancellationToken,
    is_loopback: bool,
    changes: usize,
    /// The name and the version of the program.
    program: (String, Option<String>),
    started: (SystemTime, Instant),
}

impl ServerState {
    pub(super) fn new(settings: Settings, is_loopback: bool) -> Self {
        // A clone of the console may be served too, and `ConsoleServer::add` must not add to that server.
        let members = settings.members.separate();
        let mut registry = Registry::default();
        // The collector is shared with the members, so that factories that are added later are scraped too.
        registry.register_collector(Box::new(members.collector().clone()));
        #[cfg(feature = "operator")]
        registry.register_collector(Box::new(GuardMetrics::new(&members)));
        settings
            .metrics
            .iter()
            .for_each(|register| register(&mut registry));
        Self {
            checkup: Checkup::new(members.clone(), settings.limits, settings.checks),
            changes: settings.changes,
            members,
            samples: Samples::default(),
            registry,
            access: settings.access,
            hosts: settings.hosts,
            open_metrics: settings.open_metrics,
            actions: settings.actions,
            log_filter: settings.log_filter,
            overviews: Recent::new(FRESH),
            requests: Semaphore::new(REQUESTS),
            streams: Arc::new(Semaphore::new(STREAMS)),
            stopping: CancellationToken::new(),
            is_loopback,
            program: (settings.name.unwrap_or_else(executable), settings.version),
            started: (clock::now(), Instant::now()),
        }
    }

    /// Makes all factories keep changes. A factory that does so already is not affected.
    pub(super) fn remember_changes(&self) {
        for member in self.members.factories() {
            member.factory.caches().remember_changes(self.changes);
        }
    }

    /// Authorises a request; returns its user.
    pub(super) async fn enter(
        &self,
        parts: &Parts,
        permission: Permission,
    ) -> Result<User, Refusal> {
        self.check(parts)?;
        let user = self
            .access
            .user(&parts.headers, self.is_loopback, permission);
        Ok(user.await?)
    }

    /// Checks the length of the URL, and the `Host` if there is no authentication.
    pub(super) fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        let uri = &parts.uri;
        let length = uri.path().len() + uri.query().map_or(0, |query| 1 + query.len());
        if length > LONGEST_URL {
            return Err(Refusal::long_url(LONGEST_URL));
        }
        if self.access.is_open() {
            self.check_host(parts)?;
        }
        Ok(())
    }

    /// Checks the `Host` of a request that needs no authentication.
    ///
    /// A page of another site can make its own name resolve to this address (DNS rebinding). Its requests have that
    /// name as `Host`.
    pub(super) fn check_host(&self, parts: &Parts) -> Result<(), Refusal> {
        if self.hosts.allow(&parts.headers) {
            Ok(())
        } else {
            Err(Refusal::host())
        }
    }

    /// Returns the permissions of a user.
    pub(super) async fn allowed(&self, user: &User) -> api::Allowed {
        let actions = self.actions && self.access.allows(user, Permission::Act).await == Ok(true);
        api::Allowed {
            user: user.name().to_owned(),
            actions,
        }
    }

    /// Returns the overview for a user.
    pub(super) async fn overview(&self, user: &User) -> api::Overview {
        // Before the overview: a review may take a while, and the overview should be as fresh as possible.
        let allowed = self.allowed(user).await;
        let overview = self.overviews.get(self.make_overview()).await;
        api::Overview {
            allowed,
            // The overview is shared by all users, except for their permissions.
            ..(*overview).clone()
        }
    }

    async fn make_overview(&self) -> Arc<api::Overview> {
        let members = &self.members;
        let health = self.checkup.health().await;
        let (controllers, hot_loops) = view::controllers(members, &self.samples);
        let no_one = api::Allowed {
            user: String::new(),
            actions: false,
        };
        Arc::new(api::Overview {
            program: self.program(),
            health,
            allowed: no_one,
            controllers,
            caches: view::caches(members),
            leases: view::leases(members),
            shards: view::shards(members),
            guards: view::guards(members),
            hot_loops,
            planned: view::planned(members),
        })
    }

    /// Forgets the last overview, after an action.
    pub(super) async fn changed(&self) {
        self.overviews.forget().await;
    }

    fn program(&self) -> api::Program {
        let (at, since) = self.started;
        let (name, version) = self.program.clone();
        api::Program {
            name,
            version,
            started: text::time(at),
            uptime: since.elapsed().as_secs_f64(),
            now: text::ago(Duration::ZERO),
            log_filter: self.log_filter.as_ref().map(|filter| filter.filter()),
        }
    }

    /// Takes a place among the concurrent requests.
    pub(super) fn place(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        // Refused rather than queued, so that a flood of requests does not pile up.
        let place = self.requests.try_acquire();
        place.map_err(|_| Refusal::busy("requests", REQUESTS))
    }

    /// Takes a place among the concurrent streams.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        place.map_err(|_| Refusal::busy("streams", STREAMS))
    }

    /// Returns the first factory that has a controller of the kind.
    ///
    /// With a context id, it is the factory of that id.
    pub(super) fn member(&self, context: Option<&str>, gvk: &Gvk) -> Result<Member, Refusal> {
        let mut factories = self.members.factories().into_iter();
        let found = factories.find(|member| {
            context.is_none_or(|context| *member.context == *context)
                && member.controller(gvk).is_some()
        });
        found.ok_or_else(|| Refusal::no_controller(gvk))
    }
}

/// Returns the name of the executable; empty if it is not known.
fn executable() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(Path::file_stem);
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
