//! Reads of one kind from the shared cache, and writes through the factory's client.

mod api;
mod collection;
mod mutate;
mod mutated;
mod overlay;
mod subresources;

pub use api::CachedApi;
pub use mutated::{Mutated, Mutation};
