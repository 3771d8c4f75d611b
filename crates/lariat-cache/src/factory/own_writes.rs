//! Showing in the caches what was written through the clients.

use std::sync::Weak;

use http::Method;
use lariat_core::{ObjectKey, RawObject, Uid};
use serde::Deserialize;

use super::Shared;
use crate::client::{Write, WriteObserver};
use crate::informer::Core;

/// Brings the answers of writes into the caches, ahead of their watches.
///
/// What is not certain is left to the watch: subresources that answer with something else, deletions of
/// whole collections, and objects a field selector may leave out.
pub(super) struct OwnWrites {
    pub(super) factory: Weak<Shared>,
}

/// What an answer says beside the object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    kind: String,
    metadata: Metadata,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<String>>,
}

/// The details of a Status.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    uid: String,
}

impl WriteObserver for OwnWrites {
    fn wrote(&self, write: &Write, answer: &[u8]) {
        let Some(factory) = self.factory.upgrade() else {
            return;
        };
        let Some(core) = factory.written_to(write) else {
            return;
        };
        let Ok(read) = serde_json::from_slice::<Answer>(answer) else {
            return;
        };
        let gvk = core.gvk().clone();
        if read.kind == "Status" && write.method == Method::DELETE && write.subresource.is_none() {
            let namespace = write.namespace.as_deref().unwrap_or_default();
            let key = ObjectKey::namespaced(namespace, &write.name);
            let uid = (!read.details.uid.is_empty()).then(|| Uid::new(&read.details.uid));
            return core.deleted(&key, uid.as_ref());
        }
        if read.kind != gvk.kind() {
            return;
        }
        let Ok(object) = RawObject::parse(answer, &gvk) else {
            return;
        };
        match read.metadata.is_gone(write.method == Method::DELETE) {
            true => core.deleted(object.key(), Some(object.uid())),
            false => core.wrote(object),
        }
    }
}

impl Metadata {
    /// Returns whether an object is gone by the write that was answered with it.
    fn is_gone(&self, by_deletion: bool) -> bool {
        let held = self
            .finalizers
            .as_ref()
            .is_some_and(|names| !names.is_empty())
            || self.deletion_grace_period_seconds.unwrap_or(0) > 0;
        match self.deletion_timestamp {
            // The last finalizer was removed, or there was none.
            Some(_) => !held,
            // Some kinds are answered with their last state.
            None => by_deletion,
        }
    }
}

impl Shared {
    /// Returns the cache of the kind that was written, if it is cached.
    fn written_to(&self, write: &Write) -> Option<std::sync::Arc<Core>> {
        let state = self.state.lock();
        let mut cores = state.kinds.values().map(|kind| &kind.core);
        let core = cores.find(|core| {
            core.resource().is_some_and(|resource| {
                resource.plural() == write.plural && resource.gvk().api_path() == write.api_path
            })
        });
        core.cloned()
    }
}
