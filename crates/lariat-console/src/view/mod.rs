//! What is seen of factories and operators, as the types of the API.

mod controllers;
mod details;
mod keys;
mod queued;
mod state;

pub(crate) use controllers::{caches, controllers};
pub(crate) use details::controller;
pub(crate) use keys::key;
#[cfg(feature = "operator")]
pub(crate) use state::reset_guard;
pub(crate) use state::{guards, leases, plan, planned, shards};
