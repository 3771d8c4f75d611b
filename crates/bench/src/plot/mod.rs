//! Plots of the initial sync: memory and CPU against pods, and against handlers.

mod panel;
mod plot;

pub(crate) use plot::print;
