//! A key is with one process at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_core::ObjectKey;
use lariat_sim::internals::{Event, HandlerId, IncarnationId, Moment};

use super::Places;
use super::terms::{ROUNDING, Terms};
use crate::check::{Check, Findings};
use crate::lease_scope::LeaseScope;
use crate::oracle::Oracle;
use crate::setup::Setup;

/// At most one process handles a key at a time; in an election, any key.
///
/// What counts as a key in a ring is the identity that is hashed: an object's controlling owner, or the object itself.
/// An object belongs to the owner it has in the state that a worker has taken; one whose owner changes belongs to two
/// members as long as one of them has not seen the change, or still handles the state before it. Nor is anything said
/// where [the contract leaves it out](Terms::may_meet).
///
/// No call begins after the own deadline. A process that is suspended counts as a holder until its own deadline: a call
/// it was in when it was suspended goes on for a moment when it goes on, and what it writes then is refused, which
/// [`OneWriter`](super::writers::OneWriter) checks.
pub(super) struct OneHolder {
    places: Places,
    terms: Terms,
    /// Calls under way.
    running: BTreeMap<Call, Option<LeaseScope>>,
}

type Call = (HandlerId, ObjectKey);

impl OneHolder {
    pub(super) fn new(setup: &Arc<Setup>) -> Self {
        Self {
            places: Places::new(setup),
            terms: Terms::new(setup),
            running: BTreeMap::new(),
        }
    }

    fn began(&self, moment: &Moment, (handler, key): &Call, place: Option<LeaseScope>) -> Findings {
        let incarnation = &handler.incarnation;
        let call = format!(
            "{} begins a call for {} {key}",
            incarnation.process,
            handler.kind.kind()
        );
        let mut found = Vec::new();
        let deadline = self.terms.deadline(incarnation);
        if deadline.is_none_or(|deadline| deadline + ROUNDING < moment.at) {
            let ended = deadline.map_or_else(
                || "it has no lease".to_owned(),
                |it| format!("its lease ended at {it:.3?}"),
            );
            found.push(format!("{call}, and {ended}"));
        }
        // A deleted object no longer shows its owner, so it cannot be compared with other calls.
        let Some(place) = place else { return found };
        for ((other, theirs), at) in &self.running {
            let is_other = other.incarnation.process != incarnation.process && *at == Some(place);
            if is_other && !self.is_allowed(&other.incarnation, incarnation, moment) {
                let (process, kind) = (&other.incarnation.process, other.kind.kind());
                found.push(format!("{call} while {process} handles {kind} {theirs}"));
            }
        }
        found
    }

    fn is_allowed(&self, old: &IncarnationId, new: &IncarnationId, moment: &Moment) -> bool {
        // A suspended process cannot end its call in time. Its writes are refused, which another checker sees to.
        self.terms.is_suspended(old, moment.at) || self.terms.may_meet(old, new)
    }
}

impl Check for OneHolder {
    fn name(&self) -> &'static str {
        "one holder per key"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.terms.saw(moment, event);
        match event {
            Event::Began {
                handler,
                key,
                run,
                object,
                ..
            } => {
                let place = self.places.of(handler, key, *run, object.as_ref());
                let call = (handler.clone(), key.clone());
                let found = self.began(moment, &call, place);
                self.running.insert(call, place);
                return found;
            }
            Event::Ended { handler, key, .. } => {
                self.running.remove(&(handler.clone(), key.clone()));
            }
            Event::IncarnationEnded(incarnation) => self
                .running
                .retain(|(of, _), _| of.incarnation != *incarnation),
            _ => {}
        }
        Vec::new()
    }
}
