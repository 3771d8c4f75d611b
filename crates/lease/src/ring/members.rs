//! The members of a ring as one of them sees it: a state machine without I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease as Object;
use tokio::time::Instant;

use super::record::acks_of;
use crate::record::Record;

/// The other members of a ring, by their leases on the server.
///
/// A member counts from when its lease is first seen until the lease has no holder, because the member released it, or
/// because another member took it after it had expired. A lease that goes missing (deleted by hand, or by a server that
/// was restored from a backup) counts for its duration from when that was noticed, because its holder may not know yet.
#[derive(Debug)]
pub(crate) struct Members {
    /// The name of this member's lease.
    me: Arc<str>,
    /// The other members, by the names of their leases.
    others: BTreeMap<Arc<str>, Other>,
}

/// Another member.
#[derive(Debug)]
struct Other {
    /// Its lease as last seen.
    object: Object,
    /// The contents of its lease.
    record: Record,
    /// When the record was last seen to change, on the local clock.
    at: Instant,
    /// The members to which it has handed over their keys.
    acks: BTreeSet<Arc<str>>,
    /// When the lease was noticed to be missing although it was not released.
    missing: Option<Instant>,
}

impl Other {
    /// Creates a member from its lease, which was seen just now.
    fn new(object: Object, now: Instant) -> Self {
        Self {
            record: Record::of(&object),
            acks: acks_of(&object),
            object,
            at: now,
            missing: None,
        }
    }

    /// Returns when the lease expires or, if it is missing, stops counting.
    fn ends(&self) -> Instant {
        self.missing.unwrap_or(self.at) + self.record.duration()
    }
}

impl Members {
    /// Creates the view of a member that has seen no other.
    pub(crate) fn new(me: Arc<str>) -> Self {
        Self {
            me,
            others: BTreeMap::new(),
        }
    }

    /// Processes a list of the ring's leases.
    ///
    /// The list must have begun after the own lease was created.
    pub(crate) fn listed(&mut self, leases: Vec<Object>, now: Instant) {
        let mut unseen: BTreeSet<Arc<str>> = self.others.keys().cloned().collect();
        for lease in leases {
            if let Some(name) = &lease.metadata.name {
                unseen.remove(name.as_str());
            }
            self.seen(lease, now);
        }
        // A lease that is in no list was deleted unseen. It is missing, not released: a release is an update, which the
        // watch or the list would show as a lease without a holder.
        unseen.iter().for_each(|name| self.missing(name, now));
    }

    /// Processes one state of a lease.
    pub(crate) fn seen(&mut self, object: Object, now: Instant) {
        let Some(name) = object
            .metadata
            .name
            .as_deref()
            .filter(|it| **it != *self.me)
        else {
            return;
        };
        let record = Record::of(&object);
        // Released by its holder, or taken away after it had expired. Its keys are free.
        if record.holder.is_empty() {
            self.others.remove(name);
            return;
        }
        match self.others.get_mut(name) {
            Some(known) => {
                // The holder has created its lease again, or the server's data is back.
                known.missing = None;
                // Only a changed record is a renewal. An annotation, such as an acknowledgement, does not extend the
                // time.
                if known.record != record {
                    known.at = now;
                    known.record = record;
                }
                known.acks = acks_of(&object);
                known.object = object;
            }
            None => {
                let name = Arc::from(name);
                self.others.insert(name, Other::new(object, now));
            }
        }
    }

    /// Records that a lease does not exist although it was not released.
    pub(crate) fn missing(&mut self, name: &str, now: Instant) {
        if let Some(known) = self.others.get_mut(name) {
            // The first notice counts. Later lists must not prolong the wait.
            known.missing.get_or_insert(now);
        }
    }

    /// Removes members whose lease has been missing for its duration.
    ///
    /// Returns whether there were any.
    pub(crate) fn forget_missing(&mut self, now: Instant) -> bool {
        let before = self.others.len();
        self.others
            .retain(|_, other| other.missing.is_none() || other.ends() > now);
        self.others.len() != before
    }

    /// Returns a lease that has expired and may be taken from its holder.
    pub(crate) fn expired(&self, now: Instant) -> Option<&Object> {
        let mut others = self.others.values();
        // A missing lease cannot be taken, because there is no object to update.
        let expired = others.find(|other| other.missing.is_none() && other.ends() <= now);
        expired.map(|other| &other.object)
    }

    /// Returns when the next member expires or is removed unless its lease changes.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.others.values().map(Other::ends).min()
    }

    /// Returns the names of the other members' leases, in order.
    pub(crate) fn others(&self) -> impl Iterator<Item = &Arc<str>> {
        self.others.keys()
    }

    /// Returns whether all other members have handed over the keys of this one.
    pub(crate) fn all_acked(&self) -> bool {
        let mut others = self.others.values();
        others.all(|other| other.acks.contains(&self.me))
    }

    /// Returns whether this member may acknowledge others.
    ///
    /// It may not while a lease is missing: its holder may still be running, and new members cannot see it.
    pub(crate) fn may_ack(&self) -> bool {
        self.others.values().all(|other| other.missing.is_none())
    }
}
