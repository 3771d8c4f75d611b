//! Handlers, and what they get, return and are wrapped in.

mod call;
mod context;
mod error;
mod handler;
mod middleware;
mod options;
mod outcome;
mod predicate;
mod with_options;

pub(crate) use call::{AnyHandler, CallKind, Callee, Decoded, through};
pub use call::{Call, HandlerResult, Next};
pub use context::Context;
pub(crate) use error::Class;
pub use error::{HandlerError, Ignore, RetryAfter, Terminal};
pub use handler::Handler;
pub(crate) use handler::Viewed;
pub use middleware::{Middleware, Timeout};
pub(crate) use options::{DelayOf, KeySource};
pub use options::{HandlerOptions, Resync};
pub use outcome::Outcome;
pub(crate) use outcome::Updated;
pub use predicate::Predicate;
pub use with_options::WithOptions;
