//! The loop of a write: compute it from a state, send it for that state, and repeat it on conflicts.
//!
//! Finalizers and statuses are written in this way.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use lariat_cache::CachedObject;
use lariat_controller::unnoticed;
use lariat_core::ObjectKey;
use serde_json::Value;

use super::error::ApiError;
use super::managers::{CONFLICT, Managers};
use super::object::identity_of;
use super::wire::Wire;

/// One attempt of a change: the request for one state of the object.
pub(crate) struct Attempt {
    params: PatchParams,
    patch: Patch<Value>,
    /// The field managers of an apply; `None` for a merge.
    managers: Option<Managers>,
    /// Whether fields are released that were applied under the operator's name.
    migrates: bool,
    /// Whether the change does not call the reconciler again.
    is_unnoticed: bool,
}

/// The result of a change.
pub(crate) enum Changed {
    /// It was made; this is the new state.
    Made(Arc<CachedObject>),
    /// Nothing had to be changed in this state.
    Unneeded(Arc<CachedObject>),
    /// The object does not exist, or another one has its name now.
    Gone,
    /// The object exists, but its kind has no such subresource.
    NoSubresource,
}

impl Attempt {
    /// Merges a patch into one state of an object.
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
            is_unnoticed: false,
        }
    }

    /// Applies fields to one state of an object.
    ///
    /// Fields that conflict with the operator's own merges only are taken over.
    pub(crate) fn apply(managers: &Managers, fields: Value, state: &CachedObject) -> Self {
        Self {
            params: PatchParams::apply(managers.own()),
            patch: Patch::Apply(at(fields, state)),
            managers: Some(managers.clone()),
            migrates: false,
            is_unnoticed: false,
        }
    }

    /// Sets whether the change does not call the reconciler again.
    pub(crate) fn unnoticed(self, is_unnoticed: bool) -> Self {
        Self {
            is_unnoticed,
            ..self
        }
    }

    /// Sets whether fields that others manage are taken over.
    pub(crate) fn by_force(mut self, force: bool) -> Self {
        self.params.force |= force;
        self
    }

    /// Sets whether fields that were applied under the operator's name are released.
    pub(crate) fn migrating(self, migrates: bool) -> Self {
        Self { migrates, ..self }
    }

    /// Returns whether all conflicts of a refused apply are with the operator itself.
    fn may_take(&self, error: &ApiError) -> bool {
        let (Some(managers), Some(status)) = (&self.managers, error.status()) else {
            return false;
        };
        !self.params.force && managers.own_all(status)
    }

    /// Returns the former managers whose fields are to be released.
    fn former(&self, answer: &str, subresource: Option<&str>) -> Vec<&str> {
        let managers = self.managers.iter().filter(|_| self.migrates);
        managers
            .flat_map(|managers| managers.left_former(answer, subresource))
            .collect()
    }
}

/// Makes a patch conditional on a state, by its resource version.
///
/// The resource version also differs for another object of the same name. The uid would not be enough: API servers
/// ignore it in patches of the status of custom resources.
fn at(mut patch: Value, state: &CachedObject) -> Value {
    if !state.version().is_empty() {
        patch["metadata"]["resourceVersion"] = state.version().to_string().into();
    }
    patch
}

impl Wire {
    /// Changes an object, or one of its subresources, as computed from its state.
    ///
    /// `compute` returns `None` if nothing has to be changed. If the state is not the newest, the newest is read and
    /// the change is computed again, immediately and a few times. An object with another uid is not changed.
    pub(crate) async fn change<E: From<ApiError>>(
        &self,
        subresource: Option<&str>,
        mut state: Arc<CachedObject>,
        mut compute: impl FnMut(&Arc<CachedObject>) -> Result<Option<Attempt>, E>,
    ) -> Result<Changed, E> {
        let mut tries = 1;
        loop {
            let Some(attempt) = compute(&state)? else {
                return Ok(Changed::Unneeded(state));
            };
            let key = state.key();
            let is_unnoticed = attempt.is_unnoticed;
            let sent = self.attempt(key, subresource, attempt);
            let answer = if is_unnoticed {
                unnoticed(state.version(), sent).await
            } else {
                sent.await
            };
            let error = match answer {
                Ok(answer) if answer.uid() == state.uid() => return Ok(Changed::Made(answer)),
                // Possible only where objects have no resource version, so that the patch is unconditional.
                Ok(_) => return Ok(Changed::Gone),
                Err(error) => error,
            };
            let moved_on = error.is_conflict() && !is_about_fields(&error);
            // 404 may mean that the object, its subresource or its kind does not exist. The read below tells them
            // apart.
            let missing = is_gone(&error);
            // A conflict about fields does not go away with a newer state, so it is returned at once.
            let is_over = !missing && (!moved_on || tries >= self.tries);
            if is_over {
                return Err(error.into());
            }
            // From the API server: the cache may still have the state that was refused.
            match self.get(key).await? {
                Some(now) if now.uid() != state.uid() => return Ok(Changed::Gone),
                None => return Ok(Changed::Gone),
                // The object exists, so it is the subresource that does not.
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
            // The forced apply is for the same state, which the patch names. So it takes over exactly the fields that
            // were in conflict, and none that another manager has taken meanwhile.
            Err(error) if attempt.may_take(&error) => {
                attempt.params.force = true;
                let again = self.patch_text(key, subresource, &attempt.params, &attempt.patch);
                again.await?
            }
            sent => sent?,
        };
        let mut object = self.read("patch", key, &answer)?;
        for manager in attempt.former(&answer, subresource) {
            object = self.give_up(&object, subresource, manager).await?;
        }
        Ok(object)
    }

    /// Applies an empty set of fields under a former name.
    ///
    /// This removes the fields that were applied under that name, and that no reconciler applies now.
    async fn give_up(
        &self,
        object: &CachedObject,
        subresource: Option<&str>,
        manager: &str,
    ) -> Result<Arc<CachedObject>, ApiError> {
        let key = object.key();
        let nothing = Patch::Apply(at(identity_of(self.gvk(), key), object));
        let params = PatchParams::apply(manager);
        self.patch(key, subresource, &params, &nothing).await
    }
}

/// Returns whether a conflict is about fields, not about the resource version.
///
/// A retry resolves the latter only.
fn is_about_fields(error: &ApiError) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        let mut causes = details.causes.iter();
        causes.any(|cause| cause.reason == CONFLICT)
    })
}

/// Returns whether the object, its subresource or its kind does not exist.
fn is_gone(error: &ApiError) -> bool {
    error
        .status()
        .is_some_and(|status| status.code == 404 || status.reason == "Gone")
}
