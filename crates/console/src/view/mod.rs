//! Reads the state of factories and operators as the types of the JSON API.
//!
//! `controllers` has the controllers and caches of the overview, `details` one controller with its keys (`queued`),
//! `keys` the history of one key, `names` the names of kinds, and `state` leases, shards, guards and plans.

mod controllers;
mod details;
mod keys;
mod names;
mod queued;
mod state;

pub(crate) use controllers::{caches, controllers};
pub(crate) use details::controller;
pub(crate) use keys::{key, namesakes};
pub(crate) use names::names;
#[cfg(feature = "operator")]
pub(crate) use state::reset_guard;
pub(crate) use state::{guards, leases, plan, planned, shards};
