//! The reflector: lists a kind, then watches it, and keeps the store up to date.
//!
//! Every way in which a list or a watch can end leads to a next step and a delay: continue from the last version where
//! possible, list again otherwise. Delays grow per kind, so one kind's outage never slows another. The semantics are
//! those of client-go's reflector.

mod backoff;
mod cursor;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod history;
mod intake;
mod list;
mod loading;
mod page;
mod policy;
mod query;
mod reflector;
mod rereads;
mod server;
mod source;
mod span;
mod stream;
mod watch;

pub(crate) use intake::Intake;
pub use policy::{Decision, Ending, ReflectorPolicy};
pub(crate) use reflector::{Exit, Reading, Reflector};
pub(crate) use rereads::Rereads;
pub(crate) use server::SharedServer;
pub(crate) use source::Endpoint;
pub use source::{Source, SourceBody, SourceError, SourceRequest};
