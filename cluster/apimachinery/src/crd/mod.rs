//! CustomResourceDefinitions: their defaults, and what is wrong with one.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`.

#[cfg(test)]
mod answers;
mod approval;
mod conversion;
mod costs;
mod lists;
mod names;
mod parts;
mod position;
mod prepare;
mod review;
mod rules;
mod schema;
mod spec;
mod structure;
#[cfg(test)]
mod tests;
mod tolerated;
mod version;

pub use approval::approval_condition;
pub use prepare::{CLEANUP, prepare_create, prepare_status, prepare_update, set_defaults};
pub use review::{ask_conversion, read_conversion};
pub use spec::{validate, validate_status};
