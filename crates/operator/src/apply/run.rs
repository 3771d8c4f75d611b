//! One apply of a set: its options and the caches it may use.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use kube::api::PatchParams;
use lariat_cache::{Informer, Phase};
use lariat_core::{Gvk, ObjectKey, ResourceKind, Scope};
use parking_lot::Mutex;

use super::error::{ObjectError, ObjectFailure};
use super::resolve::Target;
use super::send::Endpoint;
use super::set::Apply;

/// The number of concurrent requests of one apply.
const AT_A_TIME: usize = 8;

/// Runs futures, a few at a time, and returns their outputs in order.
pub(super) async fn bounded<T>(calls: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(calls).buffered(AT_A_TIME).collect().await
}

/// One apply of a set: its options and the caches it may use.
pub(super) struct Run<'a> {
    pub(super) set: &'a Apply,
    /// The caches that were looked up; `None` for kinds without a synced cache.
    ///
    /// An apply opens no caches, and sees the same ones from beginning to end.
    caches: Mutex<BTreeMap<Gvk, Option<Informer>>>,
    /// Whether all writes are dry runs that the set asked for.
    pub(super) is_dry: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(set: &'a Apply) -> Self {
        Self {
            set,
            caches: Mutex::default(),
            is_dry: false,
        }
    }

    /// Creates an apply whose writes are all dry runs.
    pub(super) fn dry(set: &'a Apply) -> Self {
        Self {
            is_dry: true,
            ..Self::new(set)
        }
    }

    /// Returns the cache of a kind, if there is one and it is synced.
    ///
    /// A lookup keeps a cache in use. So kinds outside of the set are not looked up, and their caches can end when
    /// no other program uses them.
    pub(super) fn informer(&self, gvk: &Gvk) -> Option<Informer> {
        let mut caches = self.caches.lock();
        if let Some(informer) = caches.get(gvk) {
            return informer.clone();
        }
        let informer = self
            .set
            .operator
            .caches
            .existing(gvk)
            .filter(|informer| informer.status().phase == Phase::Synced);
        // Absence is remembered too: a cache that syncs during an apply must not change its decisions half-way.
        caches.insert(gvk.clone(), informer.clone());
        informer
    }

    /// Returns whether all writes are dry runs, for this plan or because the operator only plans.
    pub(super) fn is_planning(&self) -> bool {
        self.is_dry || self.set.operator.only_plans()
    }

    /// Returns the field managers under which the operator applies and has applied.
    pub(super) fn managers(&self) -> Vec<Arc<str>> {
        let operator = &self.set.operator;
        let mut names = vec![Arc::clone(&operator.name)];
        names.extend(operator.former());
        names
    }

    pub(super) fn params(&self, target: &Target) -> PatchParams {
        PatchParams {
            force: target.options.force.unwrap_or(self.set.options.force),
            ..PatchParams::apply(&self.set.operator.name)
        }
    }

    pub(super) fn endpoint<'b>(
        &self,
        resource: &'b ResourceKind,
        key: &'b ObjectKey,
    ) -> Endpoint<'b> {
        Endpoint::within(&self.set.client, resource, key.namespace()).dry(self.is_dry)
    }

    /// Returns the cache of a kind, if it has all objects of a namespace.
    ///
    /// `None` stands for all namespaces. A cache with a selection may lack objects, and its absences mean nothing.
    pub(super) fn cache_of(
        &self,
        resource: &ResourceKind,
        namespace: Option<&str>,
    ) -> Option<Informer> {
        let informer = self.informer(resource.gvk())?;
        let selection = informer.selection();
        let namespaces = selection.namespaces();
        let covered = match namespace {
            _ if namespaces.is_empty() || resource.scope() == Scope::Cluster => true,
            Some(namespace) => namespaces.iter().any(|each| &**each == namespace),
            None => false,
        };
        let everything = selection.labels().is_empty() && selection.fields().is_empty();
        (covered && everything).then_some(informer)
    }

    /// Returns the failure of reading or writing the record on the owner.
    pub(super) fn of_owner(&self, error: ObjectError) -> ObjectFailure {
        ObjectFailure::new(&self.set.owner_gvk, self.set.owner.key(), error)
    }

    /// Returns whether a write of the owner failed because it may have changed.
    ///
    /// The owner may have been changed (409), deleted (404), or recreated under another uid (422).
    pub(super) fn may_be_gone(error: &ObjectError) -> bool {
        let ObjectError::Refused { source, .. } = error else {
            return false;
        };
        matches!(&**source, kube::Error::Api(status) if matches!(status.code, 404 | 409 | 422))
    }
}
