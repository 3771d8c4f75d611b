//! Encryption at rest of values and files, with keys stored in an envelope.
//!
//! Data is sealed with the data keys of a [`Keyring`]. In its [stored form](Keyring::stored) they are encrypted: reading
//! them takes the key of a [`KeyWrapper`], which is read from a [file or the environment](LocalKeys) or stays in a key
//! management service. Every cipher is AES-256-GCM, by `ring`.
//!
//! ```
//! use lariat_seal::{Context, Keyring, LocalKeys};
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
//! AES-GCM is broken by two texts under one key and nonce. Counters in a file do not prevent that: a file that is restored
//! from a backup counts again from an earlier number. So nothing that must be unique is stored:
//!
//! - A data key encrypts no value itself. Each `Keyring` in memory draws a salt of 96 random bits and seals with the key that
//!   is derived from the data key and that salt (HKDF-SHA256). Two processes, or two runs on either side of a restore, have
//!   different keys.
//! - Each value has a nonce of 96 random bits. After [`SEALS_PER_SALT`] values a new salt is drawn automatically: the probability
//!   that a key meets a nonce twice is below 2^-41.
//! - Each [stream](SealedWriter) has a salt, and with it a key, of its own, under which its parts are numbered.
//!
//! Random bits come from the operating system at each use, so a copy of a virtual machine's memory does not repeat values
//! either, but for a stream that is open while the memory is copied.
//!
//! # What is protected, and what is not
//!
//! Sealed data reveals its length, which data key sealed it and which values one process sealed, and nothing else. Data
//! that is changed, moved to another [`Context`] or cut off is rejected. A file or row that is replaced by an earlier one
//! of the same context is not detected. Keys are overwritten when they are dropped; copies that the compiler leaves on the
//! stack, and memory that is swapped out, are not. No key is in `Debug`, errors or logs.

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
pub use data_key::SEALS_PER_SALT;
pub use error::{KeyError, SealError, WrapError};
pub use id::{DataKeyId, InvalidKeyId, KeyId};
pub use keyring::Keyring;
pub use sealing::{Sealing, is_always_sealed};
pub use stream::{OpenedReader, SealedWriter};
pub use wrapper::{KeyWrapper, LocalKeys, WrappedKey, Wrapping};
/// A value that is overwritten when it is dropped.
pub use zeroize::Zeroizing;
