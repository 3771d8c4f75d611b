//! The REST mapper: which resource serves a kind.

mod aggregated;
mod legacy;
mod mapper;
mod survey;

pub(crate) use mapper::NO_PATH;
pub use mapper::{MapperError, RestMapper};
pub use survey::Survey;
