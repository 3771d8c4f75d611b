//! The controller of a kind: its queue, its handlers and its workers.
//!
//! Three types have the controller in different states:
//!
//! - [`SharedController`] (`shared`) is the public handle. It refers to a slot.
//! - `Slot` (`slot`) exists once per requested kind, used or not. It creates the core when the core is first needed,
//!   and drops it with the last handler.
//! - `ControllerCore` (`core`) is a controller in use: cache, queue and lanes. `RunningController` (`running`) is the
//!   task that runs its workers between a start and a stop.
//!
//! The path of a key, in reading order:
//!
//! 1. `feed` enqueues the keys of changed objects, `joined` and `caches` those of related objects, `sources` those of
//!    streams, and `shards` those that a change of the ring brings.
//! 2. `worker` dequeues a key. `run` calls the lanes that are due, one after the other; `guard` isolates a call, and
//!    `verdict` decides when the lane is called next.
//! 3. `history` and `activity` record runs and running calls, `failures` logs failures, and `snapshots` and `trouble`
//!    read all of it for status pages.

mod activity;
mod caches;
mod core;
mod failures;
mod feed;
mod guard;
mod history;
mod joined;
mod options;
mod registration;
mod run;
mod running;
mod shards;
mod shared;
mod slot;
mod snapshots;
mod sources;
mod trouble;
mod verdict;
mod worker;

pub(crate) use activity::{Activity, Doing, Finding, Found, Looks, is_report};
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
