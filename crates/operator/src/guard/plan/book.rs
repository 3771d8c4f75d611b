//! The collection of the planned writes of a factory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field;

use super::plan::Plan;
use super::write::{PlannedWrite, What};

/// Collects planned writes; clones share one collection.
#[derive(Clone, Default)]
pub(crate) struct Book(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    /// The writes, each with its first position and its number of occurrences.
    writes: HashMap<What, (u64, u64)>,
    next: u64,
    left_out: u64,
}

/// The bound of the different writes in a plan.
const MOST: usize = 10_000;

impl Book {
    /// Adds a planned write; equal writes are counted.
    pub(super) fn add(&self, what: What) {
        let mut entries = self.0.lock();
        let place = entries.next;
        if let Some((_, times)) = entries.writes.get_mut(&what) {
            *times += 1;
            return;
        }
        // A reconciler that creates objects with generated names could otherwise fill the memory.
        if entries.writes.len() == MOST {
            entries.left_out += 1;
            return;
        }
        log(&what);
        entries.next += 1;
        entries.writes.insert(what, (place, 1));
    }

    pub(crate) fn plan(&self) -> Plan {
        let entries = self.0.lock();
        let writes = entries
            .writes
            .iter()
            .map(|(what, at)| (what.clone(), *at))
            .collect();
        plan(writes, entries.left_out)
    }

    /// Returns the number of different writes.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().writes.len()
    }

    pub(crate) fn take(&self) -> Plan {
        let entries = std::mem::take(&mut *self.0.lock());
        plan(entries.writes.into_iter().collect(), entries.left_out)
    }
}

fn plan(mut writes: Vec<(What, (u64, u64))>, left_out: u64) -> Plan {
    writes.sort_by_key(|(_, (place, _))| *place);
    let writes = writes
        .into_iter()
        .map(|(what, (_, times))| PlannedWrite { what, times });
    Plan {
        writes: writes.collect(),
        left_out,
    }
}

/// Logs a planned write.
///
/// Values and the API server's message are left out, because they may be secret.
fn log(what: &What) {
    let of = what.of.as_ref();
    let key = what.key.as_ref().map_or("", |key| key.as_str());
    tracing::info!(
        reconciler = what.reconciler,
        kind = of.map(|(gvk, _)| field::display(gvk)),
        key = of.map(|(_, key)| field::display(key)),
        refused = what.refused.is_some(),
        "would {} {} {key}",
        what.verb,
        what.kind,
    );
}
