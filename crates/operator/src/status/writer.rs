//! The writer of a status.
//!
//! A write is computed from the newest known state, and is valid for that state only. If the object has changed, the
//! newest state is read and the write is computed again. All ways of writing go through `StatusWriter::change`, which
//! decides from which state the write starts.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, View};
use lariat_core::without_values;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::applied::{Applied, status_of};
use super::condition::ConditionUpdate;
use super::decisions::{Decisions, PendingCondition};
use super::diff::{changed, merge_patch, without_nulls};
use super::error::StatusError;
use super::listed::{self, Reported, Settled};
use crate::clock;
use crate::names::NOTES;
use crate::reconcile::Reconcile;
use crate::wire::{Attempt, Changed, Managers, identity_of, is_shown, json_of};

/// Writes the status of the object of a call.
///
/// Created by [`Reconcile::status`].
///
/// **Merge.** By default it sends a merge patch with the difference to the newest known state, and no request if there
/// is none. The patch is conditional on the resource version of that state. If the object has changed, the newest state
/// is read and the difference is computed again, a few times. So a status is never written to another object of the
/// same name, and concurrent writes of other fields are not lost. [`by_apply`](Self::by_apply) uses server-side apply
/// instead.
///
/// **Partial caches.** If a [`Transform`](lariat_cache::Transform) removes parts of the status from the cache, the
/// decision whether to merge is made on the rest. The difference is then computed from the API server's state, which
/// takes a request, as does each apply after a change of the object. A field that is neither given nor in the cache is
/// removed with the next change of another field.
///
/// **Several writes.** The written state is the base of the next write of the same call. [`Reconcile::newest`] returns
/// it, while [`Reconcile::object`] does not change.
///
/// ```
/// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
/// use lariat::{HandlerResult, Outcome, Reconcile};
///
/// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
///     let status = DeploymentStatus { replicas: Some(3), ..DeploymentStatus::default() };
///     cx.status().by_apply().set(&status).await?;
///     Ok(Outcome::done())
/// }
/// ```
#[must_use = "nothing is written until `set` or `update` is called"]
pub struct StatusWriter<K> {
    cx: Reconcile<K>,
    way: Way,
    unchanged_only: bool,
    /// Whether the write does not call the reconciler again.
    is_unnoticed: bool,
}

