//! Requests to the API server, and their answers.

mod change;
mod error;
mod managers;
mod object;
mod secrets;
mod sender;
mod wire;

pub(crate) use change::{Attempt, Changed};
pub use error::ApiError;
pub(crate) use managers::Managers;
pub(crate) use object::{identity_of, is_shown, json_of};
pub(crate) use secrets::{is_secret, without_words};
pub(crate) use sender::{Built, SendError, Sender, code_of};
pub(crate) use wire::Wire;
