//! The controller of a kind: its queue, its handlers and its workers.
//!
//! Five types have the controller:
//!
//! - [`SharedController`] (`shared`) is the public handle. It refers to a slot.
//! - `Slot` (`slot`) exists once per requested kind, used or not. It opens the kind when it is first needed, and lets
//!   it rest with the last handler.
//! - `ControllerCore` (`core`) has the queue, the lanes and the records, for the whole life of the slot.
//! - `Opened` (`opened`) is a use of the kind, from the first handler to the last: its caches, and what fills the
//!   queue.
//! - `Owner` (`owner`) is the task that runs the kind between a start and a stop; there is at most one. `crew` counts
//!   its workers, `leaving` the calls of deregistered handlers.
//!
//! The path of a key, in reading order:
//!
//! 1. `feed` enqueues the keys of changed objects, `joined` and `caches` those of related objects, `sources` those of
//!    streams, and `gains` those that a change of the ring (`shards`) brings; `resyncs` enqueues them all.
//! 2. `worker` dequeues a key. `run` calls the lanes that are due, one after the other; `guard` isolates a call, and
//!    `verdict` decides when the lane is called next.
//! 3. `run_log` is told when a run begins and how its calls end, and passes that on to `history`, `activity`, and the
//!    lanes, which count their failures. `snapshots` and `trouble` read all of it for status pages.

mod activity;
mod caches;
mod core;
mod crew;
mod feed;
mod gains;
mod guard;
mod history;
mod joined;
mod leaving;
mod opened;
mod options;
mod owner;
mod pieces;
mod registration;
mod resyncs;
mod run;
mod run_log;
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
pub(crate) use owner::Owner;
pub use registration::Registration;
pub use shared::SharedController;
pub(crate) use slot::{Kinds, NewHandler, Slot, check_options};
pub(crate) use worker::Stopping;
