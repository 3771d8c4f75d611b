//! The configurations by which API servers know webhooks.

mod apply;
mod configurations;
mod label;
mod prune;
mod webhook;

pub use configurations::Configurations;

pub(crate) use apply::apply;
pub(crate) use configurations::{Described, needs};
