//! The errors of the installation of CRDs.

use std::fmt;
use std::time::Duration;

use lariat_core::{debug_as_description, describe};

/// Some CRDs were not installed.
///
/// Its `Display` has the errors of all of them.
pub struct InstallError {
    pub(super) failures: Vec<CrdError>,
}

impl InstallError {
    /// Returns the errors, of which there is at least one.
    #[must_use]
    pub fn failures(&self) -> &[CrdError] {
        &self.failures
    }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, failure) in self.failures.iter().enumerate() {
            // With the causes of each: only one of several errors could be returned by `source`.
            write!(f, "{}{}", if n > 0 { "; " } else { "" }, describe(failure))?;
        }
        Ok(())
    }
}

impl std::error::Error for InstallError {}

debug_as_description!(InstallError, CrdError);

/// A CRD was not installed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CrdError {
    /// It has no name, or another CRD has the same name.
    #[error("the CRD {name:?} is invalid: {reason}")]
    Invalid {
        /// The name, empty if it has none.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It is missing, and may not be created.
    #[error(
        "the CRD {name} is not installed; install it, or let this program do so with Install::CreateOrUpdate"
    )]
    Missing {
        /// The name.
        name: String,
    },
    /// The installed CRD is incompatible, and cannot or may not be changed.
    #[error("the CRD {name} is installed, but {reason}")]
    Incompatible {
        /// The name.
        name: String,
        /// The differences, and what to do.
        reason: String,
    },
    /// This program lacks a permission.
    #[error(
        "this program may not {verb} the CRD {name}: grant it the verb {verb} on customresourcedefinitions of \
         the group apiextensions.k8s.io, or have the CRD installed by another client and use Install::Verify, \
         which takes get alone"
    )]
    Forbidden {
        /// The name.
        name: String,
        /// The verb of the request.
        verb: &'static str,
        /// The error of the request.
        source: Box<kube::Error>,
    },
    /// The API server refused the request.
    #[error("cannot {verb} the CRD {name}")]
    Refused {
        /// The name.
        name: String,
        /// The verb of the request.
        verb: &'static str,
        /// The error of the request.
        source: Box<kube::Error>,
    },
    /// It was not served in time.
    #[error("the CRD {name} was not ready within {after:?}: {missing}")]
    NotReady {
        /// The name.
        name: String,
        /// The timeout.
        after: Duration,
        /// What is missing, in the API server's words where it has any.
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
