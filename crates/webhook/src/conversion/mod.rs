//! Conversion between the versions of a custom resource.
//!
//! A [`Conversion`] has a `version` for each type, with its functions to the hub and from it. `review` converts all
//! objects of a request, and `metadata` checks that a function leaves the metadata alone.

mod conversion;
mod error;
mod metadata;
mod review;
mod version;

pub use conversion::Conversion;
pub use error::ConversionError;

pub(crate) use review::{Convert, review};
