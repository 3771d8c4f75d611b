//! Requests to the API server, and their answers, for the whole crate.
//!
//! `sender` sends a request with a time limit and retries. `wire` reads and patches the objects of one kind as raw
//! objects, and `change` adds the loop that repeats a write on conflicts, with the field managers of `managers`.
//! `object` and `secrets` are helpers, and `error` is [`ApiError`].

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
