//! Checkers of replicas that elect a leader, or divide the keys among them.

mod calls;
mod failing;
mod fenced;
mod holders;
mod leases;
mod terms;
#[cfg(test)]
mod tests;
mod writers;

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{HandlerId, IncarnationId, Observed};

use super::Check;
use crate::lease_scope::LeaseScope;
use crate::setup::Setup;

/// Returns the checkers for a setup.
pub(super) fn all(setup: &Arc<Setup>) -> Vec<Box<dyn Check>> {
    vec![
        Box::new(holders::OneHolder::new(setup)),
        Box::new(writers::OneWriter::new(setup)),
        Box::new(fenced::FencedWrites::new(setup)),
        Box::new(calls::HolderSawLast::new(setup)),
        Box::new(leases::Leases::new(setup)),
        Box::new(failing::NothingFails),
    ]
}

/// The places of the runs of each process: a run is for the place its object had when its first handler was called.
struct Places {
    setup: Arc<Setup>,
    runs: BTreeMap<(IncarnationId, Gvk, ObjectKey), (u64, Option<LeaseScope>)>,
}

impl Places {
    fn new(setup: &Arc<Setup>) -> Self {
        Self {
            setup: Arc::clone(setup),
            runs: BTreeMap::new(),
        }
    }

    /// Returns the place of a starting call.
    ///
    /// `None` for a deleted object of unknown owner.
    fn of(
        &mut self,
        handler: &HandlerId,
        key: &ObjectKey,
        run: u64,
        object: Option<&Observed>,
    ) -> Option<LeaseScope> {
        let kind = &handler.kind;
        let place = match object {
            _ if !self.setup.is_sharded => Some(LeaseScope::All),
            Some(object) => Some(LeaseScope::of(kind, object)),
            None if kind.kind() == "ConfigMap" => Some(LeaseScope::of_key(kind, key)),
            None => None,
        };
        let of = (handler.incarnation.clone(), kind.clone(), key.clone());
        let known = self.runs.entry(of).or_insert((run, place));
        if known.0 != run {
            *known = (run, place);
        }
        known.1
    }
}
