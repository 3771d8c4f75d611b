//! OpenAPI v2: one document about everything, as JSON and in protobuf.
//!
//! kubectl asks for it, in protobuf, where it checks an object itself: in a `List`, and of a kind that is not served.

mod document;
mod paths;
mod protobuf;
mod schemas;
#[cfg(test)]
mod tests;
mod wire;

pub(super) use document::{digest, document};
