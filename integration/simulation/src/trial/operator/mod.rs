//! The trial's operator: shops with finalizers, sets of children, a status and Events.

mod foreign_writer;
mod operator;
mod reconciler;
mod setup;

pub(super) use setup::simulation;
