//! Why CRDs are not installed.

use std::fmt;
use std::time::Duration;

use lariat_core::{debug_as_description, describe};

/// Definitions that are not installed, all of them.
pub struct InstallError {
    pub(super) failures: Vec<CrdError>,
}

impl InstallError {
    /// Returns what failed: at least one.
    #[must_use]
    pub fn failures(&self) -> &[CrdError] {
        &self.failures
    }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, failure) in self.failures.iter().enumerate() {
            // The causes too: only one of many could be the source.
            write!(f, "{}{}", if n > 0 { "; " } else { "" }, describe(failure))?;
        }
        Ok(())
    }
}

impl std::error::Error for InstallError {}

debug_as_description!(InstallError, CrdError);

/// Why a CRD is not installed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CrdError {
    /// It has no name, or another one has the same.
    #[error("the definition {name:?} makes no sense: {reason}")]
    Invalid {
        /// Its name, empty if it has none.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It is missing, and may not be created.
    #[error(
        "the definition {name} is not installed; install it, or let this program do so with Install::CreateOrUpdate"
    )]
    Missing {
        /// Its name.
        name: String,
    },
    /// What is installed is not what this program works with, and cannot be changed into it.
    #[error("the definition {name} is installed, but {reason}")]
    Incompatible {
        /// Its name.
        name: String,
        /// What does not fit, and what to do.
        reason: String,
    },
    /// This program may not do what it takes.
    #[error(
        "this program may not {verb} the definition {name}: grant it the verb {verb} on customresourcedefinitions of \
         the group apiextensions.k8s.io, or have the definition installed by somebody else and use Install::Verify, \
         which takes get alone"
    )]
    Forbidden {
        /// Its name.
        name: String,
        /// What was tried.
        verb: &'static str,
        /// What the API server says.
        source: Box<kube::Error>,
    },
    /// The API server refuses it.
    #[error("cannot {verb} the definition {name}")]
    Refused {
        /// Its name.
        name: String,
        /// What was tried.
        verb: &'static str,
        /// What the API server says.
        source: Box<kube::Error>,
    },
    /// It was not served in time.
    #[error("the definition {name} was not ready within {after:?}: {missing}")]
    NotReady {
        /// Its name.
        name: String,
        /// How long was waited.
        after: Duration,
        /// What is missing, in the words of the API server where it has some.
        missing: String,
    },
}

impl CrdError {
    /// Returns the name of the CRD, empty if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Invalid { name, .. }
            | Self::Missing { name }
            | Self::Incompatible { name, .. }
            | Self::Forbidden { name, .. }
            | Self::Refused { name, .. }
            | Self::NotReady { name, .. } => name,
        }
    }
}
