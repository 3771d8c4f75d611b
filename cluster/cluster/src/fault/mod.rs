//! Faults that a request can meet.

mod action;
mod refusal;
mod words;

pub use action::{Action, After};
pub use refusal::{ErrorBody, Refusal};
