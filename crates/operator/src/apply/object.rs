//! Applies one object: reads it, checks that it may be written, and sends a request if one is needed.
//!
//! The object is read from the cache if it is cached, and otherwise from the API server. Two guards make a stale read
//! harmless. An apply to an existing object carries the uid that was read, so it cannot change another object of the
//! same name. An apply that creates carries a resource version that no object has, so it cannot take over an object
//! that was created meanwhile. If either guard refuses the write, the object is read from the API server and the write
//! is repeated once.

use std::sync::Arc;

use futures::FutureExt;
use lariat_cache::CachedObject;
use lariat_core::Uid;

use super::claim::Claim;
use super::drift;
use super::error::{ObjectError, ObjectFailure};
use super::marks::Membership;
use super::memory::ObjectState;
use super::meta::{Existing, Partial};
use super::present::{Done, Present};
use super::report::{Action, Applied, AppliedObject};
use super::resolve::Target;
use super::run::{Run, bounded};
use super::send::parse;
use super::set::Immutable;
use crate::wire::{self, json_of};

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
            diff: done.diff,
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
        let is_member = matches!(self.claim(existing, target), Ok(Claim::Member));
        if target.options.create_only || !is_member {
            return false;
        }
        let caches = &self.set.operator.caches;
        let is_shown = |pointer| wire::is_shown(caches, target.gvk(), pointer);
        if !self.has_marks(existing, target) {
            // A transform may have removed them from the cache only.
            return !is_shown("/metadata/labels") || !is_shown("/metadata/ownerReferences");
        }
        if self.set.memory().knows(&target.id(), cached.uid()) {
            return false;
        }
        if self.is_as_wanted(present, target) {
            return false;
        }
        // A cache without annotations cannot tell. With them, a different hash means that the wanted object has
        // changed, so a write is needed anyway.
        !is_shown("/metadata/annotations")
            || drift::mark_of(&json_of(cached)) == drift::mark_of(&target.object)
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
        let Some(existing) = existing else {
            return false;
        };
        // Others may have added a mark that an apply would leave, and that the content does not show.
        if !self.has_marks(existing, target) {
            return false;
        }
        if target.options.create_only {
            return true;
        }
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
        let object = serde_json::from_slice(json).unwrap_or_default();
        let manager = &self.set.operator.name;
        let is_as_wanted = drift::is_as_wanted(target.gvk(), &target.object, &object, manager);
        if is_as_wanted {
            let state = ObjectState {
                uid: &existing.uid,
                version: &existing.version,
                json,
            };
            set.remember(&id, target.hash, state, present.cached.as_ref());
        }
        is_as_wanted
    }

    /// Writes an object, given the state in which it exists.
    async fn apply_to(&self, present: Present, target: &Target) -> Result<Done, ObjectError> {
        let (present, claim) = self.claimed(present, target).await?;
        // The set has applied this object before, so a client deleted it. That may have been the garbage collector,
        // after the owner was deleted. It also removes references, if the owner is deleted without its objects.
        let is_deleted = claim.is_none() && self.set.memory().has(&target.id());
        let existing = present.existing.as_ref();
        if is_deleted || existing.is_some_and(|existing| self.lacks_owner(existing, target)) {
            self.check_owner().await?;
        }
        let is_member = claim == Some(Claim::Member);
        if is_member && self.is_as_wanted(&present, target) {
            return Ok(Done::unchanged(present, target));
        }
        if claim.is_some() && target.options.create_only {
            return self.mark_created(present, target).await;
        }
        let existing = present.existing.as_ref();
        let lacks_marks = existing.is_some_and(|existing| !self.has_marks(existing, target));
        let written = if is_member || claim.is_none() {
            self.write(present, target).await
        } else {
            let present = self.rename_manager(present, target).await?;
            self.take_over(present, target).await
        };
        if let Err(error) = &written
            && error.is_of_content()
            && lacks_marks
        {
            self.mark_in_spite(target).await;
        }
        written
    }

    /// Writes the marks of an object that is created only, in its state on the API server.
    async fn mark_created(&self, present: Present, target: &Target) -> Result<Done, ObjectError> {
        let (present, claim) = match present.live {
            Some(_) => (present, Some(Claim::Transfer)),
            None => self.claimed(self.read_live(target).await?, target).await?,
        };
        if claim.is_none() {
            return self.write(present, target).await;
        }
        // The cache was behind.
        if claim == Some(Claim::Member) && self.is_as_wanted(&present, target) {
            return Ok(Done::unchanged(present, target));
        }
        let present = self.rename_manager(present, target).await?;
        let answer = self.mark_only(&present, target).await?;
        self.remember(&answer, target);
        if self.is_planning() {
            return self.planned(target, answer).await;
        }
        Ok(answer.done(Action::Changed, target))
    }

    /// Makes an object the set's that was not, in the state that was read from the API server.
    async fn take_over(&self, present: Present, target: &Target) -> Result<Done, ObjectError> {
        let live = present.live.clone().unwrap_or_default();
        match self.write(present, target).await {
            // An object of the same owner and operator may be replaced. First it becomes a member, so that whatever
            // happens in between, one set only has it.
            Err(error @ ObjectError::Immutable { .. }) => {
                let existing = Existing::from(&parse::<Partial>("get", &live)?.metadata);
                let is_sibling = matches!(
                    self.set.marks.read(&existing.marks),
                    Membership::OfSibling { .. }
                );
                if !is_sibling || !self.may_replace(&existing, target) {
                    return Err(error);
                }
                let answer = self.mark(&parse("get", &live)?, target).await?;
                if self.is_planning() {
                    return Ok(Done::of(Action::Replaced));
                }
                self.write(Present::read(answer.json)?, target).await
            }
            result => result,
        }
    }

    /// Checks that the owner is not deleted before an object gets a reference to it.
    ///
    /// A stale cache may still have an owner that was deleted, or not show yet that it is being deleted. The garbage
    /// collector deletes each object that is created for it, and each deletion calls the reconciler. Without this check
    /// they would create and delete the object in a loop until the cache has caught up. The garbage collector would
    /// also delete an object that `kubectl delete --cascade=orphan` is to leave, if it got a reference again. That
    /// still happens if a stale cache shows the reference, and the content of the object is written.
    async fn check_owner(&self) -> Result<(), ObjectError> {
        let owner = &self.set.owner;
        match self.live_owner().await {
            Ok(Some(live)) if live.uid == owner.uid().to_string() => {
                if live.deletion_timestamp.is_some() && !owner.is_deleting() {
                    return Err(ObjectError::OwnerDeleting);
                }
                Ok(())
            }
            Ok(_) => Err(ObjectError::OwnerNotFound),
            Err(error) if error.is_reading_forbidden() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the existing object, from the cache or the API server.
    ///
    /// An object that is not cached may exist, because caches may be stale. So it is looked up on the API server before
    /// it is created.
    async fn read_present(&self, target: &Target) -> Result<Present, ObjectError> {
        match self.cached(target) {
            Some(cached) => Ok(Present {
                existing: Some(Existing::from(&*cached)),
                cached: Some(cached),
                live: None,
            }),
            None => self.read_live(target).await,
        }
    }

    /// Returns the cached object, if its kind is cached.
    pub(super) fn cached(&self, target: &Target) -> Option<Arc<CachedObject>> {
        let informer = self.cache_of(&target.resource, target.key.namespace());
        informer.and_then(|informer| informer.store().get(&target.key))
    }

    /// Returns the existing object, read from the API server.
    pub(super) async fn read_live(&self, target: &Target) -> Result<Present, ObjectError> {
        let live = self
            .endpoint(&target.resource, &target.key)
            .get(target.key.name())
            .await?;
        match live {
            Some(json) => Present::read(json),
            None => Ok(Present {
                existing: None,
                cached: None,
                live: None,
            }),
        }
    }

    /// Returns whether an object is to be replaced if its immutable fields differ.
    ///
    /// An object that is kept, or was not the set's before, is not replaced: it may have data that cannot be restored.
    pub(super) fn replaces(&self, before: &Existing, target: &Target) -> bool {
        self.is_ours(&before.marks) && self.may_replace(before, target)
    }

    fn may_replace(&self, before: &Existing, target: &Target) -> bool {
        let immutable = target
            .options
            .immutable
            .unwrap_or(self.set.options.immutable);
        let is_kept = target.options.kept || before.marks.is_kept;
        immutable == Immutable::Replace && !is_kept
    }

    /// Deletes an object and creates it again.
    ///
    /// It must be the set's, by the same checks as for pruning. Otherwise the difference of the immutable fields is the
    /// error.
    pub(super) async fn replace(
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
            if !is_the_same || !endpoint.delete_to_recreate(name, meta.state()).await? {
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
