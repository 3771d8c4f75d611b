//! One object: what there is, whether it may be touched, and the request, if one is needed.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use kube::api::{PatchParams, Preconditions};
use lariat_cache::{CachedObject, Informer};
use lariat_core::{Gvk, ResourceVersion, Uid};

use super::error::{ObjectError, ObjectFailure};
use super::marks::Membership;
use super::meta::{Existing, Partial};
use super::report::{Action, Applied};
use super::resolve::Target;
use super::send::{Endpoint, parse};
use super::set::{Immutable, Run};

/// How many requests of a call are under way at a time.
const AT_A_TIME: usize = 8;

/// What there is under the name of an object.
struct Look {
    existing: Option<Existing>,
    /// The state a cache shows.
    cached: Option<Arc<CachedObject>>,
}

/// Runs futures, a few at a time; returns what they answer, in order.
pub(super) async fn bounded<T>(calls: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(calls).buffered(AT_A_TIME).collect().await
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

    async fn apply_object(&self, target: &Target) -> Result<Action, ObjectError> {
        let Look { existing, cached } = self.look(target).await?;
        let id = target.id();
        let is_as_applied = || {
            let place = self.set.place();
            let now = cached.as_ref();
            now.is_some_and(|now| place.is_as_applied(&id, target.hash, now))
        };
        if let Some(existing) = &existing {
            self.claim(existing)?;
            if is_as_applied() {
                return Ok(Action::Unchanged);
            }
        }
        match (self.send(target).await, existing) {
            (Ok(_), None) => Ok(Action::Created),
            (Ok(version), Some(before)) if version == before.version => Ok(Action::Unchanged),
            // Somebody wrote the status meanwhile; what was applied was there before.
            (Ok(_), Some(_)) if is_as_applied() => Ok(Action::Unchanged),
            (Ok(_), Some(_)) => Ok(Action::Changed),
            (Err(ObjectError::Immutable { .. }), Some(before)) if self.replaces(&before) => {
                self.replace(target, &before.uid).await
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Applies an object and remembers the answer; returns the version.
    async fn send(&self, target: &Target) -> Result<ResourceVersion, ObjectError> {
        let (endpoint, name) = (self.endpoint(target), target.key.name());
        let params = self.params();
        let answer = endpoint.apply(name, &target.object, &params).await?;
        let Partial { metadata } = parse("apply", &answer)?;
        let uid = Uid::new(&metadata.uid);
        let version = ResourceVersion::new(&metadata.resource_version);
        let place = self.set.place();
        place.remember(&target.id(), target.hash, (&uid, &version, &answer));
        Ok(version)
    }

    pub(super) fn params(&self) -> PatchParams {
        let params = PatchParams::apply(&self.set.shared.name);
        match self.set.options.force {
            true => params.force(),
            false => params,
        }
    }

    pub(super) fn endpoint<'b>(&'b self, target: &'b Target) -> Endpoint<'b> {
        Endpoint::new(&self.set.client, &target.resource, &target.key)
    }

    /// Looks into the cache, if the object would be there, else asks the API server.
    async fn look(&self, target: &Target) -> Result<Look, ObjectError> {
        if let Some(informer) = self.cache_of(target.gvk(), target.key.namespace()) {
            let cached = informer.store().get(&target.key);
            return Ok(Look {
                existing: cached.as_deref().map(Existing::from),
                cached,
            });
        }
        let meta = self.endpoint(target).metadata(target.key.name()).await?;
        Ok(Look {
            existing: meta.as_ref().map(Existing::from),
            cached: None,
        })
    }

    /// Returns the cache of a kind, if it holds all objects of a namespace, or of all for `None`.
    pub(super) fn cache_of(&self, gvk: &Gvk, namespace: Option<&str>) -> Option<&Informer> {
        let informer = self.caches.get(gvk)?;
        let selection = informer.selection();
        let namespaces = selection.namespaces();
        let covered = match namespace {
            _ if namespaces.is_empty() => true,
            Some(namespace) => namespaces.iter().any(|each| &**each == namespace),
            None => false,
        };
        let everything = selection.labels().is_empty() && selection.fields().is_empty();
        (covered && everything).then_some(informer)
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
            Membership::Ours => is_ours = true,
            Membership::None | Membership::OfAnotherOwner => {}
        }
        match existing.is_deleting {
            _ if !is_ours && !self.set.options.adopts => Err(ObjectError::NotOurs),
            true => Err(ObjectError::Deleting),
            false => Ok(()),
        }
    }

    /// Returns whether an object whose fields cannot be changed is to be replaced. One that is being adopted is not:
    /// it may hold what nobody can bring back.
    pub(super) fn replaces(&self, before: &Existing) -> bool {
        let is_member = self.set.marks.read(&before.marks) == Membership::Ours;
        self.set.options.immutable == Immutable::Replace && is_member
    }

    async fn replace(&self, target: &Target, uid: &Uid) -> Result<Action, ObjectError> {
        let endpoint = self.endpoint(target);
        let name = target.key.name();
        let state = Preconditions {
            uid: Some(uid.to_string()),
            resource_version: None,
        };
        endpoint.delete(name, state).await?;
        if endpoint.metadata(name).await?.is_some() {
            return Err(ObjectError::Deleting);
        }
        self.send(target).await?;
        Ok(Action::Replaced)
    }
}
