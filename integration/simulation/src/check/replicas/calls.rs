//! Everything has a holder, which has handled the last state.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_cluster::StoredObject;
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{
    Event, HandlerId, IncarnationId, LeaseReport, Moment, Observed, ReportPhase,
};

use crate::check::{Check, Findings};
use crate::lease_scope::LeaseScope;
use crate::oracle::Oracle;
use crate::setup::{Setup, kinds};

/// After the faults every object has one holder, which has handled its last state.
///
/// In time is [`Setup::settles`]: two lease durations, the drain timeout, and what a cache takes to be filled. At rest
/// the last call that the process that holds an object now has made of each handler has seen the last state, and has
/// ended well. Deletions are left out: one that happens while a key moves may go unseen.
pub(super) struct HolderSawLast {
    setup: Arc<Setup>,
    last: BTreeMap<(HandlerId, ObjectKey), Last>,
}

/// The last call of a handler for a key.
struct Last {
    shown: Option<Observed>,
    is_done: bool,
}

impl HolderSawLast {
    pub(super) fn new(setup: &Arc<Setup>) -> Self {
        Self {
            setup: Arc::clone(setup),
            last: BTreeMap::new(),
        }
    }

    fn report(&self, oracle: &Oracle, report: &LeaseReport) -> Findings {
        if report.phase == ReportPhase::LastMinute {
            return Vec::new();
        }
        let mut found = Vec::new();
        for kind in kinds() {
            for (key, object) in oracle.all(&kind) {
                // The place of the stored state: the last owner decides, whatever states were handled before.
                let place = if self.setup.is_sharded {
                    LeaseScope::of_stored(&kind, object)
                } else {
                    LeaseScope::All
                };
                let holders: Vec<&IncarnationId> = report
                    .members
                    .iter()
                    .filter(|member| place.is_held_by(member))
                    .map(|member| &member.incarnation)
                    .collect();
                match holders.as_slice() {
                    // At this phase the new holder has just taken over, and its calls may still be under way.
                    [_] if report.phase == ReportPhase::Held => {}
                    [holder] => {
                        found.extend(self.unhandled(&kind, key, object, holder));
                    }
                    _ => {
                        let (count, kind) = (holders.len(), kind.kind());
                        found.push(format!("{kind} {key} has {count} holders after the faults"));
                    }
                }
            }
        }
        found
    }

    /// Returns the holder's handlers that have not handled an object's last state.
    fn unhandled(
        &self,
        kind: &Gvk,
        key: &ObjectKey,
        object: &StoredObject,
        holder: &IncarnationId,
    ) -> Findings {
        let stored = (object.uid(), object.revision());
        let mut found = Vec::new();
        for number in 0..self.setup.handlers {
            let handler = HandlerId {
                incarnation: holder.clone(),
                kind: kind.clone(),
                name: Arc::from(format!("h{number}")),
            };
            let about = format!(
                "h{number} of {}: the last call for {} {key}",
                holder.process,
                kind.kind()
            );
            let Some(last) = self.last.get(&(handler, key.clone())) else {
                found.push(format!("{about} never came"));
                continue;
            };
            let shown = last
                .shown
                .as_ref()
                .map(|shown| (&*shown.uid, shown.version));
            if shown != Some(stored) {
                let shown = shown.map_or(0, |(_, version)| version);
                found.push(format!(
                    "{about} saw version {shown}, the server has {}",
                    object.revision()
                ));
            } else if !last.is_done {
                found.push(format!("{about} has not ended well"));
            }
        }
        found
    }
}

impl Check for HolderSawLast {
    fn name(&self) -> &'static str {
        "every key has a holder"
    }

    fn saw(&mut self, oracle: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Began {
                handler,
                key,
                object,
                ..
            } => {
                let (of, shown) = ((handler.clone(), key.clone()), object.clone());
                self.last.insert(
                    of,
                    Last {
                        shown,
                        is_done: false,
                    },
                );
            }
            Event::Ended {
                handler,
                key,
                result,
                ..
            } => {
                let of = (handler.clone(), key.clone());
                if let Some(last) = self.last.get_mut(&of) {
                    last.is_done = matches!(result, Some(Ok(())));
                }
            }
            Event::LeasesReported(report) => return self.report(oracle, report),
            _ => {}
        }
        Vec::new()
    }
}
