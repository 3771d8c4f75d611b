//! Changes that are based on the newest state of an object, and made again when that was not the newest.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use lariat_cache::CachedObject;
use serde_json::Value;

use super::{Wire, status_of};
use crate::api::ApiError;

/// One try of a change: what is sent for one state of the object.
pub(crate) struct Attempt {
    params: PatchParams,
    patch: Patch<Value>,
}

/// What became of a change.
pub(crate) enum Changed {
    /// It was made; this is the state since.
    Made(Arc<CachedObject>),
    /// There was nothing to change in this state.
    Unneeded(Arc<CachedObject>),
    /// The object is gone, or another one has its name by now.
    Gone,
    /// The object is there, and its kind has no such subresource.
    NoSubresource,
}

impl Attempt {
    /// Merges a patch into one state of an object, and into no other.
    pub(crate) fn merge(manager: &str, patch: Value, state: &CachedObject) -> Self {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(at(patch, state));
        Self { params, patch }
    }

    /// Applies fields to one state of an object, and to no other.
    pub(crate) fn apply(manager: &str, force: bool, fields: Value, state: &CachedObject) -> Self {
        let params = PatchParams {
            force,
            ..PatchParams::apply(manager)
        };
        let patch = Patch::Apply(at(fields, state));
        Self { params, patch }
    }
}

/// Names the state a patch is for. The version of another object of the same name differs too, where the uid would
/// not do: a real API server does not look at it in patches of the status of custom resources.
fn at(mut patch: Value, state: &CachedObject) -> Value {
    if !state.version().is_empty() {
        patch["metadata"]["resourceVersion"] = state.version().to_string().into();
    }
    patch
}

impl Wire {
    /// Makes a change of an object, or of one of its subresources, that is worked out from its state; `None` says that
    /// nothing has to be changed.
    ///
    /// When the state is not the newest, the newest is read and the change worked out again, a few times and at once.
    /// It is not made to an object of another uid.
    pub(crate) async fn change<E: From<ApiError>>(
        &self,
        subresource: Option<&str>,
        mut state: Arc<CachedObject>,
        mut work_out: impl FnMut(&Arc<CachedObject>) -> Result<Option<Attempt>, E>,
    ) -> Result<Changed, E> {
        let mut tries = 1;
        loop {
            let Some(Attempt { params, patch }) = work_out(&state)? else {
                return Ok(Changed::Unneeded(state));
            };
            let key = state.key();
            let error = match self.patch(key, subresource, &params, &patch).await {
                Ok(answer) if answer.uid() == state.uid() => return Ok(Changed::Made(answer)),
                // Only where states have no versions.
                Ok(_) => return Ok(Changed::Gone),
                Err(error) => error,
            };
            let moved_on = error.is_conflict() && !is_about_fields(&error);
            let missing = error.is_not_found() || is_gone(&error);
            let is_over = !missing && (!moved_on || tries >= self.tries);
            if is_over {
                return Err(error.into());
            }
            match self.get(key).await? {
                Some(now) if now.uid() != state.uid() => return Ok(Changed::Gone),
                None => return Ok(Changed::Gone),
                Some(_) if missing && subresource.is_some() => return Ok(Changed::NoSubresource),
                Some(_) if missing => return Err(error.into()),
                Some(now) => state = now,
            }
            tries += 1;
        }
    }
}

/// Returns whether fields conflict that others apply, rather than states.
fn is_about_fields(error: &ApiError) -> bool {
    let details = status_of(error).and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        let mut causes = details.causes.iter();
        causes.any(|cause| cause.reason == "FieldManagerConflict")
    })
}

fn is_gone(error: &ApiError) -> bool {
    status_of(error).is_some_and(|status| status.reason == "Gone")
}
