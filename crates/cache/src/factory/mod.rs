//! The factory of caches: one informer per kind.
//!
//! `builder` has the options, `factory` the informers by kind. `running` starts and stops them and ends unused ones,
//! `waits` waits until caches have synced. `own_writes` applies the answers to the program's writes to the caches.

mod builder;
mod factory;
mod own_writes;
mod running;
mod waits;

pub use builder::CacheFactoryBuilder;
pub(crate) use factory::FactoryCore;
pub use factory::SharedCacheFactory;
