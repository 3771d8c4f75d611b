//! Custom resource definitions (CRDs): installed, established and served before anything needs them.

mod compare;
mod ensure;
mod error;
mod json;
mod options;
mod report;
mod requests;
mod versions;

pub use ensure::ensure_definitions;
pub use error::{DefinitionError, InstallError};
pub use options::{DefinitionOptions, Install, with_definition_version};
pub use report::{DefinitionChange, DefinitionReport, Skew};
