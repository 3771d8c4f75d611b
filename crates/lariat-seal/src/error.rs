//! The errors, which contain no byte of sealed data or of a key.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use crate::id::{DataKeyId, InvalidKeyId, KeyId};

/// Why data was not sealed or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The bytes are not of this format, or were cut off.
    ///
    /// They were damaged, or are other data.
    #[error("the sealed data is damaged: {0}")]
    Malformed(&'static str),
    /// A later version of the format; update the program that reads it.
    #[error("the sealed data is of format {0}, which this version does not read")]
    UnknownFormat(u8),
    /// The keyring does not have the data key that sealed the data.
    ///
    /// Another keyring sealed it, or this one was restored from before the data key was created.
    #[error("sealed with data key {0}, which the keyring does not have")]
    UnknownDataKey(DataKeyId),
    /// The data was changed, or belongs to another context.
    #[error("the sealed data was changed, or belongs elsewhere")]
    Rejected,
    /// The stored keyring was changed or cut off; restore it from a copy.
    #[error("the stored keyring is damaged: {0}")]
    Keyring(&'static str),
    /// The keyring's envelope could not be closed or opened.
    #[error(transparent)]
    Wrap(#[from] WrapError),
    /// More than 64 GiB in one piece; use a stream.
    #[error("too large to be sealed in one piece: {0} bytes")]
    TooLarge(usize),
    /// The data key that seals new data cannot be removed.
    #[error("data key {0} is in use for new data: rotate the keyring first")]
    InUse(DataKeyId),
    /// The operating system has no random numbers.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
}

/// Why a [`KeyWrapper`](crate::KeyWrapper) did not wrap or unwrap a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WrapError {
    /// None of the given keys is the right one.
    ///
    /// Provide the one that is named, as an old key if it was rotated out.
    #[error("sealed with key {sealed_with}, the keys given are {}", list(given))]
    WrongKey {
        /// The required key.
        sealed_with: KeyId,
        /// The given keys, the current one first.
        given: Vec<KeyId>,
    },
    /// The key is the right one, but the wrapped key was changed.
    #[error("the key that was wrapped with key {0} is damaged")]
    Rejected(KeyId),
    /// A name that is not a key id; see [`KeyId::new`](crate::KeyId::new).
    #[error(transparent)]
    InvalidKeyId(#[from] InvalidKeyId),
    /// A wrapped key that is too large to be stored.
    #[error("key {0} wraps into more than 65,535 bytes")]
    TooLarge(KeyId),
    /// The key management service failed; the call may be retried.
    #[error("key {key} cannot be used")]
    Failed {
        /// The requested key.
        key: KeyId,
        /// The service's error. It is logged, so it must not contain secrets.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The operating system has no random numbers.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
}

/// Why a key could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the key file {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Others than the owner of the file can read or change it.
    #[error("the key file {} has mode {mode:04o}: {advice}", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// How to fix it.
        advice: &'static str,
    },
    /// The environment variable is not set.
    #[error("the environment variable {0} is not set, or is not text")]
    NoVariable(String),
    /// The input is not a key.
    #[error("{origin} has no key: {problem}")]
    Invalid {
        /// The file or the variable.
        origin: String,
        /// What is wrong, without any part of the input.
        problem: &'static str,
    },
}

fn list(keys: &[KeyId]) -> String {
    let keys: Vec<_> = keys.iter().map(KeyId::as_str).collect();
    keys.join(", ")
}
