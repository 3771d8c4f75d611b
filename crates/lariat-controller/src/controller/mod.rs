//! The controller of a kind: its queue, its handlers and its workers.

mod activity;
mod core;
mod failures;
mod feed;
mod flight;
mod guard;
mod history;
mod hold;
mod memory;
mod options;
mod registration;
mod relate;
mod report;
mod resync;
mod run;
mod shared;
mod slot;
mod worker;

pub(crate) use activity::InProgress;
pub(crate) use core::{ControllerCore, Queue};
pub(crate) use feed::cause;
pub(crate) use flight::ControllerFlight;
pub use history::{CallRecord, RunRecord};
pub use options::ControllerOptions;
pub use registration::Registration;
pub use shared::SharedController;
pub(crate) use slot::{NewHandler, Slot, check_options};
pub(crate) use worker::{Running, Stopping};
