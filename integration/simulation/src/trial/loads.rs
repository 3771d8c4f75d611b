//! Loads and relists that the plan asks the trial's program for.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_cache::{CachedObject, Informer, Query};
use lariat_core::ObjectKey;
use lariat_sim::Process;
use lariat_sim::internals::{ActivityKind, ProcessExt};

/// Asks for a list of a kind, which the checkers expect if the cache is read now.
///
/// A kind that is not read now is listed at the next start.
pub(super) fn relist(process: &Process, informer: &Informer) {
    let loads = informer.status().loads;
    if informer.relist() {
        let kind = informer.gvk().clone();
        process.acts(ActivityKind::Relisted { kind, loads });
    }
}

/// Fetches an object, which must not be older than a state that the cache has got meanwhile.
pub(super) async fn load(informer: Informer, key: ObjectKey) {
    let Some(before) = informer.store().get(&key) else {
        return;
    };
    let loaded = informer.load(&key).await;
    // Nothing else runs between the answer and this look.
    let (Ok(Some(loaded)), Some(now)) = (loaded, informer.store().get(&key)) else {
        return;
    };
    // The state of a restored backup has a version that is smaller than the one that was cached.
    if now.uid() == loaded.uid() && number(&now) > number(&before) {
        assert_not_older(&loaded, &now);
    }
}

/// Fetches all objects, none of which may be older than the state that was cached before.
pub(super) async fn load_all(informer: Informer) {
    let before = informer.store().snapshot();
    let before: BTreeMap<ObjectKey, Arc<CachedObject>> = before
        .iter()
        .map(|object| (object.key().clone(), Arc::clone(object)))
        .collect();
    let Ok(loaded) = informer.load_all(&Query::all()).await else {
        return;
    };
    for loaded in loaded {
        let (before, now) = (before.get(loaded.key()), informer.store().get(loaded.key()));
        let (Some(before), Some(now)) = (before, now) else {
            continue;
        };
        // As above: after a restored backup the cache has a smaller version than before.
        if before.uid() == loaded.uid() && number(&now) >= number(before) {
            assert_not_older(&loaded, before);
        }
    }
}

fn assert_not_older(loaded: &CachedObject, cached: &CachedObject) {
    let (key, loaded, cached) = (loaded.key(), number(loaded), number(cached));
    assert!(
        loaded >= cached,
        "{key} is loaded at {loaded}, and cached at {cached}"
    );
}

fn number(object: &CachedObject) -> u64 {
    object.version().number().unwrap_or(0)
}
