//! The reflector: lists a kind, then watches it, and keeps the store up to date.
//!
//! A reflector alternates between steps (`reflector`): load all objects (`list` in pages, or `watch` as a watch list,
//! with `loading` as their common state), or watch from a version (`watch`), after a failure with a check of the server's
//! history (`history`). `source` sends the requests that `query` creates. `page` and `stream` split the answers,
//! `intake` parses objects, `cursor` applies events to the store.
//!
//! Every way in which a list or a watch can end leads to a next step and a delay, which `policy` decides: continue from
//! the last version where possible, else list again, with `backoff` after failures. Delays grow per kind, so an outage
//! of one kind does not slow another. `starts` limits how many loads, checks and new watches are under way at once,
//! `standstill` judges bookmarks that do not move. `server`
//! shares what one reflector learns about the server with the others, `rereads` brings requests to list again. The
//! semantics are those of client-go's reflector.

mod backoff;
mod cursor;
mod end;
mod error;
mod events;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod history;
mod intake;
mod last_event;
mod list;
mod loading;
mod page;
mod policy;
mod position;
mod query;
mod reflector;
mod rereads;
mod server;
mod source;
mod span;
mod standstill;
mod starts;
mod stream;
mod tokens;
mod watch;

pub(crate) use error::NOT_SERVED;
pub(crate) use intake::Intake;
pub(crate) use page::is_list_of;
pub(crate) use reflector::{Exit, Reading, Reflector};
pub(crate) use rereads::Rereads;
pub(crate) use server::SharedServer;
pub(crate) use source::Endpoint;
pub use source::{Source, SourceBody, SourceError, SourceRequest};
pub(crate) use starts::Starts;
pub(crate) use tokens::PageTokens;
