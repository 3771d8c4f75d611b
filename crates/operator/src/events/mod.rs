//! Events, which report to people what happened to an object.
//!
//! A published [`Event`] goes through a bounded queue of the [`Recorder`] to its `task`. The `correlator` decides
//! whether it is written, counted or dropped, by the [`EventOptions`]. A `record` is the Event in the form of the API,
//! and the `sink` writes it, with retries.

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
