//! The page in headless Chromium, on a factory on a cluster in memory.

#[path = "../../../sql/tests/http/chromium.rs"]
#[allow(dead_code, reason = "the tests of each crate use other parts of it")]
mod chromium;
mod look;
mod shop;

mod accessibility;
mod actions;
mod causes;
mod live;
#[cfg(feature = "operator")]
mod operators;
mod pictures;
