//! Changes computed from an object's newest state, and computed again if it was not the newest.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use lariat_cache::CachedObject;
use lariat_core::ObjectKey;
use serde_json::Value;

use super::error::ApiError;
use super::managers::{CONFLICT, Managers};
use super::object::identity_of;
use super::wire::Wire;

/// An attempt of a change: the request for one state of the object.
pub(crate) struct Attempt {
    params: PatchParams,
    patch: Patch<Value>,
    /// The field managers of an apply; none for a merge.
    managers: Option<Managers>,
    /// Whether fields that were applied as the operator are released.
    migrates: bool,
}

/// The result of a change.
pub(crate) enum Changed {
    /// It was made; this is the new state.
    Made(Arc<CachedObject>),
    /// Nothing had to be changed in this state.
    Unneeded(Arc<CachedObject>),
    /// The object does not exist, or another one has its name by now.
    Gone,
    /// The object exists, but its kind has no such subresource.
    NoSubresource,
}

impl Attempt {
    /// Merges a patch into one state of an object only.
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

    /// Applies fields to one state of an object only.
    ///
    /// Fields that conflict only with the operator itself are taken over.
    pub(crate) fn apply(managers: &Managers, fields: Value, state: &CachedObject) -> Self {
        Self {
            params: PatchParams::apply(managers.own()),
            patch: Patch::Apply(at(fields, state)),
            managers: Some(managers.clone()),
            migrates: false,
        }
    }

    /// Takes over fields that others manage.
    pub(crate) fn by_force(mut self, force: bool) -> Self {
        self.params.force |= force;
        self
    }

    /// Releases what was applied as the operator, if the answer shows that there is something.
    pub(crate) fn migrating(self, migrates: bool) -> Self {
        Self { migrates, ..self }
    }

    fn may_take(&self, error: &ApiError) -> bool {
        let (Some(managers), Some(status)) = (&self.managers, error.status()) else {
            return false;
        };
        !self.params.force && managers.own_all(status)
    }

    /// Returns the managers, if one of them has fields to release.
    fn former(&self, answer: &str, subresource: Option<&str>) -> Option<&Managers> {
        let managers = self.managers.as_ref().filter(|_| self.migrates)?;
        managers
            .left_former(answer, subresource)
            .then_some(managers)
    }
}

/// Makes a patch conditional on a state.
///
/// The condition is the resource version, which differs for another object of the same name too. The uid would not do:
/// API servers ignore it in patches of the status of custom resources.
fn at(mut patch: Value, state: &CachedObject) -> Value {
    if !state.version().is_empty() {
        patch["metadata"]["resourceVersion"] = state.version().to_string().into();
    }
    patch
}

impl Wire {
    /// Changes an object, or one of its subresources, as computed from its state.
    ///
    /// `None` means that nothing has to be changed. If the state is not the newest, the newest is read and the change
    /// is computed again, immediately and a few times. An object with another uid is not changed.
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
                // Only where objects have no resource version.
                Ok(_) => return Ok(Changed::Gone),
                Err(error) => error,
            };
            let moved_on = error.is_conflict() && !is_about_fields(&error);
            // The object, its subresource or its kind: a read shows which.
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
            // For the same state, which the patch names: no other manager has taken a field meanwhile.
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

    /// Applies an empty set of fields as the operator.
    ///
    /// This removes what was applied as the operator and none of its reconcilers applies now.
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

/// Returns whether the conflict is about fields that others manage, not about the resource version.
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
