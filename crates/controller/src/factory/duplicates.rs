//! Detects other factories of the process that watch the same cluster.

use std::sync::{Arc, Weak};

use lariat_core::{Gvk, clock};
use parking_lot::Mutex;

use super::FactoryCore;
use crate::controller::ControllerCore;

/// The factories that were started in this process; some may have been dropped.
static STARTED: Mutex<Vec<Weak<FactoryCore>>> = Mutex::new(Vec::new());

/// Warns if another running factory watches a kind of the same cluster.
///
/// Creating two factories instead of sharing one is a frequent mistake: every object is then watched, cached and
/// handled twice.
///
/// A client does not reveal which cluster it connects to, but the objects do: no two clusters have an object with the
/// same uid.
pub(super) fn warn_of_any(factory: &Arc<FactoryCore>) {
    // A simulation runs several replicas of a program in one process, each with its own factory, on purpose.
    if clock::is_simulated() {
        return;
    }
    let others = register(factory);
    let own = in_use(factory);
    for other in others.iter().filter(|other| is_running(other)) {
        let theirs = in_use(other);
        let same = |core: &&Arc<ControllerCore>| theirs.iter().any(|their| have_same(core, their));
        if let Some(core) = own.iter().find(same) {
            warn(core.gvk());
        }
    }
}

fn warn(kind: &Gvk) {
    tracing::warn!(%kind, "another factory of this program watches the same cluster; share one factory by cloning it");
}

/// Registers a started factory, and returns the others.
fn register(factory: &Arc<FactoryCore>) -> Vec<Arc<FactoryCore>> {
    let mut started = STARTED.lock();
    started.retain(|each| each.strong_count() > 0);
    let is_new = !started
        .iter()
        .any(|each| each.as_ptr() == Arc::as_ptr(factory));
    if is_new {
        started.push(Arc::downgrade(factory));
    }
    let all = started.iter().filter_map(Weak::upgrade);
    all.filter(|each| !Arc::ptr_eq(each, factory)).collect()
}

fn is_running(factory: &FactoryCore) -> bool {
    factory.state.lock().life.run().is_some()
}

fn in_use(factory: &FactoryCore) -> Vec<Arc<ControllerCore>> {
    let slots = factory.slots().into_iter();
    slots.filter_map(|slot| slot.in_use()).collect()
}

/// Returns whether two controllers cache the same object, judged by the first one.
fn have_same(one: &ControllerCore, other: &ControllerCore) -> bool {
    if one.gvk() != other.gvk() {
        return false;
    }
    let (Some(one), Some(other)) = (one.opened(), other.opened()) else {
        return false;
    };
    let snapshot = one.informer().store().snapshot();
    let found = snapshot.iter().next().and_then(|object| {
        let other = other.informer().store().get(object.key())?;
        Some(other.uid() == object.uid())
    });
    found.unwrap_or(false)
}
