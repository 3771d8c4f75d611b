//! Handlers: the trait, its argument and result, its options, and middleware.
//!
//! A worker passes a `Call` to the outermost middleware, and each middleware to the `Next` (`call`, `middleware`). At
//! the end of the chain, `handler` wraps the call in a `Context` (`context`) for the user's function. It returns an
//! `Outcome` (`outcome`) or a `HandlerError` (`error`). `options`, `with_options` and `predicate` configure a handler.

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
pub use error::{HandlerError, Ignore, RetryAfter, RetrySlowly, Terminal};
pub use handler::Handler;
pub(crate) use handler::Viewed;
pub use middleware::{Middleware, Timeout};
pub(crate) use options::{DelayOf, KeySource};
pub use options::{HandlerOptions, Resync};
pub use outcome::Outcome;
pub(crate) use outcome::Updated;
pub use predicate::Predicate;
pub use with_options::WithOptions;
