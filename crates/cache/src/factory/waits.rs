//! Waits until the caches of a factory have synced.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{select_all, try_join_all};
use tokio::time::{self, Instant};

use crate::error::Unsynced;
use crate::informer::Core;
use crate::publish::Phase;
use crate::store::Content;

/// After this time a wait for caches is logged; also the first interval.
const LONG_WAIT: Duration = Duration::from_secs(3);

/// The longest interval between two logs of a wait; intervals double up to this.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// How often a wait looks whether a kind is still required.
const USE_PERIOD: Duration = Duration::from_secs(1);

/// How many kinds such a log names.
const NAMED: usize = 5;

/// Waits until all kinds have synced, or one cannot be read.
///
/// Returns the kinds that are not served, or cannot be watched.
pub(super) async fn refused(cores: &[Arc<Core>]) -> Vec<Unsynced> {
    loop {
        let filled = cores
            .iter()
            .map(|core| async { filled(core).await.then_some(()).ok_or(()) });
        if try_join_all(filled).await.is_ok() {
            return Vec::new();
        }
        let mut missing = unsynced(cores);
        missing.retain(|kind| kind.phase.is_unserved());
        // Empty if the kind has been served since, so the wait goes on.
        if !missing.is_empty() {
            return missing;
        }
    }
}

/// Waits until a kind has synced, or nothing requires it any more; returns `false` if it is not served.
///
/// The last handler of a kind that cannot be read may be deregistered during a start.
async fn filled(core: &Core) -> bool {
    let unused = async {
        while core.usage().is_required() {
            time::sleep(USE_PERIOD).await;
        }
    };
    tokio::select! {
        biased;
        () = unused => true,
        is_served = core.synced(Content::Whole) => is_served,
    }
}

/// Waits until the timeout of a kind has passed; returns that timeout.
pub(super) async fn too_late(cores: &[Arc<Core>], usual: Duration) -> Duration {
    let late = cores.iter().map(|core| {
        Box::pin(async {
            let limit = core.sync_timeout().unwrap_or(usual);
            if time::timeout(limit, filled(core)).await.is_ok() {
                std::future::pending::<()>().await;
            }
            limit
        })
    });
    if cores.is_empty() {
        std::future::pending().await
    } else {
        select_all(late).await.0
    }
}

/// Logs a wait after three seconds and then at growing intervals.
pub(super) async fn log_waits(cores: &[Arc<Core>]) -> Infallible {
    let (began, mut interval) = (Instant::now(), LONG_WAIT);
    loop {
        time::sleep(interval).await;
        interval = (2 * interval).min(LONGEST_INTERVAL);
        let kinds = unsynced(cores);
        let waits = waits(&kinds);
        // Empty if the last kind has synced at this moment.
        if !kinds.is_empty() {
            let waited = began.elapsed();
            let (kinds, advice) = (kinds.len(), advice(&kinds));
            match advice {
                None => tracing::info!(?waited, kinds, "waiting for caches: {waits}"),
                Some(advice) => {
                    tracing::warn!(?waited, kinds, "waiting for caches: {waits}{advice}")
                }
            }
        }
    }
}

/// Returns what to do about failures; `None` if no cache has failed.
///
/// A kind that is not served is not a failure: the factory waits for it only if it may.
fn advice(kinds: &[Unsynced]) -> Option<&'static str> {
    let mut errors = kinds
        .iter()
        .filter(|kind| !kind.phase.is_unserved())
        .filter_map(|kind| kind.last_error.as_deref())
        .peekable();
    errors.peek()?;
    let is_forbidden = errors.any(|error| error.contains("refused: 403 "));
    Some(if is_forbidden {
        "; grant the program `list` and `watch` of what is forbidden"
    } else {
        ""
    })
}

/// Describes the first kinds that have not synced.
fn waits(kinds: &[Unsynced]) -> String {
    let of = |kind: &Unsynced| match &kind.last_error {
        Some(error) => format!("{}: {}, last error: {error}", kind.gvk, kind.state()),
        None => format!("{}: {}", kind.gvk, kind.state()),
    };
    let mut all: Vec<String> = kinds.iter().take(NAMED).map(of).collect();
    if kinds.len() > NAMED {
        all.push(format!("and {} more", kinds.len() - NAMED));
    }
    all.join("; ")
}

/// Returns the required kinds that have not synced, or lack content that is being read.
pub(super) fn unsynced(cores: &[Arc<Core>]) -> Vec<Unsynced> {
    let statuses = cores
        .iter()
        .filter(|core| core.usage().is_required())
        .map(|core| (core.is_upgrading(), core.status()));
    statuses
        .filter(|(is_upgrading, status)| *is_upgrading || status.phase != Phase::Synced)
        .map(|(_, status)| Unsynced {
            gvk: status.gvk,
            phase: status.phase,
            last_error: status.last_error,
        })
        .collect()
}
