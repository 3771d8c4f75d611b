//! What a handler says when it failed.

mod chain;
mod directive;
mod error;

pub use directive::{Ignore, RetryAfter, Terminal};
pub(crate) use error::Class;
pub use error::HandlerError;
