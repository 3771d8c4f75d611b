//! Removes a finalizer from all objects of a kind without cleanup, to uninstall an operator.

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

/// The number of objects of a list request.
const PAGE: u32 = 500;

/// The number of times that an expired list is started again.
const LISTS: usize = 10;

/// The field manager of the patches; the removal needs no operator.
const MANAGER: &str = "lariat-finalizer-removal";

/// The result of removing a finalizer from all objects of a kind.
#[derive(Debug, Default)]
#[must_use = "some objects may have kept the finalizer"]
pub struct FinalizerRemoval {
    removed: usize,
    failed: Vec<(ObjectKey, ApiError)>,
}

impl FinalizerRemoval {
    /// Returns the number of objects from which the finalizer was removed.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.removed
    }

    /// Returns the objects that still have the finalizer, with the errors.
    #[must_use]
    pub fn failed(&self) -> &[(ObjectKey, ApiError)] {
        &self.failed
    }

    /// Returns whether no object has the finalizer any more.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }
}

impl<K: View> Finalizer<K> {
    /// Removes the finalizer from all objects of a kind, without cleanup.
    ///
    /// Use it to uninstall an operator: an object with a finalizer that no program removes can never be deleted. First
    /// deregister the reconciler, or stop the program, because the reconciler would add the finalizer again. The lease of
    /// an election is not needed.
    ///
    /// The objects are listed from the API server in pages, so the kind need not be cached. If an object cannot be
    /// patched, the others are patched all the same; see [`FinalizerRemoval::failed`]. It needs the verbs `list` and
    /// `patch`. It also needs `get` for objects that change after they are listed: without it, those are among the
    /// failed ones, and a further call may succeed.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat::SharedControllerFactory;
    /// use lariat::operator::Finalizer;
    ///
    /// # async fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let removal = Finalizer::new("demo.dev/bucket").remove_from_all(&factory.for_object::<ConfigMap>()).await?;
    /// for (key, error) in removal.failed() {
    ///     println!("{key}: {error}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The kind is not served, or its objects could not be listed completely. Some objects may have been patched; call
    /// it again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some of the objects have been patched.
    pub async fn remove_from_all(
        &self,
        kind: &SharedController<K>,
    ) -> Result<FinalizerRemoval, FinalizerRemovalError> {
        name::check(&self.name)?;
        // The program that uninstalls an operator has stopped, or is not even started, so it has no lease.
        let wire = Wire::unfenced(&kind.client()).await?;
        let mut removal = FinalizerRemoval::default();
        let mut lists = 1;
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = match wire.page(&params).await {
                Ok(page) => page,
                // The list starts again. Objects that were patched already no longer have the finalizer and are
                // skipped.
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

    /// Removes the finalizer from an object; returns whether the object had it.
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
        // With the listed resource version: finalizers that others have added since must not be lost.
        let patch = Patch::Merge(without(&self.name, &object));
        match wire.patch(object.key(), None, &params, &patch).await {
            Ok(_) => Ok(true),
            // A patch finds out that the object was deleted, without a read, which may be forbidden.
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
            // A list that was started again contains the failed objects once more.
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
