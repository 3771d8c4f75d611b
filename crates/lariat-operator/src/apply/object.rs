//! Applies one object: reads it, checks whether it may be changed, and sends the request if one is needed.

use std::sync::Arc;

use futures::FutureExt;
use lariat_cache::{CachedObject, Query};
use lariat_controller::Leadership;
use lariat_core::{ResourceVersion, Uid};
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
/// The API server compares the version in an apply with that of the present object, and refuses if they differ. If
/// there is no object, it creates one all the same.
const NO_VERSION: &str = "9223372036854775807";

/// The present object under the name of a wanted one.
struct Look {
    existing: Option<Existing>,
    /// The cached state.
    cached: Option<Arc<CachedObject>>,
    /// The JSON from the API server.
    live: Option<String>,
}

/// The API server's answer to an apply.
struct Answer {
    version: ResourceVersion,
    json: String,
}

/// What was done to an object.
struct Done {
    action: Action,
    /// The state on the server; none if it was only planned to be replaced.
    object: Option<Arc<CachedObject>>,
    /// Whether the state is the cache's.
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

    fn unchanged(look: Look, target: &Target) -> Self {
        let live = look.live.and_then(|live| object_of(target, &live));
        Self {
            action: Action::Unchanged,
            is_cached: live.is_none(),
            object: live.or(look.cached),
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
    /// Applies all objects, rank by rank.
    pub(super) async fn apply_all(
        &self,
        targets: &[&Target],
        applied: &mut Applied,
        failures: &mut Vec<ObjectFailure>,
    ) {
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

    /// Applies an object, and returns it as it is on the server.
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

    /// Applies an object.
    ///
    /// If it is refused because the present object is not the one that was read, that is read once more: a cache may be
    /// stale, and another client may have been faster.
    async fn apply_object(&self, target: &Target) -> Result<Done, ObjectError> {
        let mut look = self.look(target).await?;
        if self.is_undecided(&look, target) {
            look = match self.look_live(target).await {
                Ok(live) => Look {
                    cached: look.cached,
                    ..live
                },
                // It is written without being read.
                Err(error) if error.is_reading_forbidden() => look,
                Err(error) => return Err(error),
            };
        }
        let was_absent = look.existing.is_none();
        match self.apply_to(look, target).await {
            Err(error) if error.is_outdated() => {}
            Err(ObjectError::Conflicts { .. } | ObjectError::NotOurs) if was_absent => {}
            result => return result,
        }
        let look = self.look_live(target).await?;
        self.apply_to(look, target).await
    }

    /// Returns whether only a read can show that an object is as wanted.
    ///
    /// That is if this process has not applied it yet, and the cache does not have all of it, or not as the set wrote
    /// it. A read comes first then, because a write is more expensive, and is counted by guards and plans.
    fn is_undecided(&self, look: &Look, target: &Target) -> bool {
        let (Some(existing), Some(cached)) = (&look.existing, &look.cached) else {
            return false;
        };
        if target.options.create_only || self.claim(existing, target).is_err() {
            return false;
        }
        if self.set.remembered().knows(&target.id(), cached.uid()) {
            return false;
        }
        if self.is_as_wanted(look, target) {
            return false;
        }
        let caches = &self.set.operator.caches;
        let is_shown = wire::is_shown(caches, target.gvk(), "/metadata/annotations");
        !is_shown || drift::mark_of(&json_of(cached)) == drift::mark_of(&target.object)
    }

    /// Returns whether an object is as wanted, so that nothing needs to be sent.
    ///
    /// That is if it is unchanged since the same was applied, or if the object itself shows it. The result is
    /// remembered.
    fn is_as_wanted(&self, look: &Look, target: &Target) -> bool {
        let Look {
            existing,
            cached,
            live,
        } = look;
        let (set, id) = (self.set.remembered(), target.id());
        let is_as_applied = |now: &Arc<CachedObject>| set.is_as_applied(&id, target.hash, now);
        if cached.as_ref().is_some_and(is_as_applied) {
            return true;
        }
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

    /// Applies an object to the present one.
    async fn apply_to(&self, look: Look, target: &Target) -> Result<Done, ObjectError> {
        if let Some(existing) = &look.existing {
            self.claim(existing, target)?;
            let is_settled = target.options.create_only && self.is_ours(&existing.marks);
            if is_settled || self.is_as_wanted(&look, target) {
                return Ok(Done::unchanged(look, target));
            }
        }
        if look.existing.is_none() && self.set.remembered().has(&target.id()) {
            self.check_owner().await?;
        }
        let Look {
            existing, cached, ..
        } = look;
        let is_as_applied = || {
            let (set, id) = (self.set.remembered(), target.id());
            let now = cached.as_ref();
            now.is_some_and(|now| set.is_as_applied(&id, target.hash, now))
        };
        let action = match (self.send(target, existing.as_ref()).await, existing) {
            (Ok(answer), None) => return Ok(answer.done(Action::Created, target)),
            (Ok(answer), Some(_)) if self.is_planning() => {
                let action = self.planned(target, &answer).await?;
                return Ok(answer.done(action, target));
            }
            (Ok(answer), Some(before)) if answer.version == before.version => {
                (answer, Action::Unchanged)
            }
            // The status was written meanwhile; what was applied was there before.
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
    /// A stale cache has an owner that does not exist any more. The garbage collector deletes what is created for it,
    /// and each deletion calls the reconciler. Without this check both would go on until the cache has caught up.
    async fn check_owner(&self) -> Result<(), ObjectError> {
        match self.live_owner().await {
            Ok(Some(uid)) if uid == self.set.owner.uid().to_string() => Ok(()),
            Ok(_) => Err(ObjectError::OwnerGone),
            Err(error) if error.is_reading_forbidden() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Applies an object to the present one, and remembers the answer.
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
            // For this very object: another one of its name was not checked, and may belong to others.
            Some(existing) => with(signed, "uid", &existing.uid.to_string()),
            // To be created only: an object that exists by now was not checked. If its fields did not conflict with
            // ours, it would be taken over.
            None => with(signed, "resourceVersion", NO_VERSION),
        };
        let json = endpoint.apply(name, &object, &self.params(target)).await?;
        let Partial { metadata } = parse("apply", &json)?;
        let version = ResourceVersion::new(&metadata.resource_version);
        // A dry run changed nothing.
        if !self.is_planning() {
            let state = ObjectState {
                uid: &Uid::new(&metadata.uid),
                version: &version,
                json: json.as_bytes(),
            };
            self.set
                .remembered()
                .remember(&target.id(), target.hash, state);
        }
        Ok(Answer { version, json })
    }

    /// Returns an object to send, with the present lease.
    ///
    /// The lease is not part of what is wanted, so a take-over alone writes nothing.
    fn signed_for_now(&self, target: &Target, exists: bool) -> Result<Value, ObjectError> {
        let mut object = target.object.clone();
        if exists && target.options.create_only {
            // It is adopted with the content that it has.
            keep_metadata(&mut object);
            return Ok(object);
        }
        let leadership = self.set.operator.leadership.as_ref();
        let signature = leadership.and_then(Leadership::signature);
        if let Some(signature) = signature.filter(|_| !self.is_planning()) {
            set_annotation(&mut object, LEASE, &signature)?;
        }
        Ok(object)
    }

    /// Returns what an apply would have done: dry runs do not change the resource version.
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

    /// Returns the present object: from the cache if it has it, else from the API server.
    ///
    /// Caches may be stale, so an object is created only if the API server does not have it.
    async fn look(&self, target: &Target) -> Result<Look, ObjectError> {
        let informer = self.cache_of(&target.resource, target.key.namespace());
        let cached = informer.and_then(|informer| informer.store().get(&target.key));
        match cached {
            Some(cached) => Ok(Look {
                existing: Some(Existing::from(&*cached)),
                cached: Some(cached),
                live: None,
            }),
            None => self.look_live(target).await,
        }
    }

    async fn look_live(&self, target: &Target) -> Result<Look, ObjectError> {
        let live = self
            .endpoint(&target.resource, &target.key)
            .get(target.key.name())
            .await?;
        let existing = match &live {
            Some(text) => Some(Existing::from(&parse::<Partial>("get", text)?.metadata)),
            None => None,
        };
        Ok(Look {
            existing,
            cached: None,
            live,
        })
    }

    /// Checks that an existing object may be written.
    pub(super) fn claim(&self, existing: &Existing, target: &Target) -> Result<(), ObjectError> {
        let adopts = target.options.adopts.unwrap_or(self.set.options.adopts);
        let mut is_ours = false;
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
            // A copy may have the labels of another owner's object; the controller reference is more reliable.
            Membership::OfAnotherOwner { uid }
                if !(is_ours || adopts && self.is_left_over(&existing.marks)) =>
            {
                return Err(ObjectError::OfAnotherOwner { uid });
            }
            Membership::Ours => is_ours = true,
            Membership::None | Membership::OfAnotherOwner { .. } => {}
        }
        if !is_ours && !adopts {
            Err(ObjectError::NotOurs)
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

    /// Returns whether an object was kept by an owner of the same kind that does not exist any more.
    fn is_left_over(&self, marks: &Found) -> bool {
        let owner = marks.owner_uid().map(Uid::new);
        let owners = self.set.owners.select(&Query::all());
        marks.is_kept && !owners.iter().any(|each| Some(each.uid()) == owner.as_ref())
    }

    /// Returns whether an object with immutable fields is to be replaced.
    ///
    /// One that is being adopted or kept is not: it may have data that cannot be restored.
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
    /// It must be the set's, as for pruning; else the immutable fields are the error.
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
            let is_the_same = meta.uid == uid.to_string();
            if !is_the_same || !endpoint.delete(name, meta.state()).await? {
                return Err(ObjectError::Changing);
            }
            if self.is_planning() {
                return Ok(Done::of(Action::Replaced));
            }
        }
        if endpoint.metadata(name).await?.is_some() {
            return Err(ObjectError::Deleting);
        }
        let answer = self.send(target, None).await?;
        Ok(answer.done(Action::Replaced, target))
    }
}

/// Adds the uid or resource version of the intended object, which are not applied fields and have no manager.
fn with(mut object: Value, member: &str, value: &str) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(member.to_owned(), value.into());
    }
    object
}

/// Removes everything but what identifies an object and makes it a member of the set.
fn keep_metadata(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|name, _| matches!(&**name, "apiVersion" | "kind" | "metadata"));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
}
