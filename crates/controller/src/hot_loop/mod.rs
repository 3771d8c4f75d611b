//! The detector of hot loops: finds them and says what causes them. It delays nothing.
//!
//! It is told of the writes of handlers when they are answered, and of each run of a key before its handlers are
//! called. In reading order:
//!
//! 1. `options` has the public options.
//! 2. `suspect` is the state of one key: how many runs in a row were caused by runs of the same object.
//! 3. `detector` has the suspects of a kind, bounded in number, and logs.

mod detector;
mod options;
mod suspect;

pub(crate) use detector::Detector;
pub use options::HotLoopOptions;
pub(crate) use suspect::Lead;
pub use suspect::{HotLoop, HotLoopPattern};
