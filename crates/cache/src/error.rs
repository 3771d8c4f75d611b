//! The errors of a start.

use std::fmt;
use std::time::Duration;

use lariat_core::{Gvk, debug_as_description};

use crate::publish::Phase;

/// Kinds whose caches have not synced, and why.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct SyncError {
    /// The kinds that have not synced; all others have, and remain synced.
    pub kinds: Vec<Unsynced>,
    /// The timeout, if it has passed.
    pub after: Option<Duration>,
}

/// A kind whose cache has not synced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsynced {
    /// The kind.
    pub gvk: Gvk,
    /// Its phase; `Synced` if only its content is not complete.
    pub phase: Phase,
    /// The last error.
    pub last_error: Option<String>,
}

debug_as_description!(SyncError);

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = match self.kinds.len() {
            1 => "1 kind".to_owned(),
            count => format!("{count} kinds"),
        };
        match self.after {
            Some(after) => write!(f, "{kinds} not synced after {after:?}")?,
            None => write!(f, "{kinds} cannot be synced")?,
        }
        for (at, kind) in self.kinds.iter().enumerate() {
            let separator = if at == 0 { ": " } else { "; " };
            write!(f, "{separator}{kind}")?;
        }
        Ok(())
    }
}

impl Unsynced {
    /// Returns the phase, or that only content is missing.
    pub(crate) fn state(&self) -> String {
        match self.phase {
            Phase::Synced => "its content is being read".to_owned(),
            ref phase => phase.to_string(),
        }
    }
}

impl fmt::Display for Unsynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.last_error {
            // The error of a discovery contains the kind already.
            Some(error) if error.contains(&self.gvk.to_string()) => f.write_str(error),
            Some(error) => write!(f, "{}: {error}", self.gvk),
            None => write!(f, "{}: {}", self.gvk, self.state()),
        }
    }
}
