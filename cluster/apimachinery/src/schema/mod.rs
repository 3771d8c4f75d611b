//! The types of objects: what fields there are, and how their values merge.
//!
//! Server-side apply, strategic merge patch and field validation read them. Built-in types come from a table generated
//! from the schemas of Kubernetes, types of custom resources from their CRDs.

mod builtin;
mod custom;
mod decode;
mod decode_error;
pub mod describe;
mod duplicate_member;
mod field_path;
mod quantities;
mod resolve;
mod strict;
mod types;
mod zeros;

#[cfg(all(test, feature = "protobuf"))]
pub(crate) use builtin::kinds;
#[cfg(feature = "protobuf")]
pub(crate) use builtin::of_every_group;
pub use builtin::{builtin, has_version};
pub use custom::custom;
pub(crate) use decode::decode_metadata;
pub use decode::{decode, has_empty, read_whole_numbers, wrap_numbers, write_whole_numbers};
pub use decode_error::DecodeError;
pub(crate) use decode_error::struct_without;
pub use duplicate_member::merge_duplicate;
pub use field_path::{FieldPath, Step};
pub use quantities::keep_quantity_texts;
pub(crate) use resolve::Resolved;
pub use resolve::{Schema, TypeRef};
pub use strict::{MAX_STRICT_ERRORS, StrictErrors, strict_errors, strict_errors_of_patch};
#[cfg(feature = "protobuf")]
pub(crate) use types::{Field, SchemaAlternative, Type, Wire};
pub(crate) use types::{List, ListKind, PatchStrategy, Scalar};
pub use zeros::{as_go_writes, fill as fill_zeros, store as store_zeros};
