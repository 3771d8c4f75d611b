//! The errors of refused writes.

use std::sync::Arc;

use tokio::time::Instant;

use super::state::Trip;
use crate::refusal::GuardError;

/// The guard has tripped.
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

/// It is unknown how many objects the write deletes.
pub(super) fn unknown(handler: &str, write: String) -> GuardError {
    GuardError {
        handler: handler.to_owned(),
        write,
        reason:
            "how many objects it deletes is not known, for no cache that is filled holds all of them"
                .into(),
        then: "cache all objects of the kind, or delete them one by one".to_owned(),
        until: None,
    }
}

/// The write deletes an object of a kind that needs a weight.
pub(super) fn no_weight(handler: &str, write: String) -> GuardError {
    GuardError {
        handler: handler.to_owned(),
        write,
        reason: "it takes along all that is in it, which no budget counts".into(),
        then: "say as how many objects that is to count (`Guard::weight`)".to_owned(),
        until: None,
    }
}
