//! The error of a handler, and how it is retried.
//!
//! `error` has the error; `directive` errors that set their own retry; `chain` looks for these, and for responses of
//! the API server, among the causes of an error.

mod chain;
mod directive;
mod error;

pub use directive::{Ignore, RetryAfter, RetrySlowly, Terminal};
pub(crate) use error::Class;
pub use error::HandlerError;
