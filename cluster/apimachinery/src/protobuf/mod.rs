//! Bodies in protobuf, which typed clients send and want for built-in kinds.
//!
//! Messages are read and written by the table of types, as JSON is; it has the field numbers. Source:
//! `k8s.io/apimachinery/pkg/runtime/serializer/protobuf`.

mod encode;
mod envelope;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod maker;
mod message;
mod scalar;
#[cfg(test)]
mod tests;
mod wire;
mod writer;

pub use encode::{encode, encode_event, encode_list};
pub use envelope::Envelope;
pub use error::ProtobufError;
