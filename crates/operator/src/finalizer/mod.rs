//! Finalizers, which delay a deletion until a cleanup is done.
//!
//! A [`Finalizer`] is a name and a predicate. A reconciler holds it with its cleanup function (`held`), adds it before
//! the first reconcile, and removes it after the cleanup. `cleaned` remembers finished cleanups, and `removal` removes
//! a finalizer from all objects of a kind.

mod cleaned;
mod error;
mod finalizer;
mod held;
mod name;
mod removal;

pub use error::{FinalizerNameError, FinalizerRemovalError};
pub use finalizer::Finalizer;
pub(crate) use held::HeldFinalizer;
pub use removal::FinalizerRemoval;
