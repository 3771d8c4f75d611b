//! Changes that are based on the newest state of an object, and made again when that was not the newest.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use lariat_cache::CachedObject;
use lariat_core::ObjectKey;
use serde_json::Value;

use super::error::ApiError;
use super::managers::{CONFLICT, Managers};
use super::object::identity_of;
use super::wire::Wire;

/// One try of a change: what is sent for one state of the object.
pub(crate) struct Attempt {
    params: PatchParams,
    patch: Patch<Value>,
    /// As whom it is applied, if it is.
    managers: Option<Managers>,
    /// Whether fields are given up that are applied as the operator.
    migrates: bool,
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
        Self {
            params,
            patch: Patch::Merge(at(patch, state)),
            managers: None,
            migrates: false,
        }
    }

    /// Applies fields to one state of an object, and to no other. Fields that only the operator itself keeps it from
    /// are taken.
    pub(crate) fn apply(managers: &Managers, fields: Value, state: &CachedObject) -> Self {
        Self {
            params: PatchParams::apply(managers.own()),
            patch: Patch::Apply(at(fields, state)),
            managers: Some(managers.clone()),
            migrates: false,
        }
    }

    /// Takes fields from whoever manages them.
    pub(crate) fn by_force(mut self, force: bool) -> Self {
        self.params.force |= force;
        self
    }

    /// Gives up what was applied as the operator, if the answer shows that something was.
    pub(crate) fn migrating(self, migrates: bool) -> Self {
        Self { migrates, ..self }
    }

    fn may_take(&self, error: &ApiError) -> bool {
        let (Some(managers), Some(status)) = (&self.managers, error.status()) else {
            return false;
        };
        !self.params.force && managers.own_all(status)
    }

    /// Returns the managers of whom one gives up its fields.
    fn former(&self, answer: &str, subresource: Option<&str>) -> Option<&Managers> {
        let managers = self.managers.as_ref().filter(|_| self.migrates)?;
        managers
            .left_former(answer, subresource)
            .then_some(managers)
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
            let Some(attempt) = work_out(&state)? else {
                return Ok(Changed::Unneeded(state));
            };
            let key = state.key();
            let error = match self.attempt(key, subresource, attempt).await {
                Ok(answer) if answer.uid() == state.uid() => return Ok(Changed::Made(answer)),
                // Only where states have no versions.
                Ok(_) => return Ok(Changed::Gone),
                Err(error) => error,
            };
            let moved_on = error.is_conflict() && !is_about_fields(&error);
            // The object, its subresource or its kind: reading shows which.
            let missing = is_gone(&error);
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

    async fn attempt(
        &self,
        key: &ObjectKey,
        subresource: Option<&str>,
        mut attempt: Attempt,
    ) -> Result<Arc<CachedObject>, ApiError> {
        let sent = self.patch_text(key, subresource, &attempt.params, &attempt.patch);
        let answer = match sent.await {
            // Of the same state, which the patch names: no other manager has taken a field meanwhile.
            Err(error) if attempt.may_take(&error) => {
                attempt.params.force = true;
                let again = self.patch_text(key, subresource, &attempt.params, &attempt.patch);
                again.await?
            }
            sent => sent?,
        };
        let object = self.read("patch", key, &answer)?;
        match attempt.former(&answer, subresource) {
            Some(managers) => self.give_up(&object, subresource, managers).await,
            None => Ok(object),
        }
    }

    /// Applies nothing as the operator, whose fields are those of its reconcilers now. What none of them applies is
    /// removed by that.
    async fn give_up(
        &self,
        object: &CachedObject,
        subresource: Option<&str>,
        managers: &Managers,
    ) -> Result<Arc<CachedObject>, ApiError> {
        let key = object.key();
        let nothing = Patch::Apply(at(identity_of(self.gvk(), key), object));
        let params = PatchParams::apply(managers.operator());
        self.patch(key, subresource, &params, &nothing).await
    }
}

/// Returns whether fields conflict that others apply, rather than states.
fn is_about_fields(error: &ApiError) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        let mut causes = details.causes.iter();
        causes.any(|cause| cause.reason == CONFLICT)
    })
}

fn is_gone(error: &ApiError) -> bool {
    error
        .status()
        .is_some_and(|status| status.code == 404 || status.reason == "Gone")
}
