//! What the tests of several crates share.
#![allow(
    clippy::missing_panics_doc,
    reason = "a test that fails panics, wherever it finds that"
)]

pub mod http;
mod logs;
pub mod pages;

pub use logs::Logs;
