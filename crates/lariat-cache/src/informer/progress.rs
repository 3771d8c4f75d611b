//! How the reflector of a kind is doing.

use std::fmt;
use std::time::Duration;

use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::sync::watch;

/// What the reflector of a kind is at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing runs: not started, or stopped.
    #[default]
    Idle,
    /// The kind is looked up at the API server.
    Resolving,
    /// The first list is being read.
    Listing {
        /// How many objects have been read.
        loaded: usize,
        /// How many there are, if the API server says so.
        total: Option<usize>,
    },
    /// The cache is filled, and the watch keeps it so.
    Synced,
    /// The API server does not serve the kind; it is asked again every few seconds.
    Missing,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Resolving => f.write_str("resolving"),
            Self::Listing {
                loaded,
                total: None,
            } => write!(f, "listing, {loaded} so far"),
            Self::Listing {
                loaded,
                total: Some(total),
            } => write!(f, "listing, {loaded} of {total}"),
            Self::Synced => f.write_str("synced"),
            Self::Missing => f.write_str("not served"),
        }
    }
}

/// The state and the totals of one kind's cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KindStatus {
    /// The kind.
    pub gvk: Gvk,
    /// What its reflector is at.
    pub phase: Phase,
    /// How many objects are cached.
    pub objects: usize,
    /// How many bytes they hold.
    pub bytes: usize,
    /// Lists begun, pages not counted.
    pub lists: u64,
    /// Watches opened.
    pub watches: u64,
    /// Objects and events that could not be read, and were passed over.
    pub unreadable: u64,
    /// What went wrong last, if anything has since the last success.
    pub last_error: Option<String>,
}

/// Written by the reflector, read by everybody.
#[derive(Debug)]
pub(crate) struct Progress {
    gvk: Gvk,
    phase: watch::Sender<Phase>,
    totals: Mutex<Totals>,
}

#[derive(Debug, Default)]
struct Totals {
    lists: u64,
    watches: u64,
    unreadable: u64,
    last_error: Option<String>,
}

impl Progress {
    pub(crate) fn new(gvk: Gvk) -> Self {
        Self {
            gvk,
            phase: watch::Sender::new(Phase::Idle),
            totals: Mutex::default(),
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    pub(crate) fn list_begun(&self) {
        self.totals.lock().lists += 1;
    }

    pub(crate) fn watch_opened(&self) {
        let mut totals = self.totals.lock();
        totals.watches += 1;
        totals.last_error = None;
    }

    pub(crate) fn failed(&self, error: String, retry_in: Duration) {
        tracing::warn!(kind = %self.gvk, %error, ?retry_in, "cache is behind");
        self.totals.lock().last_error = Some(error);
    }

    /// Counts what could not be read, and says so.
    pub(crate) fn unreadable(&self, error: &dyn fmt::Display) {
        tracing::warn!(kind = %self.gvk, %error, "passed over what cannot be read");
        self.totals.lock().unreadable += 1;
    }

    pub(crate) fn status(&self, objects: usize, bytes: usize) -> KindStatus {
        let totals = self.totals.lock();
        KindStatus {
            gvk: self.gvk.clone(),
            phase: self.phase(),
            objects,
            bytes,
            lists: totals.lists,
            watches: totals.watches,
            unreadable: totals.unreadable,
            last_error: totals.last_error.clone(),
        }
    }
}
