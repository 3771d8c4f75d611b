//! What the tests of several crates share.

mod logs;
pub mod pages;

pub use logs::Logs;
