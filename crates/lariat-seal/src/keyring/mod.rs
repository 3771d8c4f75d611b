//! The keys that seal data, and the envelope they are stored in.

mod keyring;
mod stored;

pub use keyring::Keyring;
