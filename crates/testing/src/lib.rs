//! What the tests of several crates share.

mod logs;

pub use logs::Logs;
