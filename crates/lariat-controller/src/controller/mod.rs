//! The controller of a kind: its queue, its handlers and its workers.

mod caches;
mod core;
mod failures;
mod feed;
mod flight;
mod guard;
mod history;
mod options;
mod registration;
mod run;
mod running;
mod shards;
mod shared;
mod slot;
mod verdict;
mod worker;

pub(crate) use core::{ControllerCore, Queue};
pub(crate) use feed::cause;
pub(crate) use flight::ControllerFlight;
pub use history::{CallRecord, RunRecord};
pub use options::ControllerOptions;
pub use registration::Registration;
pub(crate) use running::Running;
pub use shared::SharedController;
pub(crate) use slot::{NewHandler, Slot, check_options};
pub(crate) use worker::{InProgress, Stopping};
