//! The factory, which creates and runs one controller per kind.
//!
//! In reading order:
//!
//! 1. `builder` and `options` configure a factory.
//! 2. `core` is the state that all clones share: a slot per kind, and the present run. `factory` is the handle.
//! 3. `lifecycle` starts and stops; `life` is whether the factory runs, `stop` the task of a stop; `run` owns the tasks
//!    between start and stop; `stopping` logs the progress of a stop; `watchdog` names handlers that block their
//!    threads; `phase` publishes where the factory is.
//! 4. `transaction` registers several handlers at once. `duplicates` warns of a second factory on the same cluster.

mod builder;
mod core;
mod duplicates;
mod factory;
mod life;
mod lifecycle;
mod options;
mod phase;
mod run;
mod stop;
mod stopping;
mod transaction;
mod watchdog;

pub use builder::FactoryBuilder;
pub(crate) use core::FactoryCore;
pub use factory::{SharedControllerFactory, WeakControllerFactory};
pub use phase::FactoryPhase;
pub use transaction::Transaction;
