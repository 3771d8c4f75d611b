//! Applies one object: reads it, checks that it may be written, and sends a request if one is needed.
//!
//! The object is read from the cache if it is cached, and otherwise from the API server. Two guards make a stale read
//! harmless. An apply to an existing object carries the uid that was read, so it cannot change another object of the
//! same name. An apply that creates carries a resource version that no object has, so it cannot take over an object
//! that was created meanwhile. If either guard refuses the write, the object is read from the API server and the write
//! is repeated once.

use std::sync::Arc;

use futures::FutureExt;
use lariat_cache::{CachedObject, Query};
use lariat_core::{ResourceVersion, Uid};
use lariat_lease::Leadership;
use serde_json::Value;

use super::drift::{self, LEASE};
use super::error::{ObjectError, ObjectFailure};
use super::marks::{Found, Membership};
use super::memory::{self, ObjectState};
use super::meta::{Existing, Partial};
use super::report::{Action, Applied, AppliedObject};
use super::resolve::{Target, set_annotation};
use super::run::{Run, bounded};
use super::send::parse;
use super::set::Immutable;
use super::staged::object_of;
use crate::wire::{self, json_of};

/// A resource version that no object has: the greatest that fits the counters of all stores.
///
/// The API server compares the version in an apply with that of the existing object, and refuses if they differ. If
/// there is no object, it creates one regardless of the version.
const NO_VERSION: &str = "9223372036854775807";

/// The object that exists under the name of a wanted one, if any.
struct Present {
    existing: Option<Existing>,
    /// Its cached state, if it was read from the cache.
    cached: Option<Arc<CachedObject>>,
    /// Its JSON, if it was read from the API server.
    live: Option<String>,
}

/// The answer of the API server to an apply.
struct Answer {
    version: ResourceVersion,
    json: String,
}

/// What was done to an object, and its state.
struct Done {
    action: Action,
    /// The state on the server; `None` if a replacement was only planned.
    object: Option<Arc<CachedObject>>,
    /// Whether the state was read from the cache.
    is_cached: bool,
}

impl Done {
    fn of(action: Action) -> Self {
        Self {
            action,
            object: None,
            is_cached: false,
        }
    }

    fn unchanged(present: Present, target: &Target) -> Self {
        let live = present.live.and_then(|live| object_of(target, &live));
        Self {
            action: Action::Unchanged,
            is_cached: live.is_none(),
            object: live.or(present.cached),
        }
    }
}

impl Answer {
    fn done(&self, action: Action, target: &Target) -> Done {
        Done {
            action,
            object: object_of(target, &self.json),
            is_cached: false,
        }
    }
}

