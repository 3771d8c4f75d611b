//! The controller of a kind: its queue, its handlers and its workers.

mod activity;
mod caches;
mod core;
mod failures;
mod feed;
mod guard;
mod history;
mod joined;
mod look;
mod options;
mod registration;
mod run;
mod running;
mod shards;
mod shared;
mod slot;
mod sources;
mod verdict;
mod worker;

pub(crate) use activity::Doing;
pub(crate) use core::ControllerCore;
pub(crate) use feed::cause;
pub use history::{CallRecord, RunRecord};
pub(crate) use joined::{AnyRelation, Enqueuer, Joined, Unread};
pub use options::ControllerOptions;
pub use registration::Registration;
pub(crate) use running::RunningController;
pub use shared::SharedController;
pub(crate) use slot::{Kinds, NewHandler, Slot, check_options};
pub(crate) use worker::Stopping;
