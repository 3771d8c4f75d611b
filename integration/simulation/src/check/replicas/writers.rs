//! No write of a former holder is committed after the next one has begun.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lariat_cluster::{Commit, StoredObject};
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, IncarnationId, Moment};

use super::Places;
use super::terms::Terms;
use crate::check::{Check, Findings};
use crate::lease_scope::LeaseScope;
use crate::oracle::Oracle;
use crate::setup::{Setup, WRITER};

/// No handler's write is committed after another process's call for the key began.
///
/// The exception is what the documentation of a fenced client and of the drain timeout says: a write that was on its
/// way for longer than the [margin](Setup::margin) after the call that sent it had ended, or after the deadline of its
/// process, whichever came first. As for [`OneHolder`](super::holders::OneHolder), a key in a ring is what is hashed,
/// and the contract leaves out a holder whose lease has vanished.
pub(super) struct OneWriter {
    setup: Arc<Setup>,
    places: Places,
    terms: Terms,
    /// Calls under way with their places and the events with which they began.
    running: BTreeMap<Call, (Option<LeaseScope>, u64)>,
    writes: BTreeMap<Arc<str>, Sent>,
    /// The last call of each process for a place that began.
    begun: BTreeMap<LeaseScope, BTreeMap<IncarnationId, u64>>,
    /// Pairs of an old and a new holder the contract says nothing about.
    may_meet: BTreeSet<(IncarnationId, IncarnationId)>,
    /// The marks that were seen in objects.
    committed: BTreeSet<Arc<str>>,
}

type Call = (IncarnationId, Gvk, ObjectKey);

/// A write that was sent.
struct Sent {
    call: Call,
    place: LeaseScope,
    /// The event with which the call began.
    began: u64,
    /// The time at which the call ended.
    ended: Option<Duration>,
}

impl OneWriter {
    pub(super) fn new(setup: &Arc<Setup>) -> Self {
        Self {
            setup: Arc::clone(setup),
            places: Places::new(setup),
            terms: Terms::new(setup),
            running: BTreeMap::new(),
            writes: BTreeMap::new(),
            begun: BTreeMap::new(),
            may_meet: BTreeSet::new(),
            committed: BTreeSet::new(),
        }
    }

    fn began(&mut self, call: Call, place: Option<LeaseScope>, number: u64) {
        if let Some(place) = place {
            let incarnation = &call.0;
            let others = self.begun.entry(place).or_default();
            let may_meet = others
                .keys()
                .filter(|old| self.terms.may_meet(old, incarnation));
            let pairs: Vec<_> = may_meet
                .map(|old| (old.clone(), incarnation.clone()))
                .collect();
            self.may_meet.extend(pairs);
            others.insert(incarnation.clone(), number);
        }
        self.running.insert(call, (place, number));
    }

    fn ended(&mut self, call: &Call, at: Duration) {
        self.running.remove(call);
        let sent = self
            .writes
            .values_mut()
            .filter(|it| it.call == *call && it.ended.is_none());
        sent.for_each(|it| it.ended = Some(at));
    }

    fn committed(&mut self, object: &StoredObject, at: Duration) -> Option<String> {
        let value = object.value();
        let mark = value["metadata"]["annotations"][WRITER].as_str()?;
        // The mark stays in later states, which others write.
        if self.committed.contains(mark) {
            return None;
        }
        let (mark, sent) = self.writes.get_key_value(mark)?;
        self.committed.insert(Arc::clone(mark));
        let incarnation = &sent.call.0;
        let deadline = self.terms.deadline(incarnation).unwrap_or_default();
        // After its deadline a process must not write, whether or not its call has ended.
        let end = sent.ended.map_or(deadline, |ended| ended.min(deadline));
        if at > end + self.setup.margin() {
            return None;
        }
        let others = self.begun.get(&sent.place)?.iter();
        let mut later = others.filter(|(other, began)| {
            other.process != incarnation.process
                && **began > sent.began
                && !self
                    .may_meet
                    .contains(&(incarnation.clone(), (*other).clone()))
        });
        let (next, _) = later.next()?;
        let (_, kind, key) = &sent.call;
        Some(format!(
            "a write of {} to {} {key} is committed after a call of {} has begun; its own ended at {end:.3?}",
            incarnation.process,
            kind.kind(),
            next.process
        ))
    }
}

impl Check for OneWriter {
    fn name(&self) -> &'static str {
        "one writer per key"
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
                let call = (
                    handler.incarnation.clone(),
                    handler.kind.clone(),
                    key.clone(),
                );
                let place = self.places.of(handler, key, *run, object.as_ref());
                self.began(call, place, moment.number);
            }
            Event::Ended { handler, key, .. } => {
                let call = (
                    handler.incarnation.clone(),
                    handler.kind.clone(),
                    key.clone(),
                );
                self.ended(&call, moment.at);
            }
            Event::Writes {
                incarnation,
                kind,
                key,
                mark,
            } => {
                let call = (incarnation.clone(), kind.clone(), key.clone());
                if let Some((Some(place), began)) = self.running.get(&call).copied() {
                    let sent = Sent {
                        call,
                        place,
                        began,
                        ended: None,
                    };
                    self.writes.insert(Arc::clone(mark), sent);
                }
            }
            Event::Committed(Commit::Stored(object)) => {
                return self.committed(object, moment.at).into_iter().collect();
            }
            _ => {}
        }
        Vec::new()
    }
}