/// The kind of request.
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
            is_unnoticed: false,
        }
    }

    /// Writes without calling the reconciler again, unless the object has changed otherwise too.
    pub(super) fn unnoticed(self) -> Self {
        Self {
            is_unnoticed: true,
            ..self
        }
    }

    /// Writes by server-side apply, with a field manager for the reconciler alone.
    ///
    /// The reconciler owns the given fields. Fields that it applied earlier and does not give any more are removed.
    /// Fields of others are kept.
    ///
    /// **Field manager.** It is `operator/reconciler`; a hash replaces what does not fit into 128 bytes. Fields that
    /// the operator owns by its merges are taken over: the defaults that a CRD has for the status belong to their first
    /// writer, which may be [a condition that reports errors](crate::Reconciler::report_errors). A field of another
    /// reconciler or program is a [conflict](StatusError::is_conflict). Fields that an earlier release applied under
    /// the operator's name alone are released when the reconciler first applies.
    ///
    /// **Requests.** No request is sent if the last apply of this process had the same fields, and the status has not
    /// changed since. So the first apply of a process is always sent, and one after each change of the status by
    /// others: another replica may have applied more under the same field manager. Two processes that apply different
    /// fields under one name at the same time undo each other; use a lease.
    ///
    /// Write a field in one way only: a field that was merged is not removed when it is no longer applied.
    pub fn by_apply(self) -> Self {
        let way = Way::Apply { force: false };
        Self { way, ..self }
    }

    /// Writes by server-side apply, and takes over fields that others manage.
    ///
    /// Otherwise like [`by_apply`](Self::by_apply).
    pub fn by_force(self) -> Self {
        let way = Way::Apply { force: true };
        Self { way, ..self }
    }

    /// Writes only if the object has not changed since the call began.
    ///
    /// Otherwise the write fails with a [conflict](StatusError::is_conflict). Use it for a status that is true for this
    /// state only.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
    /// use lariat::{HandlerResult, Outcome, Reconcile};
    ///
    /// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
    ///     let status = DeploymentStatus { replicas: Some(3), ..DeploymentStatus::default() };
    ///     cx.status().unchanged_only().set(&status).await?;
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = reconcile;
    /// ```
    pub fn unchanged_only(self) -> Self {
        Self {
            unchanged_only: true,
            ..self
        }
    }

    /// Sets the status; returns whether a request was sent.
    ///
    /// Fields that are not given are removed, and lists are replaced as a whole; members that are null count as not
    /// given. The conditions in which reconcilers of the operator [report errors](crate::Reconciler::report_errors) are
    /// kept, unless a condition of their type is given. A failure that this reconciler has reported stays until a call
    /// succeeds. If a status has several writers, use [`update`](Self::update) or [`by_apply`](Self::by_apply).
    ///
    /// # Errors
    ///
    /// The object does not exist ([`StatusError::is_not_found`]; returned from a handler, this error is not retried),
    /// its kind has no status subresource, it changes faster than it can be written ([`StatusError::is_conflict`]), a
    /// request failed, or the given value is not a JSON object.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written.
    pub async fn set<S: Serialize + Sync>(self, status: &S) -> Result<bool, StatusError> {
        let wanted = self.encode(status)?;
        let reported = self.reported();
        let mut conditions = SetConditions::default();
        let written = match self.way {
            Way::Merge => {
                let compute = |now: &Value| {
                    let settled = conditions.note(now, reported.settle(now, wanted.clone()));
                    Ok(merge_patch(now, &settled))
                };
                self.merge(compute).await?
            }
            Way::Apply { force } => {
                let settle = |now: &Value| {
                    // An apply leaves alone what it does not give, including the whole list of conditions.
                    let settled = match wanted.get("conditions") {
                        Some(_) => reported.settle(now, wanted.clone()),
                        None => Settled::from(wanted.clone()),
                    };
                    conditions.note(now, settled)
                };
                self.apply(&wanted, force, settle).await?
            }
        };
        self.keep(conditions);
        Ok(written)
    }

    /// Changes the newest status by a function; returns whether a request was sent.
    ///
    /// Only the changes of the function are written. Fields that `S` does not know are kept, also in elements of lists:
    /// a changed element is matched by its `type`, as in conditions, or by its `name`. If the status has changed
    /// meanwhile, the function is called again with the newest. An object without a status has the default one. The
    /// write is always a merge. A failure that the reconciler has [reported](crate::Reconciler::report_errors) stays
    /// until a call succeeds.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set), and if the status does not decode as `S`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written.
    pub async fn update<S>(self, mut change: impl FnMut(&mut S) + Send) -> Result<bool, StatusError>
    where
        S: Serialize + DeserializeOwned + Default + Send,
    {
        // Conditions of other reconcilers are part of the status that the function has seen, so it decides about them.
        let reported = Reported {
            others: Vec::new(),
            ..self.reported()
        };
        let mut conditions = SetConditions::default();
        let written = self
            .merge(|now| {
                // `S` may have required fields, so an empty object need not decode as it. The default stands in.
                let is_empty = now.as_object().is_none_or(serde_json::Map::is_empty);
                let (mut status, before) = if is_empty {
                    (S::default(), json!({}))
                } else {
                    let status = S::deserialize(now).map_err(|error| self.unfit(&error))?;
                    let before = self.encode(&status)?;
                    (status, before)
                };
                change(&mut status);
                let after = changed(now, &before, &self.encode(&status)?);
                let settled = conditions.note(now, reported.settle(now, after));
                Ok(merge_patch(now, &settled))
            })
            .await?;
        self.keep(conditions);
        Ok(written)
    }

    /// Sets a condition if it differs, and the difference is worth a write.
    pub(super) async fn condition(
        self,
        update: &ConditionUpdate,
        worth: impl Fn(Option<&Value>) -> bool + Send + Sync,
    ) -> Result<bool, StatusError> {
        let update = self.observed(update);
        let now = clock::now();
        let manager = &self.cx.operator().name;
        self.change(|state| {
            let status = status_of(state);
            let was = listed::find(&status, update.kind());
            // Another replica may have observed a newer generation in the newest state. This call does not know that
            // generation, and must not overwrite the result for it.
            if was.is_some_and(|was| listed::is_newer(was, &update, state.generation())) {
                return Ok(None);
            }
            let patch = listed::set(&status, &update, now)
                .map_err(|detail| self.unfit_because(detail))?
                .filter(|_| worth(was));
            Ok(patch.map(|patch| self.merged(manager, &patch, state)))
        })
        .await
    }

    fn merged(&self, manager: &str, patch: &Value, state: &CachedObject) -> Attempt {
        let attempt = Attempt::merge(manager, json!({"status": patch}), state);
        attempt.unnoticed(self.is_unnoticed)
    }

    /// Keeps the condition that reports errors until the end of the call.
    ///
    /// Returns whether it differs from the present one.
    pub(super) fn keep_until_end(self, update: &ConditionUpdate) -> Result<bool, StatusError> {
        let update = self.observed(update);
        let status = status_of(&self.cx.newest());
        let patch = listed::set(&status, &update, clock::now())
            .map_err(|detail| self.unfit_because(detail))?;
        // The last value of a call wins, and only the end of the call writes it.
        let of_call = Decisions::of(&self.cx);
        let mut decisions = of_call.lock();
        decisions.decide(update.kind());
        decisions.pending = Some(PendingCondition::Update(update));
        Ok(patch.is_some())
    }

    /// Writes the condition that was kept until the end of the call.
    pub(super) async fn settle(self, pending: &PendingCondition) -> Result<bool, StatusError> {
        match pending {
            PendingCondition::Update(update) => self.condition(update, |_| true).await,
            PendingCondition::Whole(condition) => {
                let place = |status: &Value| {
                    let patch = listed::place(status, condition);
                    patch.map_err(|detail| self.unfit_because(detail))
                };
                self.merge(place).await
            }
        }
    }

    fn observed(&self, update: &ConditionUpdate) -> ConditionUpdate {
        // The generation of the call's object, not of the newest state: the call has acted on the former.
        let observed = update.observed.or(self.cx.raw().generation());
        update.clone().observed(observed)
    }

    /// Returns the conditions in which the reconcilers of the kind report errors.
    fn reported(&self) -> Reported {
        let own = self.cx.call().reported().cloned();
        let mut others = self.cx.operator().claimed.conditions(self.cx.gvk());
        others.retain(|kind| own.as_ref() != Some(kind));
        Reported { own, others }
    }

    /// Records the conditions of a completed write.
    fn keep(&self, conditions: SetConditions) {
        let reported = self.cx.call().reported();
        let is_decided = |kind: &Arc<str>| conditions.decided.iter().any(|each| **each == **kind);
        let of_call = Decisions::of(&self.cx);
        let mut decisions = of_call.lock();
        match conditions.pending {
            Some(pending) => decisions.pending = Some(PendingCondition::Whole(pending)),
            // The condition was written just now, in place of the kept value.
            None if reported.is_some_and(is_decided) => decisions.pending = None,
            None => {}
        }
        for kind in conditions.decided {
            decisions.decide(kind);
        }
    }

    /// Merges a patch that is computed from the status.
    async fn merge(
        &self,
        mut compute: impl FnMut(&Value) -> Result<Option<Value>, StatusError> + Send,
    ) -> Result<bool, StatusError> {
        let manager = &self.cx.operator().name;
        self.change(|state| {
            let patch = compute(&status_of(state))?;
            Ok(patch.map(|patch| self.merged(manager, &patch, state)))
        })
        .await
    }

    /// Applies fields that are computed from the status.
    async fn apply(
        &self,
        wanted: &Value,
        force: bool,
        mut settle: impl FnMut(&Value) -> Value + Send,
    ) -> Result<bool, StatusError> {
        let (operator, handler) = (self.cx.operator(), self.cx.handler());
        let former = self.cx.call().former().iter().map(|name| &**name);
        let reconcilers: Vec<&str> = std::iter::once(handler).chain(former).collect();
        let managers =
            Managers::new(&operator.name, handler).renamed_from(&operator.former(), &reconcilers);
        let applied = operator.feature::<Applied>();
        let uid = self.cx.raw().uid();
        // The first apply of a process also releases fields that an earlier release applied under another field
        // manager.
        let is_first = !applied.has(uid, handler);
        let is_whole = is_shown(&operator.caches, self.cx.gvk(), "/status");
        let written = self
            .change(|state| {
                let now = status_of(state);
                let status = settle(&now);
                if applied.is_last(state, handler, wanted, is_whole) {
                    return Ok(None);
                }
                let mut fields = identity_of(self.cx.gvk(), self.cx.key());
                // Applying `status: {}` would own the status as a whole, and conflict with every apply of a field in
                // it.
                if status != json!({}) {
                    fields["status"] = status;
                }
                let attempt = Attempt::apply(&managers, fields, state);
                Ok(Some(attempt.by_force(force).migrating(is_first)))
            })
            .await?;
        // The state that was judged or answered, and not what a cache has by now.
        applied.remember(&self.cx.call().newest(), handler, wanted);
        Ok(written)
    }

    /// Makes a change of the status, and records the new state for the call.
    async fn change(
        &self,
        compute: impl FnMut(&Arc<CachedObject>) -> Result<Option<Attempt>, StatusError> + Send,
    ) -> Result<bool, StatusError> {
        let changed = self.try_change(compute).await;
        changed.map_err(|error| error.with_advice(self.cx.gvk(), self.cx.key()))
    }

    async fn try_change(
        &self,
        mut compute: impl FnMut(&Arc<CachedObject>) -> Result<Option<Attempt>, StatusError> + Send,
    ) -> Result<bool, StatusError> {
        let cx = &self.cx;
        let mut wire = cx.wire().await?;
        let mut state = cx.newest();
        if self.unchanged_only {
            // One attempt only: a second one would be for a newer state.
            wire = wire.once();
            // An annotation that the operator itself has written since is no change. The newest state is used then, for
            // its resource version.
            let seen = cx.call().newest();
            if !is_as_seen(&seen, &state) {
                state = seen;
            }
        }
        // Checked by uid: a status must not be written to another object that has the name now.
        let gone = || StatusError::gone(cx.gvk(), cx.key());
        let is_shown = is_shown(&cx.operator().caches, cx.gvk(), "/status");
        // The cached part of the status may not decode as the type. An error of that part says nothing about the whole,
        // so the whole is read.
        if !state.has_content() || !is_shown && !matches!(compute(&state), Ok(None)) {
            let seen = Arc::clone(&state);
            let read = wire.get(cx.key()).await?;
            state = read
                .filter(|read| read.uid() == seen.uid())
                .ok_or_else(gone)?;
            if self.unchanged_only && !is_as_seen(&seen, &state) {
                return Err(StatusError::changed(cx.gvk(), cx.key()));
            }
        }
        let (state, written) = match wire.change(Some("status"), state, compute).await? {
            Changed::Made(state) => (state, true),
            Changed::Unneeded(state) => (state, false),
            Changed::Gone => return Err(gone()),
            Changed::NoSubresource => {
                return Err(StatusError::no_subresource(cx.gvk(), cx.key()));
            }
        };
        cx.call().saw(state);
        Ok(written)
    }

    fn encode<S: Serialize>(&self, status: &S) -> Result<Value, StatusError> {
        match serde_json::to_value(status) {
            Ok(Value::Null) => Ok(json!({})),
            Ok(status @ Value::Object(_)) => Ok(without_nulls(status)),
            Ok(_) => Err(self.unfit_because("it is not a JSON object".to_owned())),
            Err(error) => Err(self.unfit(&error)),
        }
    }

    fn unfit(&self, error: &serde_json::Error) -> StatusError {
        self.unfit_because(without_values(&error.to_string()))
    }

    fn unfit_because(&self, detail: String) -> StatusError {
        StatusError::Unfit {
            gvk: self.cx.gvk().clone(),
            key: self.cx.key().clone(),
            detail,
        }
    }
}

