//! The controller of a kind: its queue, its handlers and its workers.

mod core;
mod options;
mod registration;
mod run;
mod shared;
mod slot;
mod worker;

pub(crate) use core::ControllerCore;
pub(crate) use options::ControllerOptions;
pub use registration::Registration;
pub use shared::SharedController;
pub(crate) use slot::Slot;
pub(crate) use worker::{Stopping, run_workers};
