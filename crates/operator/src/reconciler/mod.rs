//! Reconcilers, which bring the cluster to the state that an object specifies.
//!
//! [`Reconciler`] is the builder, with methods in `builder`, `finalizer`, `guard`, `needs`, `poll` and `status`. It
//! collects a `setup`. `register` checks it, takes the exclusive `claims`, and registers a handler, whose calls are in
//! `run`: the function for deletions (`ends`), then `pause`, finalizer, reconcile, status report, and the `policy` for
//! errors. Objects that do not decode are reported in `unreadable`, with a `warning`.

mod builder;
mod claims;
mod ends;
mod error;
mod finalizer;
#[cfg(feature = "guard")]
mod gate;
#[cfg(not(feature = "guard"))]
#[path = "gate_off.rs"]
mod gate;
#[cfg(feature = "guard")]
mod guard;
mod needs;
mod pause;
mod policy;
mod poll;
mod register;
mod registration;
mod run;
#[cfg(feature = "apply")]
mod sets;
#[cfg(not(feature = "apply"))]
#[path = "sets_off.rs"]
mod sets;
mod setup;
mod status;
mod table_sizes;
mod unreadable;
#[cfg(feature = "events")]
mod warning;
#[cfg(not(feature = "events"))]
#[path = "warning_off.rs"]
mod warning;

pub use builder::Reconciler;
pub use error::ReconcilerError;
#[cfg(feature = "guard")]
pub(crate) use gate::guards;
pub use policy::Retry;
pub use poll::{Poll, Polled};
pub use registration::ReconcilerRegistration;
pub(crate) use table_sizes::table_sizes;
