//! Rate limiters: the delay before a failed lane is retried.
//!
//! [`RateLimiter`] is the trait. [`Exponential`] and [`FastSlow`] depend on the failures of the lane, [`TokenBucket`]
//! on the rate of all retries of the queue; the trait's methods combine them. `defaults` has those of other libraries.

mod bucket;
mod curves;
mod defaults;
mod limiter;

pub use bucket::TokenBucket;
pub use curves::{Exponential, FastSlow};
pub use defaults::{client_go_default, controller_runtime_default, lasso_default};
pub(crate) use limiter::delay_of;
pub use limiter::{AtMost, Jittered, MaxOf, RateLimiter};
