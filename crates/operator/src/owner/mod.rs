//! Owner references: which objects own another, and which may.

mod methods;
mod owner;

pub use owner::{Owner, OwnerError};
