//! The ways to write a status.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, View};
use lariat_core::without_values;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::condition::ConditionUpdate;
use super::diff::{contains, merge_patch, without_nulls};
use super::error::StatusError;
use super::listed;
use crate::clock;
use crate::reconciler::Reconcile;
use crate::wire::{self, Attempt, Changed, Wire, json_of};

/// Writes the status of the object a reconcile is about; [`Reconcile::status`] begins it.
///
/// By default a merge patch has only what differs from the newest state that is known, and when nothing does, nothing
/// is sent. The state is named in the request: when it is not the newest after all, the newest is read and the
/// difference worked out again, a few times. So a status is never written to another object of the same name, and
/// what others write into other fields meanwhile is not lost.
///
/// Where a [`Transform`](lariat_cache::Transform) leaves some of the status out of the cache, what there is to be
/// changed is judged by what is left, and worked out from what the API server has, which takes a request. A field that
/// is not given and that the cache does not show is removed with the next change of another.
///
/// What was written is the base of the next write in the same reconcile; [`Reconcile::newest`] returns it, while
/// [`Reconcile::object`] stays as it is.
#[must_use = "nothing is written until `set` or `update` is called"]
pub struct StatusWriter<K> {
    cx: Reconcile<K>,
    way: Way,
    unchanged_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Merge,
    Apply { force: bool },
}

impl<K: View> StatusWriter<K> {
    pub(super) fn new(cx: &Reconcile<K>) -> Self {
        Self {
            cx: cx.clone(),
            way: Way::Merge,
            unchanged_only: false,
        }
    }

    /// Writes by server-side apply, as the operator's name: fields that are given are owned by it, fields it applied
    /// earlier and that are not given any more are removed, and those of others are left alone.
    ///
    /// Nothing is sent if this process applied the same fields last and all of them are there with their values. So the
    /// first write of a process is always sent, and so is one to a list that others add to. Write a status in one way
    /// only: to apply, fields that were merged under the same name belong to somebody else.
    pub fn by_apply(self) -> Self {
        let way = Way::Apply { force: false };
        Self { way, ..self }
    }

    /// Writes by server-side apply as [`by_apply`](Self::by_apply), and takes fields from others that apply them.
    pub fn by_force(self) -> Self {
        let way = Way::Apply { force: true };
        Self { way, ..self }
    }

    /// Writes only to the state this reconcile has seen, and fails with a [conflict](StatusError::is_conflict) when the
    /// object has changed since; for what must not be said of another state.
    pub fn unchanged_only(self) -> Self {
        Self {
            unchanged_only: true,
            ..self
        }
    }

    /// Makes the status what is given, and returns whether anything was written.
    ///
    /// Fields that are there and are not given are removed, and lists are replaced as a whole; members that are null
    /// count as not given. The condition in which [errors are reported](crate::Reconciler::report_errors) stays, unless
    /// one of its type is given. Where several write one status, [`update`](Self::update) it, or [apply](Self::by_apply) it.
    ///
    /// # Errors
    ///
    /// The object is gone ([`StatusError::is_not_found`]; a handler that passes this on is not called again for it).
    /// Its kind has no status subresource. It changes faster than it can be written ([`StatusError::is_conflict`]),
    /// or the API server refuses. What is given is not a JSON object.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written or not.
    pub async fn set<S: Serialize + Sync>(self, status: &S) -> Result<bool, StatusError> {
        let wanted = self.encode(status)?;
        let mut decided = Vec::new();
        let written = match self.way {
            Way::Merge => {
                let reported = self.cx.own().lock().reported.clone();
                let work_out = |now: &Value| {
                    decided = listed::decided(now, &wanted);
                    Ok(match &reported {
                        Some(kind) => merge_patch(now, &listed::with_reported(now, &wanted, kind)),
                        None => merge_patch(now, &wanted),
                    })
                };
                self.merge(work_out).await?
            }
            Way::Apply { force } => {
                decided = listed::decided(&Value::Null, &wanted);
                self.apply(&wanted, force).await?
            }
        };
        self.cx.own().lock().conditions.extend(decided);
        Ok(written)
    }

    /// Changes the status by a function, which is called with the newest one, and returns whether anything was written.
    ///
    /// Only what the function changes is written; fields `S` does not know stay. It is called again if the status turns
    /// out to be another one by now. An object without a status has the default one. It is always merged.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set), and if the status is not an `S`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written or not.
    pub async fn update<S>(self, mut change: impl FnMut(&mut S) + Send) -> Result<bool, StatusError>
    where
        S: Serialize + DeserializeOwned + Default + Send,
    {
        let mut decided = Vec::new();
        let written = self.merge(|now| {
            let mut status: S = match now.as_object().is_none_or(serde_json::Map::is_empty) {
                true => S::default(),
                false => S::deserialize(now).map_err(|error| self.unfit(&error))?,
            };
            let before = match now.as_object().is_none_or(serde_json::Map::is_empty) {
                true => json!({}),
                false => self.encode(&status)?,
            };
            change(&mut status);
            let after = self.encode(&status)?;
            decided = listed::decided(&before, &after);
            Ok(merge_patch(&before, &after))
        });
        let written = written.await?;
        self.cx.own().lock().conditions.extend(decided);
        Ok(written)
    }

