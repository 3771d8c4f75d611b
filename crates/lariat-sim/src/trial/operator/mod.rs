//! The trial's operator: shops with finalizers, sets of children, a status and Events.

mod keeper;
mod meddler;
mod operator;
mod setup;

pub(super) use setup::simulation;
