//! Keys that were enqueued after a delay.

use std::collections::BTreeMap;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{HandlerId, IncarnationId};

use super::promise::{CLOCKS, DueReason};

/// The times at which delayed keys come due for all handlers, until one is called.
///
/// A stop keeps what comes due meanwhile, too.
///
/// Of two delays of a key, of whatever handlers, the earlier wins.
#[derive(Default)]
pub(super) struct Delays(BTreeMap<DelayedKey, Delay>);

/// A key of a controller, in one incarnation of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DelayedKey {
    pub(super) incarnation: IncarnationId,
    pub(super) kind: Gvk,
    pub(super) key: ObjectKey,
}

/// The earliest of the delays of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delay {
    pub(super) due: Duration,
    /// Whether its kind had a handler when the delay was added.
    ///
    /// Otherwise the key is kept until the controller ends, about a minute after it has no handler.
    pub(super) is_kept: bool,
}

impl Delays {
    /// Adds a delay; returns when its key comes due, and why.
    ///
    /// Delays that had ended by `ended_by` count no more; none while a stop keeps them.
    pub(super) fn add(
        &mut self,
        of: DelayedKey,
        delay: Delay,
        ended_by: Option<Duration>,
    ) -> (Duration, DueReason) {
        let earliest = self.0.entry(of).or_insert(delay);
        // A delay that has ended made its key ready and is no longer in the queue, so it cannot win over the new one.
        if ended_by.is_some_and(|by| earliest.due + CLOCKS <= by) {
            *earliest = delay;
        }
        // Computed before the assignment below, which would make it true in any case.
        let is_certain = earliest.is_kept || delay.due <= earliest.due;
        if delay.due <= earliest.due {
            *earliest = delay;
        }
        if is_certain {
            (earliest.due, DueReason::Enqueued)
        } else {
            (delay.due, DueReason::EnqueuedAgain)
        }
    }

    /// Ends the delay of a key that a handler is called for, if it is due.
    pub(super) fn called(&mut self, handler: &HandlerId, key: &ObjectKey, now: Duration) {
        let of = DelayedKey {
            incarnation: handler.incarnation.clone(),
            kind: handler.kind.clone(),
            key: key.clone(),
        };
        let delay = self.0.get(&of);
        // An earlier call has another reason: the delay stays in the queue, and its call is still to come.
        if delay.is_some_and(|delay| delay.due <= now + CLOCKS) {
            self.0.remove(&of);
        }
    }

    pub(super) fn forget_kind(&mut self, incarnation: &IncarnationId, kind: &Gvk) {
        self.0
            .retain(|of, _| of.incarnation != *incarnation || of.kind != *kind);
    }

    pub(super) fn forget_incarnation(&mut self, incarnation: &IncarnationId) {
        self.0.retain(|of, _| of.incarnation != *incarnation);
    }
}
