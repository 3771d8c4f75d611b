//! Faults that act between the checks of a request and its verb.

use super::{admission, concurrent_update, recreate};
use crate::fault::Action;
use crate::status::ApiError;
use crate::verbs::Call;
use crate::wire::query;

/// Applies the fault of a request to its objects, or refuses it.
///
/// # Errors
///
/// The refusal, where the fault is one.
pub(crate) fn before_verb(call: &Call) -> Result<(), ApiError> {
    match call.fault() {
        Some(Action::Conflict) => concurrent_update::update_concurrently(call),
        Some(Action::Recreate(name)) => recreate::recreate(call, name),
        Some(Action::Reject(reason)) => return Err(admission::rejected(call, reason)),
        Some(Action::ExceedQuota(quota)) => return Err(admission::over_quota(call, quota)),
        Some(Action::RefuseWatchList) => return Err(query::initial_events_unknown()),
        _ => {}
    }
    Ok(())
}
