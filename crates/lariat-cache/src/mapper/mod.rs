//! The REST mapper: maps kinds to resources.

mod aggregated;
mod legacy;
mod mapper;
mod survey;

pub(crate) use mapper::NO_PATH;
pub use mapper::{MapperError, RestMapper};
pub use survey::Survey;