/// The conditions that a write sets.
#[derive(Default)]
struct SetConditions {
    /// The types of the conditions that were set.
    decided: Vec<String>,
    pending: Option<Value>,
}

impl SetConditions {
    /// Records the conditions of the last attempt, and returns the status to write.
    fn note(&mut self, now: &Value, settled: Settled) -> Value {
        self.decided = listed::decided(now, &settled.status);
        let pending = settled
            .pending
            .as_ref()
            .and_then(|pending| pending["type"].as_str());
        self.decided.extend(pending.map(str::to_owned));
        self.pending = settled.pending;
        settled.status
    }
}

/// Returns whether a state is the one that was seen.
///
/// Annotations that the operator itself records on its objects do not count.
fn is_as_seen(seen: &CachedObject, state: &CachedObject) -> bool {
    if seen.version() == state.version() {
        return true;
    }
    let both = seen.has_content() && state.has_content();
    both && without_notes(json_of(seen)) == without_notes(json_of(state))
}

fn without_notes(mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    metadata["resourceVersion"] = Value::Null;
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|name, _| !name.starts_with(NOTES));
        if annotations.is_empty() {
            metadata["annotations"] = Value::Null;
        }
    }
    without_nulls(object)
}

impl<K> fmt::Debug for StatusWriter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusWriter")
            .field("way", &self.way)
            .field("unchanged_only", &self.unchanged_only)
            .finish_non_exhaustive()
    }
}
