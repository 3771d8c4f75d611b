//! What can go wrong with a request.

mod action;
mod refusal;

pub use action::{Action, After};
pub use refusal::{Form, Refusal};
