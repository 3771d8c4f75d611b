//! The errors, which contain no byte of sealed data or of a key.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use crate::id::{DataKeyId, InvalidKeyId, KeyId};

/// The error of sealing or opening data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The bytes are not in this format, because they are damaged or other data.
    #[error("the sealed data is damaged: {0}")]
    Malformed(&'static str),
    /// The data has a later format; update the program that reads it.
    #[error("the sealed data has format {0}, which this version cannot read")]
    UnknownFormat(u8),
    /// The keyring does not have the data key that sealed the data.
    ///
    /// Another keyring sealed it, or this one was restored from before the data key was created.
    #[error("sealed with data key {0}, which the keyring does not have")]
    UnknownDataKey(DataKeyId),
    /// The data was changed, or was sealed with another context.
    #[error("the sealed data was changed, or has another context")]
    Rejected,
    /// The stored keyring was changed or cut off; restore it from a backup.
    #[error("the stored keyring is damaged: {0}")]
    Keyring(&'static str),
    /// The data keys could not be encrypted or decrypted.
    #[error(transparent)]
    Wrap(#[from] WrapError),
    /// The value is larger than 64 GiB; use a stream.
    #[error("too large to seal in one piece: {0} bytes")]
    TooLarge(usize),
    /// The operating system provides no random numbers.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
}

/// The error of a [`KeyWrapper`](crate::KeyWrapper).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WrapError {
    /// None of the given keys can unwrap the key.
    ///
    /// Provide the key that the error names, as an [old key](crate::LocalKeys::with_old) if it was rotated out.
    #[error(
        "sealed with key {sealed_with}, but the given keys are {}",
        list(given)
    )]
    WrongKey {
        /// The required key.
        sealed_with: KeyId,
        /// The given keys, the current one first.
        given: Vec<KeyId>,
    },
    /// The key is the right one, but the wrapped key was changed.
    #[error("the wrapped key was changed since key {0} wrapped it")]
    Rejected(KeyId),
    /// A name is not a valid key id; see [`KeyId::new`](crate::KeyId::new).
    #[error(transparent)]
    InvalidKeyId(#[from] InvalidKeyId),
    /// The wrapped key is too large to be stored.
    #[error("the key wrapped with key {0} is larger than 65,535 bytes")]
    TooLarge(KeyId),
    /// The key management service failed; the call may be retried.
    #[error("cannot use key {key}")]
    Failed {
        /// The requested key.
        key: KeyId,
        /// The error of the service. It is logged, so it must not contain secrets.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The operating system has no random numbers.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
}

/// The error of reading a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read the key file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Other users than the owner can read or change the file.
    #[error("the key file {} has mode {mode:04o}: {advice}", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The permissions of the file.
        mode: u32,
        /// How to fix it.
        advice: &'static str,
    },
    /// The environment variable is not set, or is not UTF-8.
    #[error("the environment variable {0} is not set, or is not UTF-8")]
    NoVariable(String),
    /// The input is not a key.
    #[error("no valid key in {origin}: {problem}")]
    Invalid {
        /// The file or the variable.
        origin: String,
        /// The reason, without any part of the input.
        problem: &'static str,
    },
}

/// Formats ids as a list.
fn list(keys: &[KeyId]) -> String {
    let keys: Vec<_> = keys.iter().map(KeyId::as_str).collect();
    keys.join(", ")
}
