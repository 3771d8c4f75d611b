//! The state that all requests share.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::request::Parts;
use lariat_controller::metrics::prometheus_client::registry::Registry;
use lariat_core::clock;
use lariat_http::{LONGEST_URL, User, names_this_machine};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::console::{Console, LogFilter};
use super::overview::{self, Overviews};
use super::refusal::Refusal;
use crate::access::{Access, Permission};
use crate::api;
use crate::health::Checkup;
use crate::members::Members;
use crate::samples::Samples;
use crate::text;

/// The maximum number of requests that are answered at a time.
pub(super) const REQUESTS: usize = 16;
/// The maximum number of streams.
pub(super) const STREAMS: usize = 32;

/// The state that all requests share.
pub(super) struct ServerState {
    pub(super) members: Members,
    pub(super) samples: Samples,
    pub(super) checkup: Checkup,
    pub(super) registry: Registry,
    pub(super) access: Access,
    pub(super) open_metrics: bool,
    pub(super) actions: bool,
    pub(super) log_filter: Option<Arc<dyn LogFilter>>,
    pub(super) overviews: Overviews,
    pub(super) requests: Semaphore,
    pub(super) streams: Arc<Semaphore>,
    pub(super) stopping: CancellationToken,
    is_loopback: bool,
    program: Program,
    started: (SystemTime, Instant),
}

/// The program that serves.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
}

impl ServerState {
    pub(super) fn new(console: Console, is_loopback: bool) -> Self {
        let members = console.members.separate();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(members.collector().clone()));
        console
            .metrics
            .iter()
            .for_each(|register| register(&mut registry));
        Self {
            checkup: Checkup::new(members.clone(), console.limits, console.checks),
            members,
            samples: Samples::default(),
            registry,
            access: console.access,
            open_metrics: console.open_metrics,
            actions: console.actions,
            log_filter: console.log_filter,
            overviews: Mutex::default(),
            requests: Semaphore::new(REQUESTS),
            streams: Arc::new(Semaphore::new(STREAMS)),
            stopping: CancellationToken::new(),
            is_loopback,
            program: console.program,
            started: (clock::now(), Instant::now()),
        }
    }

    /// Checks a request, and returns its user, who has the permission.
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

    /// Checks the length of the URL and the `Host`.
    pub(super) fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        let uri = &parts.uri;
        let length = uri.path().len() + uri.query().map_or(0, |query| 1 + query.len());
        if length > LONGEST_URL {
            return Err(Refusal::long_url(LONGEST_URL));
        }
        if self.is_loopback && self.access.is_open() && !names_this_machine(&parts.headers) {
            return Err(Refusal::host());
        }
        Ok(())
    }

    /// Returns what a user may do.
    pub(super) async fn allowed(&self, user: &User) -> api::Allowed {
        let actions = self.actions && self.access.allows(user, Permission::Act).await == Ok(true);
        api::Allowed {
            user: user.name().to_owned(),
            actions,
        }
    }

    /// Returns the overview, for a user.
    pub(super) async fn overview(&self, user: &User) -> api::Overview {
        let allowed = self.allowed(user).await;
        let overview = overview::recent(self).await;
        api::Overview {
            allowed,
            ..(*overview).clone()
        }
    }

    pub(super) fn program(&self) -> api::Program {
        let (at, since) = self.started;
        let executable = || {
            let path = std::env::current_exe().ok()?;
            Some(path.file_stem()?.to_string_lossy().into_owned())
        };
        let name = self.program.name.clone().or_else(executable);
        api::Program {
            name: name.unwrap_or_default(),
            version: self.program.version.clone(),
            started: text::time(at),
            uptime: since.elapsed().as_secs_f64(),
            now: text::ago(Duration::ZERO),
            log_filter: self.log_filter.as_ref().map(|filter| filter.filter()),
        }
    }
}
