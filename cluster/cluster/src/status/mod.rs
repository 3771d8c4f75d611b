//! The errors of the API: Kubernetes `Status` objects.
//!
//! Texts are those of the API server where clients or people read them.

mod codes;
mod conflicts;
mod error;
mod refusals;
mod warnings;

pub(crate) use error::{ApiError, deleted};
pub(crate) use refusals::PolicyCause;
pub(crate) use warnings::Warnings;
