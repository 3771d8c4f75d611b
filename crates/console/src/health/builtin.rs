//! The checks of every program.

use std::time::Duration;

use lariat_controller::FactoryPhase;

use crate::api::Check;
use crate::members::{Member, Members};

/// The time after the lease duration within which the lease must be renewed.
// As kube-controller-manager passes it to client-go's `NewLeaderHealthzAdaptor`.
const LEASE_TOLERANCE: Duration = Duration::from_secs(20);

/// The time limits of checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long a call of a handler may take.
    pub(crate) stuck: Duration,
    /// How long a synced cache may be without a watch.
    pub(crate) unwatched: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stuck: Duration::from_secs(600),
            unwatched: Duration::from_secs(60),
        }
    }
}

/// Runs all checks.
pub(super) fn checks(members: &Members, limits: Limits) -> Vec<Check> {
    let factories = members.factories();
    vec![
        // The only checks of liveness: a restart cures neither a slow handler nor an API server that is down.
        check("ping", Counts::Liveness, Ok(None)),
        check("leases", Counts::Liveness, leases(&factories)),
        check("caches", Counts::Readiness, caches(&factories)),
        // An outage or a slow call concerns all replicas alike, and webhooks of the same Pods answer meanwhile.
        check(
            "watches",
            Counts::Nothing,
            watches(&factories, limits.unwatched),
        ),
        check(
            "handlers",
            Counts::Nothing,
            handlers(&factories, limits.stuck),
        ),
        check("guards", Counts::Nothing, Ok(guards(members))),
        check("shutdown", Counts::Readiness, shutdown(&factories)),
    ]
}

/// The result of a check: passed with an optional note, or failed with a reason.
type Found = Result<Option<String>, String>;

/// The probes for which a check counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Liveness,
    Readiness,
    /// It is for people only.
    Nothing,
}

/// Returns a check with its result.
pub(super) fn check(name: &str, counts: Counts, found: Found) -> Check {
    let ok = found.is_ok();
    let message = found.unwrap_or_else(Some);
    Check {
        name: name.to_owned(),
        ok,
        liveness: counts == Counts::Liveness,
        readiness: counts != Counts::Nothing,
        message,
    }
}

fn result(wrong: &[String]) -> Found {
    if wrong.is_empty() {
        Ok(None)
    } else {
        // On one line, because the report has one line for each check, as that of an API server.
        Err(wrong.join("; "))
    }
}

/// Fails if this process leads, and does not renew its lease.
fn leases(factories: &[Member]) -> Found {
    let leaderships = factories
        .iter()
        .filter_map(|member| member.factory.leadership());
    let wrong = leaderships.filter_map(|leadership| leadership.check(LEASE_TOLERANCE).err());
    result(&wrong.collect::<Vec<_>>())
}

/// Fails until all caches have synced once, and names kinds that are not served any more.
///
/// Such a kind does not fail the check: its cache keeps its objects, and an optional CRD that is uninstalled must not
/// take a program out of service that serves webhooks for other kinds.
fn caches(factories: &[Member]) -> Found {
    let (mut wrong, mut blind) = (Vec::new(), Vec::new());
    for member in factories {
        match member.phase() {
            FactoryPhase::Idle => wrong.push(member.named("the factory is not started")),
            // A standby replica is running too: it fills its caches while it waits for the lease.
            FactoryPhase::Running => {
                let unfilled = member.factory.caches().unreadable().into_iter();
                wrong.extend(unfilled.map(|kind| {
                    // Without the error: probes need no authentication.
                    let failing = if kind.last_error.is_some() {
                        ", failing"
                    } else {
                        ""
                    };
                    member.named(&format!("{} is {}{failing}", kind.gvk, kind.phase))
                }));
            }
            _ => {}
        }
        for kind in member.factory.caches().status() {
            if let Some(found) = &kind.blind {
                blind.push(member.named(&format!("{} is {found}", kind.gvk)));
            }
        }
    }
    result(&wrong)?;
    Ok((!blind.is_empty()).then(|| blind.join("; ")))
}

/// Fails while a synced cache has been without a watch for too long.
fn watches(factories: &[Member], limit: Duration) -> Found {
    let mut wrong = Vec::new();
    for member in factories {
        for kind in member.factory.caches().status() {
            // A watch ends regularly, and is reopened within seconds.
            let Some(since) = kind.interrupted.filter(|since| *since > limit) else {
                continue;
            };
            let heard = kind.last_received.map_or_else(String::new, |heard| {
                format!(", last data received {} ago", seconds(heard))
            });
            let text = format!(
                "{} has been without a watch for {}{heard}",
                kind.gvk,
                seconds(since)
            );
            wrong.push(member.named(&text));
        }
    }
    result(&wrong)
}

/// Fails while a call of a handler takes too long.
fn handlers(factories: &[Member], limit: Duration) -> Found {
    let mut wrong = Vec::new();
    for member in factories {
        for controller in member.factory.controllers() {
            // The longest call is the first. Without its key: probes need no authentication.
            let calls = controller.in_progress();
            let stuck = calls.iter().filter(|call| call.lasts > limit);
            if let Some(longest) = stuck.clone().next() {
                let (count, gvk) = (stuck.count(), controller.gvk());
                let handler = longest.handler.as_deref().unwrap_or("(none yet)");
                let lasts = seconds(longest.lasts);
                let more = match count {
                    1 => String::new(),
                    _ => format!(", and {} more calls", count - 1),
                };
                wrong.push(member.named(&format!(
                    "the handler {handler} of {gvk} has been running for {lasts}{more}"
                )));
            }
        }
    }
    result(&wrong)
}

/// Returns a note of the guards that have tripped. They do not fail the probe: a restart would reset them.
#[cfg(feature = "operator")]
fn guards(members: &Members) -> Option<String> {
    let mut tripped = Vec::new();
    for (_, operator) in members.operators() {
        for (guard, reconcilers) in operator.guards() {
            if guard.state().is_tripped() {
                let names = reconcilers.join(", ");
                tripped.push(format!(
                    "the guard of {names} in {} has tripped",
                    operator.name()
                ));
            }
        }
    }
    (!tripped.is_empty()).then(|| tripped.join("; "))
}

#[cfg(not(feature = "operator"))]
fn guards(_: &Members) -> Option<String> {
    None
}

/// Fails during and after a stop, so that no traffic is sent to the program.
fn shutdown(factories: &[Member]) -> Found {
    let ends = |member: &&Member| {
        matches!(
            member.phase(),
            FactoryPhase::Stopping | FactoryPhase::Stopped
        )
    };
    let is_stopping = |member: &Member| member.phase() == FactoryPhase::Stopping;
    if factories.is_empty() {
        return Err("there is no factory, or it was dropped".to_owned());
    }
    let ended = factories.iter().filter(ends).count();
    // Beside other factories, one that has stopped was stopped on purpose, such as that of a removed cluster.
    if ended == factories.len() || factories.iter().any(is_stopping) {
        return Err("the program is stopping".to_owned());
    }
    Ok(None)
}

fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs())
}
