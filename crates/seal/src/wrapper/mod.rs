//! Wrapping of keys, with keys of this process or by a key management service.

mod local;
mod read;
mod wrapper;

pub use local::LocalKeys;
pub use wrapper::{KeyWrapper, WrappedKey, Wrapping};
