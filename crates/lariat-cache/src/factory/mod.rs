//! The factory of caches: one informer per kind.

mod builder;
mod factory;
mod own_writes;
mod running;
mod waits;

pub use builder::CacheFactoryBuilder;
pub(crate) use factory::FactoryCore;
pub use factory::SharedCacheFactory;
