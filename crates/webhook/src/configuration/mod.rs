//! The configurations by which API servers know the webhooks.
//!
//! `configurations` generates them, with `webhook` for the entry of each webhook, and `needs` has the permissions.
//! `apply` writes them, and `prune` removes those of an earlier release, which have the `label` and are in the `record`.

mod apply;
mod configurations;
mod label;
mod needs;
mod prune;
mod record;
mod webhook;

pub use configurations::Configurations;

pub(crate) use apply::apply;
pub(crate) use configurations::Described;
pub(crate) use needs::needs;
pub(crate) use prune::prune;
pub(crate) use record::Unwanted;
