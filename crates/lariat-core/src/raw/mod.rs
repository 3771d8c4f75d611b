//! One state of an object as bytes, with the metadata a controller needs.

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
