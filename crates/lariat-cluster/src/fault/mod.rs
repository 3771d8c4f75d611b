//! What can go wrong with a request.

mod action;
mod refusal;
mod words;

pub use action::{Action, After};
pub use refusal::{ErrorBody, Refusal};
