//! What can go wrong with a request.

mod action;
mod refusal;

pub use action::{Action, After};
pub(crate) use refusal::HTML;
pub use refusal::{Form, Refusal};
