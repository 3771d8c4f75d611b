//! One call of a set: what its options say, and which caches can be looked into.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use kube::api::PatchParams;
use lariat_cache::{Informer, Phase};
use lariat_core::{Gvk, ObjectKey, ResourceKind, Scope};
use parking_lot::Mutex;

use super::error::{ObjectError, ObjectFailure};
use super::send::Endpoint;
use super::set::Apply;

/// How many requests of a call are under way at a time.
const AT_A_TIME: usize = 8;

/// Runs futures, a few at a time; returns what they answer, in order.
pub(super) async fn bounded<T>(calls: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(calls).buffered(AT_A_TIME).collect().await
}

/// One call: what the options say, and which caches can be looked into.
pub(super) struct Run<'a> {
    pub(super) set: &'a Apply,
    /// The caches that were asked for, of kinds that have one which is filled. None is opened.
    caches: Mutex<BTreeMap<Gvk, Option<Informer>>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(set: &'a Apply) -> Self {
        let caches = Mutex::default();
        Self { set, caches }
    }

    /// Returns the cache of a kind, if there is one and it is filled. To ask is to use it: kinds that have nothing to
    /// do with the set are not asked for, so that those which nobody uses end.
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
        caches.insert(gvk.clone(), informer.clone());
        informer
    }

    /// Returns whether the operator only plans, so that what is sent are dry runs.
    pub(super) fn is_planning(&self) -> bool {
        self.set.operator.only_plans()
    }

    pub(super) fn params(&self) -> PatchParams {
        PatchParams {
            force: self.set.options.force,
            ..PatchParams::apply(&self.set.operator.name)
        }
    }

    pub(super) fn endpoint<'b>(
        &self,
        resource: &'b ResourceKind,
        key: &'b ObjectKey,
    ) -> Endpoint<'b> {
        Endpoint::within(&self.set.client, resource, key.namespace())
    }

    /// Returns the cache of a kind, if it holds all objects of a namespace, or of all for `None`.
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

    /// Returns the failure to read or note what the owner says of its sets.
    pub(super) fn of_owner(&self, error: ObjectError) -> ObjectFailure {
        ObjectFailure::new(&self.set.owner_gvk, self.set.owner.key(), error)
    }

    /// Returns whether a write of the owner may have been refused because it is gone, or another by now.
    pub(super) fn may_be_gone(error: &ObjectError) -> bool {
        let ObjectError::Refused { source, .. } = error else {
            return false;
        };
        matches!(&**source, kube::Error::Api(status) if matches!(status.code, 404 | 409 | 422))
    }
}
