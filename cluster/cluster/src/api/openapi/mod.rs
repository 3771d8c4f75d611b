//! OpenAPI: v3, an index and a document for every group and version; and v2, one document about everything.
//!
//! A custom kind has the schema of its CRD, a built-in one that of its type, so that `kubectl explain` shows it. Both
//! have what kubectl looks for before it sends an object: an operation that patches the kind and takes the parameter
//! `fieldValidation`. Documents are cached at the first request and kept, compressed, until what they describe changes.

mod answer;
mod custom;
mod digest;
mod document;
mod encoding;
mod fixed;
mod media;
mod names;
mod operation;
mod operations;
mod parameters;
mod parts;
mod paths;
mod v2;

pub(crate) use answer::{answer, answer_index, answer_v2};
