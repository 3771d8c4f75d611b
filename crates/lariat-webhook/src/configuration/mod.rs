//! The configurations by which API servers know the webhooks.
//!
//! `configurations` generates them, with `webhook` for the entry of each webhook. `apply` writes them, and `prune`
//! removes those of an earlier release, which it finds by the `label`.

mod apply;
mod configurations;
mod label;
mod prune;
mod webhook;

pub use configurations::Configurations;

pub(crate) use apply::apply;
pub(crate) use configurations::{Described, needs};
