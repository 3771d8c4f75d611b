//! Owner references: who owns an object, and who may.

mod methods;
mod owner;

pub use owner::{Owner, OwnerError};
