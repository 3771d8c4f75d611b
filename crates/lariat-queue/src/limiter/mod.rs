//! How long a failed lane waits before it is tried again.

mod adapters;
mod bucket;
mod curves;
mod limiter;

pub use adapters::{AtMost, Jittered, MaxOf};
pub use bucket::TokenBucket;
pub use curves::{Exponential, FastSlow};
pub use limiter::{RateLimiter, client_go_default, controller_runtime_default, lasso_default};
