//! Bodies in protobuf, which typed clients send for built-in kinds.
//!
//! Messages are read by the table of types, as JSON is; it has the field numbers. Source:
//! `k8s.io/apimachinery/pkg/runtime/serializer/protobuf`.

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod encode;
mod envelope;
mod error;
mod message;
mod scalar;
#[cfg(test)]
mod tests;
mod wire;

pub use envelope::Envelope;
pub use error::ProtobufError;
