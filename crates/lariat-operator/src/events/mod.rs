//! Events, which report to people what happened to an object.

mod correlator;
mod event;
mod methods;
mod options;
mod record;
mod recorder;
mod sink;
mod task;
mod text;

pub use event::Event;
pub use options::{EventApi, EventOptions};
pub use recorder::{EventStatus, Recorder};
