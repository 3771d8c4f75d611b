//! The livelock sentinel: detects hot loops, reports their cause, and slows them down.

mod fields;
mod options;
mod suspect;
mod suspects;
mod trail;
mod watchman;

pub use options::Sentinel;
pub(crate) use suspect::{Ask, Write, since_progress};
pub use suspect::{HotLoop, Pattern};
pub(crate) use trail::ChainRun;
pub(crate) use watchman::Watchman;
