//! All checks of a program, and their last results.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::builtin;
use super::check::HealthCheck;
use crate::api::{Check, Health};
use crate::members::Members;
use crate::text::shown;

/// How long results are used again, so that a flood of probes runs few checks.
const FRESH: Duration = Duration::from_millis(100);

/// When something counts as unhealthy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long a call of a handler may take.
    pub(crate) stuck: Duration,
    /// How long a filled cache may be without a watch.
    pub(crate) unwatched: Duration,
}

/// All checks of a program.
pub(crate) struct Checkup {
    members: Members,
    limits: Limits,
    own: Vec<HealthCheck>,
    /// The last results; locked while checks run, so that they run once at a time.
    last: Mutex<Option<(Instant, Arc<[Check]>)>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stuck: Duration::from_secs(600),
            unwatched: Duration::from_secs(60),
        }
    }
}

impl Checkup {
    pub(crate) fn new(members: Members, limits: Limits, own: Vec<HealthCheck>) -> Self {
        Self {
            members,
            limits,
            own,
            last: Mutex::default(),
        }
    }

    /// Returns the results of all checks, those of the program last.
    pub(crate) async fn checks(&self) -> Arc<[Check]> {
        let mut last = self.last.lock().await;
        if let Some((at, checks)) = &*last
            && at.elapsed() < FRESH
        {
            return Arc::clone(checks);
        }
        let mut checks = builtin::checks(&self.members, self.limits);
        let own = self.own.iter().map(|check| async {
            let found = check.run().await.map(|()| None).map_err(|why| shown(&why));
            builtin::check(check.name(), check.is_liveness(), found)
        });
        checks.extend(join_all(own).await);
        let checks: Arc<[Check]> = checks.into();
        *last = Some((Instant::now(), Arc::clone(&checks)));
        checks
    }

    /// Returns the health.
    pub(crate) async fn health(&self) -> Health {
        let checks = self.checks().await;
        let are_good = |liveness: bool| {
            let mut counted = checks.iter().filter(|check| check.liveness || !liveness);
            counted.all(|check| check.ok)
        };
        Health {
            healthy: are_good(true),
            ready: are_good(false),
            checks: checks.to_vec(),
        }
    }
}
