//! Keys, values, streams and rotation, seen from outside.

mod auto_traits;
mod canary;
mod damage;
mod keys;
mod rotation;
mod streams;

use lariat_seal::{Keyring, LocalKeys};

/// A key; another number is another key.
fn key(number: u8) -> LocalKeys {
    LocalKeys::from_bytes(&key_bytes(number)).expect("it is a key")
}

fn key_bytes(number: u8) -> [u8; 32] {
    std::array::from_fn(|at| (at as u8).wrapping_mul(37) ^ number)
}

async fn keyring() -> Keyring {
    Keyring::create(&key(1)).await.expect("created")
}

/// Returns whether some bytes are among others.
fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}
