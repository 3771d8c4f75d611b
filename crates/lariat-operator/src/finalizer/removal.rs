//! Removing a finalizer from all objects, without cleanup: for those who uninstall.

use std::sync::Arc;

use kube::api::{ListParams, Patch, PatchParams};
use lariat_cache::{CachedObject, View};
use lariat_controller::SharedController;
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use super::error::FinalizerRemovalError;
use super::finalizer::Finalizer;
use super::{held, name};
use crate::wire::{ApiError, Wire};

/// How many objects are asked for at a time.
const PAGE: u32 = 500;

/// How many times a list is begun anew that expired before its end.
const LISTS: usize = 10;

/// As whom the finalizer is removed; no operator needs to be there.
const MANAGER: &str = "lariat-finalizer-removal";

/// What came of removing a finalizer everywhere.
#[derive(Debug, Default)]
#[must_use = "some objects may have kept the finalizer"]
pub struct FinalizerRemoval {
    removed: usize,
    failed: Vec<(ObjectKey, ApiError)>,
}

impl FinalizerRemoval {
    /// Returns from how many objects the finalizer was removed.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.removed
    }

    /// Returns the objects that kept it, and why.
    #[must_use]
    pub fn failed(&self) -> &[(ObjectKey, ApiError)] {
        &self.failed
    }

    /// Returns whether no object kept it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }
}

impl<K: View> Finalizer<K> {
    /// Removes the finalizer from every object of a kind, in all namespaces, without cleaning up.
    ///
    /// This is for those who uninstall an operator: objects with a finalizer nobody removes can never be deleted.
    /// Deregister the reconciler first, or stop the program: it would put the finalizer on again.
    ///
    /// The objects are read from the API server, in pages, and not from the cache; the kind need not be watched. One
    /// that cannot be changed does not keep the others from it: look at [`FinalizerRemoval::failed`]. It needs to be allowed
    /// to list and patch the kind, and to get what somebody else changes between the two: without that, such an object is
    /// among those that failed, and can be tried again.
    ///
    /// # Errors
    ///
    /// The kind is not served, or its objects cannot be listed to the end; some objects may have been changed. It can
    /// be called again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the finalizer was removed from some objects and not from others.
    pub async fn remove_from_all(
        &self,
        kind: &SharedController<K>,
    ) -> Result<FinalizerRemoval, FinalizerRemovalError> {
        name::check(&self.name)?;
        let wire = Wire::of_kind(&kind.client()).await?;
        let mut removal = FinalizerRemoval::default();
        let mut lists = 1;
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = match wire.page(&params).await {
                Ok(page) => page,
                // What was done is done, and does not take long a second time.
                Err(error) if is_expired(&error) && lists < LISTS => {
                    lists += 1;
                    params.continue_token = None;
                    continue;
                }
                Err(source) => {
                    return Err(FinalizerRemovalError::List {
                        gvk: wire.gvk().clone(),
                        removed: removal.removed,
                        source: Box::new(source),
                    });
                }
            };
            self.remove_from_page(&wire, page.objects, &mut removal)
                .await;
            match page.next {
                Some(next) => params.continue_token = Some(next),
                None => return Ok(removal),
            }
        }
    }

    /// Removes the finalizer from an object, and returns whether it was there.
    async fn remove_from_one(
        &self,
        wire: &Wire,
        object: Arc<CachedObject>,
    ) -> Result<bool, ApiError> {
        if !self.is_on(&object) {
            return Ok(false);
        }
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(without(&self.name, &object));
        match wire.patch(object.key(), None, &params, &patch).await {
            Ok(_) => Ok(true),
            // It is gone, and was not read to find out: reading may not be allowed.
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) if error.is_conflict() => match wire.get(object.key()).await? {
                Some(now) => held::remove(wire, &self.name, MANAGER, now).await,
                None => Ok(false),
            },
            Err(error) => Err(error),
        }
    }

    async fn remove_from_page(
        &self,
        wire: &Wire,
        page: Vec<Arc<CachedObject>>,
        removal: &mut FinalizerRemoval,
    ) {
        for object in page {
            let key = object.key().clone();
            // A list that was begun anew has those that failed once more.
            removal.failed.retain(|(failed, _)| *failed != key);
            match self.remove_from_one(wire, object).await {
                Ok(true) => removal.removed += 1,
                Ok(false) => {}
                Err(error) => removal.failed.push((key, error)),
            }
        }
    }
}

/// Returns the patch that removes a finalizer from a state of an object.
fn without(name: &str, state: &CachedObject) -> Value {
    let others: Vec<&str> = state.finalizers().filter(|each| *each != name).collect();
    json!({"metadata": {"finalizers": others, "resourceVersion": state.version().to_string()}})
}

fn is_expired(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}
