//! Objects without content, of which only the metadata is indexed.

use std::collections::HashMap;
use std::sync::Arc;

use lariat_cache::{CachedObject, Informer};
use lariat_core::ObjectKey;

use super::unread::{Unread, UnreadChange};

/// The objects of a kind that were written without their content.
///
/// They are shared with the informer, not copied.
#[derive(Debug, Default)]
pub(super) struct Bare {
    objects: HashMap<ObjectKey, Arc<CachedObject>>,
    /// The informer's number of loads at the last check.
    loads: u64,
    is_logged: bool,
}

impl Bare {
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Records what was written.
    ///
    /// Objects whose content the informer has loaded by now are queued again; [`look`](Self::look) finds later ones.
    pub(super) fn wrote(&mut self, steps: &[UnreadChange], informer: &Informer, unread: &Unread) {
        for step in steps {
            match step.new.as_ref().filter(|object| !object.has_content()) {
                Some(object) => {
                    self.objects.insert(step.key.clone(), Arc::clone(object));
                    // The content may have arrived while the row was written.
                    fill_in(object, informer, unread);
                }
                None => {
                    self.objects.remove(&step.key);
                }
            }
        }
    }

    /// Queues objects whose content the informer has loaded since the last check.
    ///
    /// The informer publishes no change for that.
    pub(super) fn look(&mut self, loads: u64, informer: &Informer, unread: &Unread) {
        // Content of many objects arrives with a load, so only then all are checked.
        if loads == self.loads {
            return;
        }
        self.loads = loads;
        for object in self.objects.values() {
            fill_in(object, informer, unread);
        }
    }

    /// Logs once that there are objects without content.
    pub(super) fn report(&mut self, informer: &Informer) {
        // During an upgrade the content is on its way.
        if self.objects.is_empty() || self.is_logged || informer.is_upgrading() {
            return;
        }
        self.is_logged = true;
        let (kind, objects) = (informer.gvk(), self.objects.len());
        tracing::warn!(
            %kind, objects,
            "objects are cached without their content, so the SQL cache has no values for fields outside their metadata: \
             give the kind another storage than OnDemand, or keep these objects in the ContentFilter"
        );
    }
}

/// Queues an object if the informer has its content by now.
fn fill_in(object: &Arc<CachedObject>, informer: &Informer, unread: &Unread) {
    let new = informer.store().get(object.key());
    if let Some(new) = new.filter(|new| new.has_content()) {
        unread.filled_in(Arc::clone(object), new);
    }
}
