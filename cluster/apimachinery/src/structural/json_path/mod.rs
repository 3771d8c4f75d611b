//! JSON paths of printer columns and scale subresources.
//!
//! An example is `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Source: `k8s.io/client-go/util/jsonpath`, with missing keys allowed. Unlike there, a path is bounded, because it
//! comes from a CustomResourceDefinition: `Limits` bounds reading it, and `Search` following it.

mod parse;
mod path;
mod search;
#[cfg(test)]
mod tests;

pub use path::{JsonPath, PathError};
