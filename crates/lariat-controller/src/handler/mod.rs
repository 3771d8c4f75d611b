//! Handlers: the code that is called for a key.

mod context;
mod error;
mod gate;
mod handler;
mod middleware;
mod options;
mod outcome;
mod predicate;

pub use context::Context;
pub(crate) use error::Class;
pub use error::{HandlerError, Ignore, RetryAfter, Terminal};
pub(crate) use gate::{ByHandler, Gated};
pub use gate::{Gate, HandlerWrite};
pub(crate) use handler::{AnyHandler, Decoded, Viewed};
pub use handler::{Call, Handler, HandlerResult};
pub(crate) use middleware::{AnyMiddleware, through};
pub use middleware::{Middleware, Next, Timeout, Tracing};
pub use options::{HandlerOptions, Resync};
pub use outcome::Outcome;
pub(crate) use outcome::Updated;
pub use predicate::Predicate;
