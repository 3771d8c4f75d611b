//! The detector: finds hot loops, reports their cause, and slows them down.
//!
//! Two places call the detector of a kind: a handler's write when its response has arrived, and a worker
//! before it runs a key. In reading order:
//!
//! 1. `options` has the public options.
//! 2. `suspect` is the state of one key that this process writes. It detects the three patterns, and computes delays.
//! 3. `suspects` has all such keys of a kind, bounded in number.
//! 4. `trail` records what a chain of runs has written: a run that writes something new makes progress, and is no loop.
//! 5. `fields` compares two states of an object.
//! 6. `detector` is what both places call.

mod detector;
mod fields;
mod options;
mod suspect;
mod suspects;
mod trail;

pub(crate) use detector::Detector;
pub use options::HotLoopOptions;
pub(crate) use suspect::{Ask, Write, since_progress};
pub use suspect::{HotLoop, HotLoopPattern};
pub(crate) use trail::ChainRun;
