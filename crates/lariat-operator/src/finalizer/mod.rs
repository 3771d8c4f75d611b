//! Finalizers: cleanup before an object goes.

mod cleaned;
mod error;
mod finalizer;
mod held;
mod name;
mod strip;

pub use error::{FinalizerNameError, StripError};
pub use finalizer::Finalizer;
pub(crate) use held::Held;
pub use strip::Stripped;