    /// Sets a condition, if that is worth a write when it differs from what is there.
    pub(super) async fn condition(
        self,
        update: &ConditionUpdate,
        worth: impl Fn(Option<&Value>) -> bool + Send + Sync,
    ) -> Result<bool, StatusError> {
        let observed = update.observed.or(self.cx.raw().generation());
        let update = update.clone().observed(observed);
        let now = clock::now();
        self.merge(|status| {
            let patch = listed::set(status, &update, now);
            let patch = patch.map_err(|detail| self.says(detail))?;
            Ok(patch.filter(|_| worth(listed::find(status, update.kind()))))
        })
        .await
    }

    /// Merges a patch that is worked out from the status.
    async fn merge(
        &self,
        mut work_out: impl FnMut(&Value) -> Result<Option<Value>, StatusError> + Send,
    ) -> Result<bool, StatusError> {
        let manager = &self.cx.shared().name;
        self.change(|state| {
            let patch = work_out(&status_of(state))?;
            Ok(patch.map(|patch| Attempt::merge(manager, json!({"status": patch}), state)))
        })
        .await
    }

    async fn apply(&self, wanted: &Value, force: bool) -> Result<bool, StatusError> {
        let shared = self.cx.shared();
        let (gvk, key) = (self.cx.gvk(), self.cx.key());
        let mut fields = json!({
            "apiVersion": gvk.api_version(),
            "kind": gvk.kind(),
            "metadata": {"name": key.name()},
        });
        // Who applies an empty status owns the status as a whole, and conflicts with everybody who applies a field.
        if *wanted != json!({}) {
            fields["status"] = wanted.clone();
        }
        if let Some(namespace) = key.namespace() {
            fields["metadata"]["namespace"] = namespace.into();
        }
        let written = self.change(|state| {
            let is_there = contains(&status_of(state), wanted);
            if is_there && shared.applied.is_last(state.uid(), wanted) {
                return Ok(None);
            }
            Ok(Some(Attempt::apply(
                &shared.name,
                force,
                fields.clone(),
                state,
            )))
        });
        let written = written.await?;
        shared.applied.remember(self.cx.raw().uid(), wanted);
        Ok(written)
    }

    /// Makes a change of the status, and keeps what it led to.
    async fn change(
        &self,
        mut work_out: impl FnMut(&Arc<CachedObject>) -> Result<Option<Attempt>, StatusError> + Send,
    ) -> Result<bool, StatusError> {
        let cx = &self.cx;
        let mut wire = Wire::of(cx).await?;
        let mut state = cx.newest();
        if self.unchanged_only {
            wire = wire.once();
            state = Arc::clone(&cx.own().lock().newest);
        }
        let gone = || StatusError::gone(cx.gvk(), cx.key());
        let is_shown = wire::is_shown(&cx.shared().caches, cx.gvk(), "/status");
        // What is left of the status may be no status of the type's, which says nothing of the whole one.
        if !state.has_content() || !is_shown && !matches!(work_out(&state), Ok(None)) {
            let seen = Arc::clone(&state);
            let read = wire.get(cx.key()).await?;
            state = read
                .filter(|read| read.uid() == seen.uid())
                .ok_or_else(gone)?;
            if self.unchanged_only && state.version() != seen.version() {
                return Err(StatusError::changed(cx.gvk(), cx.key()));
            }
        }
        let (state, written) = match wire.change(Some("status"), state, work_out).await? {
            Changed::Made(state) => (state, true),
            Changed::Unneeded(state) => (state, false),
            Changed::Gone => return Err(gone()),
            Changed::NoSubresource => {
                return Err(StatusError::NoSubresource {
                    gvk: cx.gvk().clone(),
                    key: cx.key().clone(),
                });
            }
        };
        cx.own().lock().newest = state;
        Ok(written)
    }

    fn encode<S: Serialize>(&self, status: &S) -> Result<Value, StatusError> {
        match serde_json::to_value(status) {
            Ok(Value::Null) => Ok(json!({})),
            Ok(status @ Value::Object(_)) => Ok(without_nulls(status)),
            Ok(_) => Err(self.says("it is not a JSON object".to_owned())),
            Err(error) => Err(self.unfit(&error)),
        }
    }

    fn unfit(&self, error: &serde_json::Error) -> StatusError {
        self.says(without_values(&error.to_string()))
    }

    fn says(&self, detail: String) -> StatusError {
        StatusError::Unfit {
            gvk: self.cx.gvk().clone(),
            key: self.cx.key().clone(),
            detail,
        }
    }
}

/// Returns the status of an object, which is empty if it has none.
fn status_of(state: &CachedObject) -> Value {
    match json_of(state)["status"].take() {
        Value::Null => json!({}),
        status => without_nulls(status),
    }
}

impl<K> fmt::Debug for StatusWriter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusWriter")
            .field("way", &self.way)
            .field("unchanged_only", &self.unchanged_only)
            .finish_non_exhaustive()
    }
}
