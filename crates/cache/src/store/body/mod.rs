//! The content of a cached object: bytes in one of several forms, and when the form changes.

mod body;
mod codec;
mod dictionary;

pub(super) use body::Body;
pub use body::{ObjectJson, Storage};
pub(crate) use codec::Age;
pub(super) use codec::{Codec, SAMPLES, Training, pack};
pub(super) use dictionary::Dictionary;
