//! OpenAPI v3: an index, and a document for every group and version.
//!
//! A custom kind has the schema of its CRD, a built-in one that of its type, so that
//! `kubectl explain` shows it. Both have what kubectl looks for before it sends an object: an
//! operation that patches the kind and takes the parameter `fieldValidation`.

mod custom;
mod document;
mod names;
mod operations;

pub(crate) use document::{document, index};
