//! Virtual time in words.

use std::fmt;
use std::time::Duration;

/// Writes virtual time as seconds with milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Stamp(pub Duration);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0.as_secs(), self.0.subsec_millis())
    }
}
