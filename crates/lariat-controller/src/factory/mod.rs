//! The factory, which creates and runs one controller per kind.

mod builder;
mod core;
mod duplicates;
mod factory;
mod lifecycle;
mod options;
mod phase;
mod run;
mod stopping;
mod transaction;

pub use builder::FactoryBuilder;
pub(crate) use core::FactoryCore;
pub use factory::{SharedControllerFactory, WeakControllerFactory};
pub use phase::FactoryPhase;
pub use transaction::Transaction;
