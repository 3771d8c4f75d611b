//! The error of a handler.

mod chain;
mod directive;
mod error;

pub use directive::{Ignore, RetryAfter, Terminal};
pub(crate) use error::Class;
pub use error::HandlerError;
