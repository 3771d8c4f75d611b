//! The ways to write a status.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, View};
use lariat_core::without_values;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::applied::Applied;
use super::condition::ConditionUpdate;
use super::decisions::{Decisions, Held};
use super::diff::{changed, contains, merge_patch, without_nulls};
use super::error::StatusError;
use super::listed::{self, Reported, Settled};
use crate::clock;
use crate::names::NOTES;
use crate::reconcile::Reconcile;
use crate::wire::{Attempt, Changed, Managers, identity_of, is_shown, json_of};

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

    /// Writes by server-side apply, under a field manager of the reconciler's own: fields that are given are owned by
    /// it, fields it applied earlier and that are not given any more are removed, and those of others are left alone.
    ///
    /// The field manager is `operator/reconciler`, with a hash in place of what does not fit into 128 bytes. Fields
    /// that the operator owns by its merges are taken: the defaults that a CRD has for the status belong to
    /// whoever writes it first, which may be [a condition that reports errors](crate::Reconciler::report_errors). A
    /// field that another reconciler applies, or another program manages, is a [conflict](StatusError::is_conflict).
    /// What an earlier release applied under the operator's name alone is given up when the reconciler first applies.
    ///
    /// Nothing is sent if this process applied the same fields last and all of them are there with their values. So the
    /// first write of a process is always sent, and so is one to a list that others add to. Write a field in one way
    /// only: one that was merged is not removed when it is not applied any more.
    pub fn by_apply(self) -> Self {
        let way = Way::Apply { force: false };
        Self { way, ..self }
    }

    /// Writes by server-side apply as [`by_apply`](Self::by_apply), and takes fields from others that manage them.
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
    /// count as not given. The conditions in which reconcilers of the operator
    /// [report errors](crate::Reconciler::report_errors) stay, unless one of their type is given; a failure that this
    /// one reports stays until a call ends well. Where several write one status, [`update`](Self::update) it, or
    /// [apply](Self::by_apply) it.
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
        let reported = self.reported();
        let mut said = Sayings::default();
        let written = match self.way {
            Way::Merge => {
                let work_out = |now: &Value| {
                    let settled = said.note(now, reported.settle(now, wanted.clone()));
                    Ok(merge_patch(now, &settled))
                };
                self.merge(work_out).await?
            }
            Way::Apply { force } => {
                let settle = |now: &Value| {
                    // An apply leaves alone what it does not give, the list of conditions too.
                    let settled = match wanted.get("conditions") {
                        Some(_) => reported.settle(now, wanted.clone()),
                        None => Settled::from(wanted.clone()),
                    };
                    said.note(now, settled)
                };
                self.apply(&wanted, force, settle).await?
            }
        };
        self.keep(said);
        Ok(written)
    }

    /// Changes the status by a function, which is called with the newest one, and returns whether anything was written.
    ///
    /// Only what the function changes is written; fields `S` does not know stay, in elements of lists too: an element
    /// that is changed is found again by its `type`, as in conditions, or its `name`. It is called again if the status
    /// turns out to be another one by now. An object without a status has the default one. It is always merged. A
    /// failure that the reconciler [reports](crate::Reconciler::report_errors) stays until a call ends well.
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
        let reported = Reported {
            others: Vec::new(),
            ..self.reported()
        };
        let mut said = Sayings::default();
        let written = self
            .merge(|now| {
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
                let settled = said.note(now, reported.settle(now, after));
                Ok(merge_patch(now, &settled))
            })
            .await?;
        self.keep(said);
        Ok(written)
    }

    /// Sets a condition, if that is worth a write when it differs from what is there.
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
            // The newest state may say what another replica observed of a newer spec, which this call does not know.
            if was.is_some_and(|was| listed::is_newer(was, &update, state.generation())) {
                return Ok(None);
            }
            let patch = listed::set(&status, &update, now)
                .map_err(|detail| self.says(detail))?
                .filter(|_| worth(was));
            Ok(patch.map(|patch| Attempt::merge(manager, json!({"status": patch}), state)))
        })
        .await
    }

    /// Keeps the condition in which errors are reported until it is known how the call ends, and returns whether it
    /// differs from what is there.
    pub(super) fn hold(self, update: &ConditionUpdate) -> Result<bool, StatusError> {
        let update = self.observed(update);
        let status = status_of(&self.cx.newest());
        let patch =
            listed::set(&status, &update, clock::now()).map_err(|detail| self.says(detail))?;
        let of_call = Decisions::of(&self.cx);
        let mut decisions = of_call.lock();
        decisions.decide(update.kind());
        decisions.held = Some(Held::Update(update));
        Ok(patch.is_some())
    }

    /// Writes the condition that was kept until the call ended.
    pub(super) async fn settle(self, held: &Held) -> Result<bool, StatusError> {
        match held {
            Held::Update(update) => self.condition(update, |_| true).await,
            Held::Whole(condition) => {
                let place = |status: &Value| {
                    let patch = listed::place(status, condition);
                    patch.map_err(|detail| self.says(detail))
                };
                self.merge(place).await
            }
        }
    }

    fn observed(&self, update: &ConditionUpdate) -> ConditionUpdate {
        let observed = update.observed.or(self.cx.raw().generation());
        update.clone().observed(observed)
    }

    /// Returns the conditions in which reconcilers of the kind report errors.
    fn reported(&self) -> Reported {
        let own = self.cx.call().reported().cloned();
        let mut others = self.cx.operator().claimed.conditions(self.cx.gvk());
        others.retain(|kind| own.as_ref() != Some(kind));
        Reported { own, others }
    }

    /// Notes what a write that was made says of conditions.
    fn keep(&self, said: Sayings) {
        let reported = self.cx.call().reported();
        let is_decided = |kind: &Arc<str>| said.decided.iter().any(|each| **each == **kind);
        let of_call = Decisions::of(&self.cx);
        let mut decisions = of_call.lock();
        match said.held {
            Some(held) => decisions.held = Some(Held::Whole(held)),
            // It was written just now, and says so in place of what was held.
            None if reported.is_some_and(is_decided) => decisions.held = None,
            None => {}
        }
        for kind in said.decided {
            decisions.decide(kind);
        }
    }

    /// Merges a patch that is worked out from the status.
    async fn merge(
        &self,
        mut work_out: impl FnMut(&Value) -> Result<Option<Value>, StatusError> + Send,
    ) -> Result<bool, StatusError> {
        let manager = &self.cx.operator().name;
        self.change(|state| {
            let patch = work_out(&status_of(state))?;
            Ok(patch.map(|patch| Attempt::merge(manager, json!({"status": patch}), state)))
        })
        .await
    }

    async fn apply(
        &self,
        wanted: &Value,
        force: bool,
        mut settle: impl FnMut(&Value) -> Value + Send,
    ) -> Result<bool, StatusError> {
        let (operator, handler) = (self.cx.operator(), self.cx.handler());
        let managers = Managers::new(&operator.name, handler);
        let applied = operator.feature::<Applied>();
        let uid = self.cx.raw().uid();
        let is_first = !applied.has(uid, handler);
        let written = self
            .change(|state| {
                let now = status_of(state);
                let status = settle(&now);
                if contains(&now, &status) && applied.is_last(state.uid(), handler, wanted) {
                    return Ok(None);
                }
                let mut fields = identity_of(self.cx.gvk(), self.cx.key());
                // Who applies an empty status owns the status as a whole, and conflicts with everybody who applies a field.
                if status != json!({}) {
                    fields["status"] = status;
                }
                let attempt = Attempt::apply(&managers, fields, state);
                Ok(Some(attempt.by_force(force).migrating(is_first)))
            })
            .await?;
        applied.remember(uid, handler, wanted);
        Ok(written)
    }

    /// Makes a change of the status, and keeps what it led to.
    async fn change(
        &self,
        mut work_out: impl FnMut(&Arc<CachedObject>) -> Result<Option<Attempt>, StatusError> + Send,
    ) -> Result<bool, StatusError> {
        let cx = &self.cx;
        let mut wire = cx.wire().await?;
        let mut state = cx.newest();
        if self.unchanged_only {
            wire = wire.once();
            let seen = cx.call().newest();
            if !is_as_seen(&seen, &state) {
                state = seen;
            }
        }
        let gone = || StatusError::gone(cx.gvk(), cx.key());
        let is_shown = is_shown(&cx.operator().caches, cx.gvk(), "/status");
        // What is left of the status may be no status of the type's, which says nothing of the whole one.
        if !state.has_content() || !is_shown && !matches!(work_out(&state), Ok(None)) {
            let seen = Arc::clone(&state);
            let read = wire.get(cx.key()).await?;
            state = read
                .filter(|read| read.uid() == seen.uid())
                .ok_or_else(gone)?;
            if self.unchanged_only && !is_as_seen(&seen, &state) {
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
        cx.call().saw(state);
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

/// What writes of a status say of conditions.
#[derive(Default)]
struct Sayings {
    /// The types of the conditions that were decided on.
    decided: Vec<String>,
    held: Option<Value>,
}

impl Sayings {
    /// Notes what is said by the last of some attempts, and returns what it writes.
    fn note(&mut self, now: &Value, settled: Settled) -> Value {
        self.decided = listed::decided(now, &settled.status);
        let held = settled.held.as_ref().and_then(|held| held["type"].as_str());
        self.decided.extend(held.map(str::to_owned));
        self.held = settled.held;
        settled.status
    }
}

/// Returns whether a state is one that was seen, but for what the operator itself notes on its objects.
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
