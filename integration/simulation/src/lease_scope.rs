//! What one holder of a lease may handle.

use lariat_cache::CachedObject;
use lariat_cluster::StoredObject;
use lariat_core::{Gvk, ObjectKey, RawObject};
use lariat_lease::ShardKey;
use lariat_sim::internals::{Member, Observed};

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

    /// Returns whether a process may handle the objects of the scope, as it sees its lease.
    pub(crate) fn is_held_by(self, member: &Member) -> bool {
        member.leads
            && match (self, &member.share) {
                // Without a share there is no ring, and a leader holds every key.
                (Self::Key(key), Some(share)) => share.holds(key),
                _ => true,
            }
    }
}
