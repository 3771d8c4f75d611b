//! One object: what there is, whether it may be touched, and the request, if one is needed.

use std::sync::Arc;

use futures::FutureExt;
use lariat_cache::CachedObject;
use lariat_controller::Leadership;
use lariat_core::{ResourceVersion, Uid};
use serde_json::Value;

use super::drift::{self, LEASE};
use super::error::{ObjectError, ObjectFailure};
use super::marks::Membership;
use super::memory::{self, ObjectState};
use super::meta::{Existing, Partial};
use super::report::{Action, Applied};
use super::resolve::{Target, set_annotation};
use super::run::{Run, bounded};
use super::send::parse;
use super::set::Immutable;
use crate::wire::{self, json_of};

/// A version that no object has: the greatest that fits what any store counts in.
///
/// The API server compares the version of what is applied with the object there is, and refuses to apply it to one of
/// another version. If there is none, it creates one all the same.
const NO_VERSION: &str = "9223372036854775807";

/// What there is under the name of an object.
struct Look {
    existing: Option<Existing>,
    /// The state a cache shows.
    cached: Option<Arc<CachedObject>>,
    /// The JSON the API server answered with.
    live: Option<String>,
}

/// What the API server answered to what was applied.
struct Answer {
    version: ResourceVersion,
    json: String,
}

