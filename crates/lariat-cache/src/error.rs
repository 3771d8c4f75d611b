//! What a start can fail with.

use std::fmt;
use std::time::Duration;

use lariat_core::{Gvk, debug_as_description};

use crate::publish::Phase;

/// Kinds whose cache was not filled: which, and why.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct SyncError {
    /// The kinds that are missing; the others are filled and stay so.
    pub kinds: Vec<Unsynced>,
    /// How long was waited, if the wait ran out.
    pub after: Option<Duration>,
}

/// A kind whose cache is not filled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsynced {
    /// The kind.
    pub gvk: Gvk,
    /// What it was at.
    pub phase: Phase,
    /// What went wrong last.
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

impl fmt::Display for Unsynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.last_error {
            // The error of a lookup names the kind itself.
            Some(error) if error.contains(&self.gvk.to_string()) => f.write_str(error),
            Some(error) => write!(f, "{}: {error}", self.gvk),
            None => write!(f, "{}: {}", self.gvk, self.phase),
        }
    }
}
