//! All checks of a program, and their last results.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::builtin;
use super::builtin::{Counts, Limits};
use super::check::HealthCheck;
use crate::api::{Check, Health};
use crate::members::Members;
use crate::recent::Recent;
use crate::text::shown;

/// How long results are reused, so that many probes run few checks.
const FRESH: Duration = Duration::from_millis(100);

/// All checks of a program.
pub(crate) struct Checkup {
    members: Members,
    limits: Limits,
    own: Vec<HealthCheck>,
    last: Recent<Arc<[Check]>>,
}

impl Checkup {
    pub(crate) fn new(members: Members, limits: Limits, own: Vec<HealthCheck>) -> Self {
        Self {
            members,
            limits,
            own,
            last: Recent::new(FRESH),
        }
    }

    /// Returns the results of all checks; those that the program added are last.
    pub(crate) async fn checks(&self) -> Arc<[Check]> {
        self.last.get(self.run()).await
    }

    async fn run(&self) -> Arc<[Check]> {
        // These only read states, so they cannot hang. Those of the program run concurrently, each with its timeout.
        let mut checks = builtin::checks(&self.members, self.limits);
        let own = self.own.iter().map(|check| async {
            let found = check.run().await.map(|()| None);
            // The text is the program's, and public.
            let found = found.map_err(|why| shown(&why));
            let counts = if check.is_liveness() {
                Counts::Liveness
            } else {
                Counts::Readiness
            };
            builtin::check(check.name(), counts, found)
        });
        checks.extend(join_all(own).await);
        checks.into()
    }

    /// Returns the results of all checks, and whether the program is healthy and ready.
    pub(crate) async fn health(&self) -> Health {
        let checks = self.checks().await;
        let are_good = |counts: fn(&Check) -> bool| {
            let mut counted = checks.iter().filter(|check| counts(check));
            counted.all(|check| check.ok)
        };
        Health {
            healthy: are_good(|check| check.liveness),
            ready: are_good(|check| check.readiness),
            checks: checks.to_vec(),
        }
    }
}
