//! The delay before a failed lane is retried.

mod bucket;
mod curves;
mod defaults;
mod limiter;

pub use bucket::TokenBucket;
pub use curves::{Exponential, FastSlow};
pub use defaults::{client_go_default, controller_runtime_default, lasso_default};
pub use limiter::{AtMost, Jittered, MaxOf, RateLimiter};
