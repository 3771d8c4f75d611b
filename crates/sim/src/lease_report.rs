//! The leases that the processes of a run hold at one time.

use std::fmt;

use lariat_cache::CachedObject;
use lariat_cluster::StoredObject;
use lariat_core::{Gvk, ObjectKey, RawObject};
use lariat_lease::{ShardKey, Share};

use crate::actors::IncarnationId;
use crate::observed::Observed;

/// The leases of all living processes, as they see them.
#[derive(Debug, Clone)]
pub(crate) struct LeaseReport {
    pub(crate) phase: ReportPhase,
    pub(crate) members: Vec<Member>,
}

/// The time of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportPhase {
    /// Two lease durations and what is allowed on top of that after the last fault.
    Held,
    /// A minute before the end.
    LastMinute,
    /// At rest, when nothing goes on any more.
    Rest,
}

/// The lease of one process, as it sees it.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) incarnation: IncarnationId,
    /// Whether it leads, or is a member of the ring.
    pub(crate) leads: bool,
    /// Its share of the ring; none in an election.
    pub(crate) share: Option<Share>,
}

impl Member {
    /// Returns whether it may handle the objects of a scope.
    pub(crate) fn holds(&self, place: LeaseScope) -> bool {
        self.leads
            && match (place, &self.share) {
                // Without a share there is no ring, and a leader holds every key.
                (LeaseScope::Key(key), Some(share)) => share.holds(key),
                _ => true,
            }
    }
}

impl fmt::Display for LeaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:", self.phase)?;
        for Member {
            incarnation,
            leads,
            share,
        } in &self.members
        {
            let leads = if *leads { "" } else { "not " };
            write!(
                f,
                " {} ({}) is {leads}a holder",
                incarnation.process, incarnation.number
            )?;
            if let Some(share) = share {
                write!(f, " among {}", share.members())?;
            }
        }
        Ok(())
    }
}

/// The objects that one process at a time may handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeaseScope {
    /// In an election, everything.
    All,
    /// In a ring, what has one hash.
    Key(ShardKey),
}

impl LeaseScope {
    /// Returns the place of an object that has no owner.
    pub(crate) fn of_key(kind: &Gvk, key: &ObjectKey) -> Self {
        Self::Key(ShardKey::of_key(kind, key))
    }

    /// Returns the place of an object as the server has it.
    pub(crate) fn of_stored(kind: &Gvk, object: &StoredObject) -> Self {
        match RawObject::parse(&object.json(), kind) {
            Ok(raw) => Self::Key(ShardKey::of_object(kind, &CachedObject::new(raw))),
            // The server stores only what it could parse, so this is only a fallback.
            Err(_) => Self::of_key(kind, object.key()),
        }
    }

    /// Returns the place of an object in a ring.
    pub(crate) fn of(kind: &Gvk, shown: &Observed) -> Self {
        Self::Key(ShardKey::of_object(kind, &shown.object))
    }
}