impl Run<'_> {
    /// Applies all objects, rank by rank.
    pub(super) async fn apply_all(
        &self,
        targets: &[Target],
        applied: &mut Applied,
        failures: &mut Vec<ObjectFailure>,
    ) {
        for rank in targets.chunk_by(|a, b| a.rank == b.rank) {
            let calls = rank.iter().map(|target| self.apply_object(target).boxed());
            let results = bounded(calls.collect()).await;
            for (target, result) in rank.iter().zip(results) {
                match result {
                    Ok(action) => applied.add(target.gvk(), &target.key, action),
                    Err(error) => failures.push(target.failed(error)),
                }
            }
        }
    }

    /// Applies an object. What is refused because something else is there than what was looked at, is looked at once
    /// more: a cache may be behind, and somebody may have been faster.
    async fn apply_object(&self, target: &Target) -> Result<Action, ObjectError> {
        let mut look = self.look(target).await?;
        if self.is_undecided(&look, target) {
            look = match self.look_live(target).await {
                Ok(live) => Look {
                    cached: look.cached,
                    ..live
                },
                // Then it is written without.
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

    /// Returns whether an object may well be as wanted, which only its live state shows: this process has not
    /// applied it yet, and the cache does not show all of it, or not as the set wrote it. Then it is read first, since
    /// a write is dearer, and is counted by guards and plans.
    fn is_undecided(&self, look: &Look, target: &Target) -> bool {
        let (Some(existing), Some(cached)) = (&look.existing, &look.cached) else {
            return false;
        };
        if self.claim(existing).is_err() || self.set.remembered().knows(&target.id(), cached.uid())
        {
            return false;
        }
        if self.is_as_wanted(look, target) {
            return false;
        }
        let caches = &self.set.operator.caches;
        let is_shown = wire::is_shown(caches, target.gvk(), "/metadata/annotations");
        !is_shown || drift::mark_of(&json_of(cached)) == drift::mark_of(&target.object)
    }

    /// Returns whether an object is as wanted, so that nothing needs to be sent: it is as it was when the same was
    /// applied, or says so itself. That is remembered.
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

    /// Applies an object to what is there.
    async fn apply_to(&self, look: Look, target: &Target) -> Result<Action, ObjectError> {
        if let Some(existing) = &look.existing {
            self.claim(existing)?;
            if self.is_as_wanted(&look, target) {
                return Ok(Action::Unchanged);
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
        match (self.send(target, existing.as_ref()).await, existing) {
            (Ok(_), None) => Ok(Action::Created),
            (Ok(answer), Some(_)) if self.is_planning() => self.planned(target, &answer).await,
            (Ok(answer), Some(before)) if answer.version == before.version => Ok(Action::Unchanged),
            // Somebody wrote the status meanwhile; what was applied was there before.
            (Ok(_), Some(_)) if is_as_applied() => Ok(Action::Unchanged),
            (Ok(_), Some(_)) => Ok(Action::Changed),
            (Err(error @ ObjectError::Immutable { .. }), Some(before))
                if self.replaces(&before) =>
            {
                self.replace(target, &before.uid, error).await
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Checks that the owner still exists, before an object it had is created again.
    ///
    /// A cache that is behind shows an owner that is gone. The garbage collector deletes what is created for it, each
    /// deletion calls the reconciler, and without this check both would go on until the cache has caught up.
    async fn check_owner(&self) -> Result<(), ObjectError> {
        match self.live_owner().await {
            Ok(Some(uid)) if uid == self.set.owner.uid().to_string() => Ok(()),
            Ok(_) => Err(ObjectError::OwnerGone),
            Err(error) if error.is_reading_forbidden() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Applies an object to what exists, and remembers the answer.
    async fn send(
        &self,
        target: &Target,
        existing: Option<&Existing>,
    ) -> Result<Answer, ObjectError> {
        let (endpoint, name) = (
            self.endpoint(&target.resource, &target.key),
            target.key.name(),
        );
        let signed = self.signed_for_now(target)?;
        let object = match existing {
            // For this very object: another of its name has not been looked at, and may be anybody's.
            Some(existing) => with(signed, "uid", &existing.uid.to_string()),
            // To be created only: whatever is there by now has not been looked at either. The fields of somebody else's
            // need not conflict with ours, and then it would be taken over.
            None => with(signed, "resourceVersion", NO_VERSION),
        };
        let json = endpoint.apply(name, &object, &self.params()).await?;
        let Partial { metadata } = parse("apply", &json)?;
        let version = ResourceVersion::new(&metadata.resource_version);
        // What was a dry run is not so.
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

    /// Returns an object to be sent, with the lease under which that happens.
    ///
    /// What is wanted does not include it, so a take-over alone writes nothing.
    fn signed_for_now(&self, target: &Target) -> Result<Value, ObjectError> {
        let mut object = target.object.clone();
        let leadership = self.set.operator.leadership.as_ref();
        let signature = leadership.and_then(Leadership::signature);
        if let Some(signature) = signature.filter(|_| !self.is_planning()) {
            set_annotation(&mut object, LEASE, &signature)?;
        }
        Ok(object)
    }

    /// Returns what would have happened to an object: dry runs leave the version as it is.
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

    /// Looks into the cache, if the object would be there, else asks the API server. So it does for what the cache does
    /// not have: caches are behind, and what is missing is applied on the word of the API server only.
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

    /// Checks that an object which exists may be written.
    pub(super) fn claim(&self, existing: &Existing) -> Result<(), ObjectError> {
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
            // A copy may have labels of another owner's object; the reference to the controller is the better witness.
            Membership::OfAnotherOwner { uid } if !is_ours => {
                return Err(ObjectError::OfAnotherOwner { uid });
            }
            Membership::Ours => is_ours = true,
            Membership::None | Membership::OfAnotherOwner { .. } => {}
        }
        if !is_ours && !self.set.options.adopts {
            Err(ObjectError::NotOurs)
        } else if existing.is_deleting {
            Err(ObjectError::Deleting)
        } else {
            Ok(())
        }
    }

    /// Returns whether an object whose fields cannot be changed is to be replaced. One that is being adopted is not:
    /// it may hold what nobody can bring back.
    pub(super) fn replaces(&self, before: &Existing) -> bool {
        let is_member = self.set.marks.read(&before.marks) == Membership::Ours;
        self.set.options.immutable == Immutable::Replace && is_member
    }

    /// Deletes an object, if it is the set's as for pruning, and creates it again; else that it cannot be changed is
    /// the error.
    async fn replace(
        &self,
        target: &Target,
        uid: &Uid,
        reason: ObjectError,
    ) -> Result<Action, ObjectError> {
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
                return Ok(Action::Replaced);
            }
        }
        if endpoint.metadata(name).await?.is_some() {
            return Err(ObjectError::Deleting);
        }
        self.send(target, None).await?;
        Ok(Action::Replaced)
    }
}

/// Adds the uid or the version of the object that is meant. They are no fields that are applied, and nobody manages them.
fn with(mut object: Value, member: &str, value: &str) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(member.to_owned(), value.into());
    }
    object
}
