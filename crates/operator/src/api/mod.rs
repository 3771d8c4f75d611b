//! A handle for one kind: reads from the shared cache, and writes through the factory's client.
//!
//! [`CachedApi`] has the reads and the plain writes. `collection` adds deletions of collections, `subresources` the
//! subresources, and `mutate` the read-change-write loop [`CachedApi::create_or_update`], whose result is [`Mutated`].

mod api;
mod collection;
mod mutate;
mod mutated;
mod overlay;
mod subresources;

pub use api::CachedApi;
pub use mutated::{Mutated, Mutation};
