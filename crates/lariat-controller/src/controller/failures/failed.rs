//! A failed call, and whether it is retried.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;

use crate::panics::Panicked;

/// A call that failed.
pub(crate) struct Failed<'a> {
    pub(crate) handler: &'a Arc<str>,
    pub(crate) key: &'a ObjectKey,
    pub(crate) error: &'a Arc<str>,
    pub(crate) attempt: u32,
    pub(crate) next: Next,
    pub(crate) panicked: Option<Panicked>,
}

/// Whether and when a failed handler is called again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is retried after a delay.
    Retry(Duration),
    /// It is not retried. The handler's options may still ask for a call after a delay.
    Final(Option<Duration>),
}

impl Next {
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Final(_))
    }

    /// Returns the delay until the handler is called again; none if it is not.
    pub(crate) fn delay(self) -> Option<Duration> {
        match self {
            Self::Retry(after) => Some(after),
            Self::Final(after) => after,
        }
    }
}
