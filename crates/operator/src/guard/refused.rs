//! The errors of refused writes.

use std::sync::Arc;

use tokio::time::Instant;

use super::state::Trip;
use crate::refusal::GuardError;

/// Returns the error of a write that a tripped guard refuses.
pub(super) fn tripped(handler: &str, write: String, trip: &Trip, now: Instant) -> GuardError {
    let left = trip.until().map(|until| until.duration_since(now));
    GuardError {
        handler: handler.to_owned(),
        write,
        reason: Arc::clone(trip.shared_reason()),
        then: match left {
            Some(left) => format!("tripped for another {left:?}"),
            None => "tripped until it is reset".to_owned(),
        },
        until: trip.until(),
    }
}

/// Returns the error of a collection deletion with an unknown number of objects.
pub(super) fn unknown(handler: &str, write: String) -> GuardError {
    GuardError {
        handler: handler.to_owned(),
        write,
        reason:
            "the number of objects that it deletes is unknown, because no synced cache has all of them"
                .into(),
        then: "cache all objects of the kind, or delete them one by one".to_owned(),
        until: None,
    }
}

/// Returns the error of a deletion of a kind that needs a weight.
pub(super) fn no_weight(handler: &str, write: String) -> GuardError {
    GuardError {
        handler: handler.to_owned(),
        write,
        reason: "it also deletes everything in it, which no budget counts".into(),
        then: "set how many objects it counts as (`Guard::weight`)".to_owned(),
        until: None,
    }
}
