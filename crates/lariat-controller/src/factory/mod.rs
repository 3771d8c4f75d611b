//! The factory, which creates and runs one controller per kind.

mod builder;
mod duplicates;
mod factory;
mod running;
mod shared;
mod stopping;
mod transaction;

pub use builder::FactoryBuilder;
pub use factory::SharedControllerFactory;
pub(crate) use shared::Shared;
pub use transaction::Transaction;