impl Run<'_> {
    /// Applies all objects: one rank after the other, those of one rank concurrently.
    pub(super) async fn apply_all(
        &self,
        targets: &[&Target],
        applied: &mut Applied,
        failures: &mut Vec<ObjectFailure>,
    ) {
        // Concurrent within a rank only: a Pod may need the ConfigMap of an earlier rank.
        for rank in targets.chunk_by(|a, b| a.rank == b.rank) {
            let calls = rank.iter().map(|target| self.apply_whole(target).boxed());
            let results = bounded(calls.collect()).await;
            for (target, result) in rank.iter().zip(results) {
                match result {
                    Ok(object) => applied.objects.push(object),
                    Err(error) => failures.push(target.failed(error)),
                }
            }
        }
    }

    /// Applies an object, and returns its whole state on the server.
    async fn apply_whole(&self, target: &Target) -> Result<AppliedObject, ObjectError> {
        let done = self.apply_object(target).await?;
        let (object, is_whole) = self.whole(target, done.object, done.is_cached).await;
        Ok(AppliedObject {
            gvk: target.gvk().clone(),
            key: target.key.clone(),
            action: done.action,
            object,
            is_whole,
            is_kept: target.options.kept,
            is_in_step: target.step.is_some(),
            ready: target.options.ready.clone(),
        })
    }

    /// Applies an object, with one repetition after a stale read.
    ///
    /// The read may be stale because the cache is behind, or because another client was faster. Then the API server
    /// refuses the write, and the object is read from the API server before the write is repeated.
    async fn apply_object(&self, target: &Target) -> Result<Done, ObjectError> {
        let mut present = self.read_present(target).await?;
        if self.is_undecided(&present, target) {
            present = match self.read_live(target).await {
                Ok(live) => Present {
                    cached: present.cached,
                    ..live
                },
                // Reading is forbidden. The write decides, since permission to patch does not need permission to read.
                Err(error) if error.is_reading_forbidden() => present,
                Err(error) => return Err(error),
            };
        }
        let was_absent = present.existing.is_none();
        match self.apply_to(present, target).await {
            Err(error) if error.is_outdated() => {}
            // The object was created between the read and the write, and its creator's fields conflict, or it is not
            // the owner's. The live read tells whether it may be adopted.
            Err(ObjectError::Conflicts { .. } | ObjectError::NotAdopted) if was_absent => {}
            result => return result,
        }
        let present = self.read_live(target).await?;
        self.apply_to(present, target).await
    }

    /// Returns whether only a live read can show that an object is as wanted.
    ///
    /// That is the case if this process has not applied the object yet, and the cache has only a part of it, or another
    /// form of it than the set wrote. The read saves a write, which is more expensive and is counted by guards and
    /// shown in plans.
    fn is_undecided(&self, present: &Present, target: &Target) -> bool {
        let (Some(existing), Some(cached)) = (&present.existing, &present.cached) else {
            return false;
        };
        if target.options.create_only || self.claim(existing, target).is_err() {
            return false;
        }
        if self.set.memory().knows(&target.id(), cached.uid()) {
            return false;
        }
        if self.is_as_wanted(present, target) {
            return false;
        }
        let caches = &self.set.operator.caches;
        let is_shown = wire::is_shown(caches, target.gvk(), "/metadata/annotations");
        // A cache without annotations cannot tell. With them, a different hash means that the wanted object has
        // changed, so a write is needed anyway.
        !is_shown || drift::mark_of(&json_of(cached)) == drift::mark_of(&target.object)
    }

    /// Returns whether an object is as wanted, so that no request is needed.
    ///
    /// It is, if it is unchanged since the same was applied, or if its content shows it. The result is remembered.
    fn is_as_wanted(&self, present: &Present, target: &Target) -> bool {
        let Present {
            existing,
            cached,
            live,
        } = present;
        let (set, id) = (self.set.memory(), target.id());
        let is_as_applied = |now: &Arc<CachedObject>| set.is_as_applied(&id, target.hash, now);
        if cached.as_ref().is_some_and(is_as_applied) {
            return true;
        }
        // The object changed since, or this process has just started: decide by its content.
        // Metadata alone would look like an object that lacks every wanted field.
        let whole = cached.as_ref().filter(|cached| cached.has_content());
        let cached = whole.map(|cached| cached.json().unwrap_or_default());
        let Some(json) = live
            .as_ref()
            .map(|live| live.as_bytes())
            .or(cached.as_deref())
        else {
            return false;
        };
        let Some(existing) = existing else {
            return false;
        };
        let object = serde_json::from_slice(json).unwrap_or_default();
        let manager = &self.set.operator.name;
        let is_as_wanted = drift::is_as_wanted(target.gvk(), &target.object, &object, manager);
        if is_as_wanted {
            let state = ObjectState {
                uid: &existing.uid,
                version: &existing.version,
                json,
            };
            set.remember(&id, target.hash, state);
        }
        is_as_wanted
    }

    /// Writes an object, given the state in which it exists.
    async fn apply_to(&self, present: Present, target: &Target) -> Result<Done, ObjectError> {
        if let Some(existing) = &present.existing {
            self.claim(existing, target)?;
            // A create-only object that carries the labels of the set is never written again, whatever is wanted now.
            let is_settled = target.options.create_only && self.is_ours(&existing.marks);
            if is_settled || self.is_as_wanted(&present, target) {
                return Ok(Done::unchanged(present, target));
            }
        }
        // The set has applied this object before, so a client deleted it. That may have been the garbage collector,
        // after the owner was deleted.
        if present.existing.is_none() && self.set.memory().has(&target.id()) {
            self.check_owner().await?;
        }
        let Present {
            existing, cached, ..
        } = present;
        let is_as_applied = || {
            let (set, id) = (self.set.memory(), target.id());
            let now = cached.as_ref();
            now.is_some_and(|now| set.is_as_applied(&id, target.hash, now))
        };
        let action = match (self.send(target, existing.as_ref()).await, existing) {
            (Ok(answer), None) => return Ok(answer.done(Action::Created, target)),
            // A dry run keeps the resource version, so the answer is compared with the object itself.
            (Ok(answer), Some(_)) if self.is_planning() => {
                let action = self.planned(target, &answer).await?;
                return Ok(answer.done(action, target));
            }
            // The API server keeps the resource version if an apply changes nothing.
            (Ok(answer), Some(before)) if answer.version == before.version => {
                (answer, Action::Unchanged)
            }
            // The status was written between the read and the apply, so the version differs although the apply changed
            // nothing.
            (Ok(answer), Some(_)) if is_as_applied() => (answer, Action::Unchanged),
            (Ok(answer), Some(_)) => (answer, Action::Changed),
            (Err(error @ ObjectError::Immutable { .. }), Some(before))
                if self.replaces(&before, target) =>
            {
                return self.replace(target, &before.uid, error).await;
            }
            (Err(error), _) => return Err(error),
        };
        let (answer, action) = action;
        Ok(answer.done(action, target))
    }

    /// Checks that the owner still exists, before one of its objects is created again.
    ///
    /// A stale cache may still have an owner that was deleted. The garbage collector deletes each object that is
    /// created for it, and each deletion calls the reconciler. Without this check they would create and delete the
    /// object in a loop until the cache has caught up.
    async fn check_owner(&self) -> Result<(), ObjectError> {
        match self.live_owner().await {
            Ok(Some(uid)) if uid == self.set.owner.uid().to_string() => Ok(()),
            Ok(_) => Err(ObjectError::OwnerNotFound),
            Err(error) if error.is_reading_forbidden() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends an apply, and remembers the answer.
    async fn send(
        &self,
        target: &Target,
        existing: Option<&Existing>,
    ) -> Result<Answer, ObjectError> {
        let (endpoint, name) = (
            self.endpoint(&target.resource, &target.key),
            target.key.name(),
        );
        let signed = self.signed_for_now(target, existing.is_some())?;
        let object = match existing {
            // With the uid, the apply is refused if another object has the name by now. That one was not checked, and
            // may belong to others.
            Some(existing) => with(signed, "uid", &existing.uid.to_string()),
            // With this version, the apply is refused if the object exists by now. That one was not checked either, and
            // would be taken over if its fields do not conflict.
            None => with(signed, "resourceVersion", NO_VERSION),
        };
        let json = endpoint.apply(name, &object, &self.params(target)).await?;
        let Partial { metadata } = parse("apply", &json)?;
        let version = ResourceVersion::new(&metadata.resource_version);
        // The answer to a dry run is not a state of the object.
        if !self.is_planning() {
            let state = ObjectState {
                uid: &Uid::new(&metadata.uid),
                version: &version,
                json: json.as_bytes(),
            };
            self.set.memory().remember(&target.id(), target.hash, state);
        }
        Ok(Answer { version, json })
    }

    /// Returns an object to send, with the present lease in an annotation.
    ///
    /// The lease is not part of the wanted object, so a new leader does not write objects only to record its lease.
    fn signed_for_now(&self, target: &Target, exists: bool) -> Result<Value, ObjectError> {
        let mut object = target.object.clone();
        if exists && target.options.create_only {
            // An existing object is adopted with its present content: only labels and owner reference are applied.
            keep_metadata(&mut object);
            return Ok(object);
        }
        // The annotation is set on what is sent, not on what is hashed, so the hash does not depend on the leader.
        let leadership = self.set.operator.leadership.as_ref();
        let signature = leadership.and_then(Leadership::signature);
        if let Some(signature) = signature.filter(|_| !self.is_planning()) {
            set_annotation(&mut object, LEASE, &signature)?;
        }
        Ok(object)
    }

    /// Returns the action that an apply would have had, from the answer to its dry run.
    ///
    /// A dry run does not change the resource version, so the contents are compared.
    async fn planned(&self, target: &Target, answer: &Answer) -> Result<Action, ObjectError> {
        let now = self
            .endpoint(&target.resource, &target.key)
            .get(target.key.name())
            .await?;
        let is_same = now.is_some_and(|now| memory::is_same(&now, &answer.json));
        Ok(if is_same {
            Action::Unchanged
        } else {
            Action::Changed
        })
    }

    /// Returns the existing object, from the cache or the API server.
    ///
    /// An object that is not cached may exist, because caches may be stale. So it is looked up on the API server before
    /// it is created.
    async fn read_present(&self, target: &Target) -> Result<Present, ObjectError> {
        let informer = self.cache_of(&target.resource, target.key.namespace());
        let cached = informer.and_then(|informer| informer.store().get(&target.key));
        match cached {
            Some(cached) => Ok(Present {
                existing: Some(Existing::from(&*cached)),
                cached: Some(cached),
                live: None,
            }),
            None => self.read_live(target).await,
        }
    }

    /// Returns the existing object, read from the API server.
    async fn read_live(&self, target: &Target) -> Result<Present, ObjectError> {
        let live = self
            .endpoint(&target.resource, &target.key)
            .get(target.key.name())
            .await?;
        let existing = match &live {
            Some(text) => Some(Existing::from(&parse::<Partial>("get", text)?.metadata)),
            None => None,
        };
        Ok(Present {
            existing,
            cached: None,
            live,
        })
    }

    /// Checks that an existing object may be written by this set.
    pub(super) fn claim(&self, existing: &Existing, target: &Target) -> Result<(), ObjectError> {
        let adopts = target.options.adopts.unwrap_or(self.set.options.adopts);
        let mut is_ours = false;
        // The controller reference decides first: it names the owner by uid and is what the garbage collector acts on.
        // Labels can be copied from one object to another by hand.
        if let Some((name, uid)) = &existing.controller {
            if uid != self.set.owner.uid() {
                let controller = name.clone();
                return Err(ObjectError::Controlled { controller });
            }
            is_ours = true;
        }
        match self.set.marks.read(&existing.marks) {
            Membership::OfAnotherSet { operator, set } => {
                return Err(ObjectError::OfAnotherSet { operator, set });
            }
            // A user may have copied an object with its labels. The controller reference, if it names our owner, is
            // more reliable than the label. An object that a deleted owner left behind may be adopted.
            Membership::OfAnotherOwner { uid }
                if !(is_ours || adopts && self.is_left_over(&existing.marks)) =>
            {
                return Err(ObjectError::OfAnotherOwner { uid });
            }
            Membership::Ours => is_ours = true,
            Membership::None | Membership::OfAnotherOwner { .. } => {}
        }
        if !is_ours && !adopts {
            // Checked last, so that an object of others is reported as such even while it is being deleted.
            Err(ObjectError::NotAdopted)
        } else if existing.is_deleting {
            Err(ObjectError::Deleting)
        } else {
            Ok(())
        }
    }

    /// Returns whether labels are those of the set.
    pub(super) fn is_ours(&self, marks: &Found) -> bool {
        self.set.marks.read(marks) == Membership::Ours
    }

    /// Returns whether a kept object belonged to an owner that was deleted.
    ///
    /// The owner must have been of the same kind, whose owners are all cached.
    fn is_left_over(&self, marks: &Found) -> bool {
        let owner = marks.owner_uid().map(Uid::new);
        let owners = self.set.owners.select(&Query::all());
        marks.is_kept && !owners.iter().any(|each| Some(each.uid()) == owner.as_ref())
    }

    /// Returns whether an object is to be replaced if its immutable fields differ.
    ///
    /// An object that is kept, or was not the set's before, is not replaced: it may have data that cannot be restored.
    pub(super) fn replaces(&self, before: &Existing, target: &Target) -> bool {
        let immutable = target
            .options
            .immutable
            .unwrap_or(self.set.options.immutable);
        let is_kept = target.options.kept || before.marks.is_kept;
        immutable == Immutable::Replace && self.is_ours(&before.marks) && !is_kept
    }

    /// Deletes an object and creates it again.
    ///
    /// It must be the set's, by the same checks as for pruning. Otherwise the difference of the immutable fields is the
    /// error.
    async fn replace(
        &self,
        target: &Target,
        uid: &Uid,
        reason: ObjectError,
    ) -> Result<Done, ObjectError> {
        let endpoint = self.endpoint(&target.resource, &target.key);
        let name = target.key.name();
        if let Some(meta) = endpoint.metadata(name).await? {
            if !self.may_delete(&meta) {
                return Err(reason);
            }
            if meta.deletion_timestamp.is_some() {
                return Err(ObjectError::Deleting);
            }
            // Preconditions restrict the deletion to the state that was checked.
            let is_the_same = meta.uid == uid.to_string();
            if !is_the_same || !endpoint.delete(name, meta.state()).await? {
                return Err(ObjectError::Changing);
            }
            if self.is_planning() {
                return Ok(Done::of(Action::Replaced));
            }
        }
        // With finalizers or a grace period the object still exists. A later call creates it.
        if endpoint.metadata(name).await?.is_some() {
            return Err(ObjectError::Deleting);
        }
        let answer = self.send(target, None).await?;
        Ok(answer.done(Action::Replaced, target))
    }
}

/// Adds the uid or resource version that the write is meant for.
///
/// The API server does not count these as applied fields.
fn with(mut object: Value, member: &str, value: &str) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(member.to_owned(), value.into());
    }
    object
}

/// Removes everything but the identity, labels and owner reference of an object.
fn keep_metadata(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|name, _| matches!(&**name, "apiVersion" | "kind" | "metadata"));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
}
