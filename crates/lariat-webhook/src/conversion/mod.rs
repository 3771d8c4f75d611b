//! Conversion between the versions of a custom resource.

mod conversion;
mod error;
mod metadata;
mod review;
mod version;

pub use conversion::Conversion;
pub use error::ConversionError;

pub(crate) use review::{Convert, review};
