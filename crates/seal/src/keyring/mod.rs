//! The keys that seal data, and their stored form.

mod keyring;
mod stored;

pub use keyring::Keyring;
