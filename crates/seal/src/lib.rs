//! Encryption at rest of values and files, with envelope encryption of the keys.
//!
//! A [`Keyring`] seals values and [streams](SealedWriter) with its data keys. Its [stored form](Keyring::stored)
//! contains the data keys encrypted. To load it, a [`KeyWrapper`] decrypts them, with a key that is read from a [file
//! or the environment](LocalKeys) or that stays in a key management service. [`Sealing`] selects the kinds to encrypt.
//! All ciphers are AES-256-GCM, by `ring`.
//!
//! ```
//! use lariat::seal::{Context, Keyring, LocalKeys};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (random, mut bytes) = (ring::rand::SystemRandom::new(), [0; 32]);
//! # ring::rand::SecureRandom::fill(&random, &mut bytes).map_err(|_| "no random numbers")?;
//! let key = LocalKeys::from_bytes(&bytes)?;
//! let keyring = Keyring::create(&key).await?;
//! // Stored before anything is sealed: without it nothing can be opened.
//! let stored = keyring.stored().to_vec();
//!
//! let row = Context::new("v1/Secret").and("default/database");
//! let sealed = keyring.seal(&row, b"a password")?;
//!
//! let keyring = Keyring::load(&stored, &key).await?;
//! assert_eq!(*keyring.open(&row, &sealed)?, b"a password");
//! assert!(keyring.open(&Context::new("v1/Secret").and("default/other"), &sealed).is_err());
//! # Ok(()) }
//! ```
//!
//! # Why no nonce is used twice
//!
//! AES-GCM is broken by two texts under one key and nonce. Counters in a file do not prevent that: a file that is
//! restored from a backup counts again from an earlier number. So nothing that must be unique is stored:
//!
//! - A data key encrypts nothing itself. Each value and each stream draws a salt of 96 random bits, and is sealed with
//!   the key that is derived from the data key and that salt (HKDF-SHA256).
//! - Each value has a nonce of 96 random bits besides. So two values meet only if they draw the same 192 bits.
//! - The parts of a stream are numbered under its key.
//!
//! Random bits come from the operating system at each use. So a copy of a virtual machine's memory does not repeat
//! values either, except for a stream that is open while the memory is copied.
//!
//! # What is protected and what is not
//!
//! Sealed data reveals its length and the data key that sealed it, but nothing else. Data that was changed, moved to
//! another [`Context`] or cut off is rejected. A file or row that was replaced by an earlier one of the same context is
//! not detected. Keys are overwritten in memory when they are dropped; copies that the compiler leaves on the stack and
//! memory that was swapped out are not. No key appears in
//! `Debug`, errors or logs.

mod context;
mod error;
mod id;
mod secret;

mod data_key;
mod wrapper;

mod sealing;
mod stream;

mod keyring;

pub use context::Context;
pub use error::{KeyError, SealError, WrapError};
pub use id::{DataKeyId, InvalidKeyId, KeyId};
pub use keyring::Keyring;
pub use sealing::{Sealing, is_always_sealed};
pub use stream::{OpenedReader, SealedWriter};
pub use wrapper::{KeyWrapper, LocalKeys, WrappedKey, Wrapping};
/// A value that is overwritten when it is dropped.
pub use zeroize::Zeroizing;
