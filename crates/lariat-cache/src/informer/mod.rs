//! The informer of a kind: its reflectors, its store and its subscribers.

mod changes;
mod core;
mod informer;
mod load;
mod refresh;
mod run;
mod warmth;

pub use changes::Changes;
pub(crate) use core::{Core, Surroundings};
pub use informer::Informer;
pub use load::LoadError;
pub use refresh::RefreshError;
