//! The informer of a kind: its reflectors, its store and its subscribers.
//!
//! [`Informer`] is the handle of a use; [`Core`] is what all uses of the kind share. `run` keeps the cache up to date:
//! it resolves the kind, starts the reflectors, and restarts them when selection, content or storage change. `warmth`
//! loads and saves objects of an earlier run. `load`, `load_all` and `refresh` send single requests; `changes` is the
//! stream for slow readers.

mod changes;
mod core;
mod informer;
mod load;
mod load_all;
mod missed;
mod reads;
mod refresh;
mod run;
mod warmth;

pub use changes::Changes;
pub(crate) use core::{Core, Shared};
pub use informer::Informer;
pub(crate) use informer::content_of;
pub use reads::LoadError;
