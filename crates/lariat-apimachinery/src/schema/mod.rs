//! The types of objects: what fields there are, and how their values merge.
//!
//! Server-side apply, strategic merge patch and field validation read them. Built-in types come from a table generated
//! from the schemas of Kubernetes, types of custom resources from their CRDs.

mod again;
mod builtin;
mod custom;
mod decode;
pub mod describe;
mod field_path;
mod misfit;
mod resolve;
mod spelled;
mod strict;
mod types;
mod zeros;

pub use again::again;
#[cfg(all(test, feature = "protobuf"))]
pub(crate) use builtin::kinds;
#[cfg(feature = "protobuf")]
pub(crate) use builtin::of_every_group;
pub use builtin::{builtin, has_version};
pub use custom::custom;
pub(crate) use decode::decode_metadata;
pub use decode::{decode, has_empty, read_whole_numbers, wrap_numbers, write_whole_numbers};
pub use field_path::{FieldPath, Step};
pub use misfit::Misfit;
pub(crate) use misfit::struct_without;
pub(crate) use resolve::Resolved;
pub use resolve::{Schema, TypeRef};
pub use spelled::spell_quantities;
pub use strict::{MOST_PROBLEMS, Problems, problems, problems_of_patch};
#[cfg(feature = "protobuf")]
pub(crate) use types::{Field, Or, Type, Wire};
pub(crate) use types::{List, ListKind, PatchStrategy, Scalar};
pub use zeros::{as_go_writes, fill as fill_zeros, store as store_zeros};
