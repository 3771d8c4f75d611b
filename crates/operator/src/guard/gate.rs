//! Asks guards about a write, and reverts the counts of writes that were not executed.
//!
//! A write is counted before it is sent. Counting it afterwards would let concurrent workers exceed a budget together.

use http::StatusCode;
use lariat_cache::{GateDecision, PendingWrite, WriteReceipt, WriteResult, WriteVerb};
use lariat_controller::{Gate, GatedWrite};
use lariat_core::ResourceVersion;
use serde::Deserialize;
use tokio::time::Instant;
use tracing::field;

use super::announced::Announced;
use super::guard::Guard;
use super::refused;
use super::rules::Act;
use super::state::{Request, Ruling, Ticket, Trip};
use crate::refusal::is_exempt;

/// Makes a guard usable as the gate of any handler.
///
/// See [`HandlerOptions::gate`](lariat_controller::HandlerOptions::gate).
impl Gate for Guard {
    fn admit(&self, write: &GatedWrite<'_>) -> GateDecision {
        judge(std::slice::from_ref(self), write, |trip| {
            announce(write, trip)
        })
    }
}

/// Asks guards about a write; `tripped` is called for each guard that it trips.
pub(crate) fn judge(
    guards: &[Guard],
    write: &GatedWrite<'_>,
    tripped: impl Fn(&Trip),
) -> GateDecision {
    let pending = write.write();
    // Exempt writes and uncounted ones pass without a receipt, so they cost nothing when they end.
    let Some(act) = Act::of(pending).filter(|_| !guards.is_empty() && !is_exempt()) else {
        return GateDecision::Pass;
    };
    let key = pending.key();
    let following = pending.followed_by().iter();
    let mut request = Request {
        act,
        then: following.map(|verb| Act::of_verb(*verb)).collect(),
        key: key.as_ref(),
        weight: None,
        what: pending,
        api_path: pending.api_path(),
        plural: pending.plural(),
        objects: pending.objects(),
        cached: pending.store().map_or(0, |store| store.len()),
    };
    // If a later guard refuses the write, the earlier ones must forget it.
    let mut counted = Counted {
        tickets: Vec::new(),
        announced: Vec::new(),
        before: version_before(pending),
    };
    let handler = write.handler().unwrap_or("the program");
    for guard in guards {
        request.weight = guard.weight_of(act, pending);
        let error = match guard.admit(&request) {
            Ruling::NotCounted => continue,
            Ruling::Announced(announced) => {
                counted.announced.push((guard.clone(), announced));
                continue;
            }
            Ruling::Counted(ticket) => {
                counted.tickets.push((guard.clone(), ticket));
                continue;
            }
            Ruling::Tripped { trip, is_first } => {
                if is_first {
                    tripped(&trip);
                }
                let now = Instant::now();
                refused::tripped(handler, pending.to_string(), &trip, now)
            }
            Ruling::Unknown => refused::unknown(handler, pending.to_string()),
            Ruling::NoWeight => refused::no_weight(handler, pending.to_string()),
        };
        counted.give_back();
        return GateDecision::Refuse(error.into());
    }
    if counted.tickets.is_empty() && counted.announced.is_empty() {
        GateDecision::Pass
    } else {
        GateDecision::Send(Box::new(counted))
    }
}

/// Logs the trip of a guard.
pub(crate) fn announce(write: &GatedWrite<'_>, trip: &Trip) {
    let (kind, key) = (
        write.gvk().map(field::display),
        write.key().map(field::display),
    );
    let (handler, reason) = (write.handler(), trip.reason());
    tracing::error!(
        kind,
        key,
        handler,
        reason,
        "a guard has tripped: writes are refused"
    );
}

/// Returns the cached resource version of an object before a write.
fn version_before(write: &PendingWrite<'_>) -> Option<ResourceVersion> {
    // Creations and deletions always change something.
    let changes = matches!(write.verb(), WriteVerb::Update | WriteVerb::Patch);
    let cached = write.cached().filter(|_| changes)?;
    Some(cached.version().clone()).filter(|version| !version.is_empty())
}

/// A write that guards have counted, until its answer arrives.
struct Counted {
    tickets: Vec<(Guard, Ticket)>,
    /// The guards that counted it with an earlier write.
    announced: Vec<(Guard, Announced)>,
    before: Option<ResourceVersion>,
}

impl Counted {
    fn give_back(&self) {
        for (guard, ticket) in &self.tickets {
            guard.give_back(ticket);
        }
    }

    /// Returns whether the write changed nothing.
    ///
    /// Each change gives an object a new resource version, so the answer to a write without effect has the version from
    /// before. If the cache is behind, the versions differ, and the write stays counted.
    fn changed_nothing(&self, answer: Option<&[u8]>) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            resource_version: String,
        }
        #[derive(Deserialize)]
        struct Answer {
            metadata: Metadata,
        }
        let Some((before, answer)) = self.before.as_ref().zip(answer) else {
            return false;
        };
        let answer = serde_json::from_slice::<Answer>(answer);
        answer
            .is_ok_and(|answer| ResourceVersion::new(&answer.metadata.resource_version) == *before)
    }
}

impl WriteReceipt for Counted {
    fn ended(self: Box<Self>, end: &WriteResult<'_>) {
        let is_done = match end {
            WriteResult::Answered {
                status,
                body,
                is_dry_run,
                ..
            } => may_be_done(*status) && !is_dry_run && !self.changed_nothing(*body),
            // The write was not sent. If its result is unknown, this method is never called, and the write stays
            // counted: a guard errs on the safe side.
            _ => false,
        };
        if !is_done {
            self.give_back();
        }
        let is_success = matches!(
            end,
            WriteResult::Answered { status, is_dry_run: false, .. } if status.is_success()
        );
        if is_success {
            let announced = self.announced.iter();
            announced.for_each(|(guard, announced)| guard.use_up(announced));
        }
    }
}

/// Returns whether a write with this answer may have been executed.
///
/// A server error may follow the execution. A call into a Pod is answered with 101.
fn may_be_done(status: StatusCode) -> bool {
    status.is_success() || status.is_server_error() || status == StatusCode::SWITCHING_PROTOCOLS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_not_done_and_what_began_is() {
        for (code, expected) in [
            (101, true),
            (200, true),
            (201, true),
            (307, false),
            (403, false),
            (409, false),
            (503, true),
        ] {
            let status = StatusCode::from_u16(code).expect("a code");
            assert_eq!(may_be_done(status), expected, "{code}");
        }
    }
}
