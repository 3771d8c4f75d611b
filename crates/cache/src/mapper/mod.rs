//! The REST mapper: maps kinds to resources.
//!
//! `mapper` looks up kinds and caches the results; it reads all groups at once (`aggregated`) or one at a time
//! (`legacy`). `served_kinds` lists all kinds, without the cache.

mod aggregated;
mod legacy;
mod mapper;
mod served_kinds;

pub(crate) use aggregated::Served;
pub(crate) use mapper::NO_PATH;
pub use mapper::{MapperError, RestMapper};
pub use served_kinds::ServedKinds;
