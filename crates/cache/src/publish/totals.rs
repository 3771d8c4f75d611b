//! The totals of a kind, and the states of its reflectors.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ResourceVersion};
use tokio::time::Instant;

use super::status::{Blind, Phase, Reconnect};

#[derive(Debug, Default)]
pub(super) struct Totals {
    /// The state of each reflector of the kind: one, or one per namespace.
    pub(super) segments: Vec<Part>,
    /// The number of the current reflectors; reports of earlier ones are ignored.
    pub(super) generation: u64,
    pub(super) loads: u64,
    pub(super) lists: u64,
    pub(super) watches: u64,
    pub(super) reconnects: [u64; Reconnect::ALL.len()],
    pub(super) unreadable: u64,
    pub(super) last_error: Option<String>,
    /// Whether `last_error` was logged.
    pub(super) is_logged: bool,
    /// The delay before the next attempt after `last_error`.
    pub(super) retry_in: Option<Duration>,
    pub(super) last_received: Option<Instant>,
    pub(super) version: Option<ResourceVersion>,
    /// The earlier version from which the next run continues, to see the last event again.
    pub(super) resume: Option<ResourceVersion>,
    /// The number of the API server's history from which all objects were last read.
    pub(super) history: u64,
    /// Since when the kind has not been served, until it has been read again.
    pub(super) unserved: Option<Unserved>,
}

/// The absence of a kind.
#[derive(Debug)]
pub(super) struct Unserved {
    pub(super) since: Instant,
    /// The versions in which it is served.
    pub(super) served: Vec<Gvk>,
}

/// The state of one reflector.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    pub(super) phase: Phase,
    /// Whether it has read all objects.
    pub(super) is_loaded: bool,
    /// Since when a synced cache has had no watch.
    pub(super) interrupted: Option<Instant>,
    /// The namespace, if the cache is used without it because it is forbidden.
    pub(super) forbidden: Option<Arc<str>>,
}

impl Totals {
    /// Returns the namespaces that the cache is used without.
    pub(super) fn forbidden(&self) -> Vec<Arc<str>> {
        let parts = self.segments.iter();
        parts.filter_map(|part| part.forbidden.clone()).collect()
    }

    /// Returns whether all objects outside forbidden namespaces have been read.
    pub(super) fn is_complete(&self) -> bool {
        let parts = &self.segments;
        parts.iter().any(|part| part.is_loaded)
            && parts
                .iter()
                .all(|part| part.is_loaded || part.forbidden.is_some())
    }

    pub(super) fn blind(&self) -> Option<Blind> {
        let unserved = self.unserved.as_ref()?;
        Some(Blind {
            lasts: unserved.since.elapsed(),
            served: unserved.served.clone(),
        })
    }

    /// Returns since when a reflector has had no watch; the earliest time of all.
    pub(super) fn interrupted(&self) -> Option<Instant> {
        self.segments
            .iter()
            .filter_map(|part| part.interrupted)
            .min()
    }
}

impl Part {
    /// Stays without the namespace if it was forbidden before.
    pub(super) fn keep_out(&mut self, before: &Self) {
        self.forbidden.clone_from(&before.forbidden);
        if self.forbidden.is_some() && before.phase != Phase::Synced {
            (self.phase, self.interrupted) = (Phase::Resolving, None);
        }
    }
}

/// Returns the phase of a kind, given the states of its reflectors.
pub(super) fn together(segments: &[Part]) -> Phase {
    // A forbidden namespace that was read before, in another form, is used as it is.
    let is_used = |part: &&Part| part.forbidden.is_none() || part.phase == Phase::Synced;
    let allowed = segments.iter().filter(is_used);
    let phases = allowed.map(|part| &part.phase);
    // Without any readable namespace there is nothing to use.
    let is_all_forbidden = phases.clone().next().is_none() && !segments.is_empty();
    if is_all_forbidden {
        return Phase::Resolving;
    }
    if phases.clone().all(|phase| *phase == Phase::Synced) {
        return Phase::Synced;
    }
    let mut sums = (0, Some(0));
    let mut listing = false;
    for phase in phases {
        if let Phase::Listing { loaded, total } = phase {
            listing = true;
            sums.0 += loaded;
            sums.1 = sums
                .1
                .zip(*total)
                .map(|(sum, total): (usize, usize)| sum.saturating_add(total));
        // This reflector will list too, and its number of objects is unknown.
        } else if *phase != Phase::Synced {
            sums.1 = None;
        }
    }
    if listing {
        Phase::Listing {
            loaded: sums.0,
            total: sums.1,
        }
    } else {
        Phase::Resolving
    }
}
