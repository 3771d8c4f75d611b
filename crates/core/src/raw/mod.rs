//! One state of an object as bytes, with the metadata that a controller needs.
//!
//! [`Scan`] reads the metadata of an object without copying. `head` is its fast path, which follows the member order of
//! API servers with a [`JsonCursor`](crate::JsonCursor); `borrowed` is what serde parses otherwise. [`Interner`] stores
//! the common parts of many objects once. [`RawObject`] is the result: [`ObjectMetadata`] and one copy of the JSON.

mod borrowed;
mod head;
mod interner;
mod object;
mod scan;
#[cfg(test)]
mod scan_tests;
#[cfg(test)]
mod tests;
mod uid;

pub use interner::Interner;
pub use object::{ObjectMetadata, OwnerRef, RawObject, RawObjectError};
pub use scan::{ManagedFields, Scan};
pub use uid::Uid;
