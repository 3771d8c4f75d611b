//! Finalizers, which delay a deletion until cleanup is done.

mod cleaned;
mod error;
mod finalizer;
mod held;
mod name;
mod removal;

pub use error::{FinalizerNameError, FinalizerRemovalError};
pub use finalizer::Finalizer;
pub(crate) use held::Held;
pub use removal::FinalizerRemoval;
