//! The keys of encrypted kinds, which all processes of a database share.

use std::sync::Arc;

use lariat_seal::{KeyWrapper, Keyring, Sealing};
use parking_lot::Mutex;

use super::blocking::blocking;
use super::error::SqlError;
use crate::sealed::Keys;
use crate::sql::StorageError;
use crate::store::{Readers, Writer};

/// How often storing keys is tried while other processes replace them.
const TRIES: u32 = 8;

/// The keys of a cache, and where they are stored.
#[derive(Debug, Clone)]
pub(super) struct SharedKeys {
    pub(super) keys: Keys,
    sealing: Arc<Sealing>,
    readers: Arc<Readers>,
}

impl SharedKeys {
    /// Reads the stored keys, or creates and stores new ones.
    ///
    /// If the wrapping key has changed, they are wrapped again. Also returns the writer.
    pub(super) async fn open(
        readers: &Arc<Readers>,
        sealing: &Arc<Sealing>,
        mut writer: Writer,
    ) -> Result<(Self, Writer), SqlError> {
        for _ in 0..TRIES {
            let stored;
            (writer, stored) = blocking(move || {
                let stored = writer.keyring()?;
                Ok((writer, stored))
            })
            .await?;
            let keyring = keyring(stored.as_deref(), sealing.wrapper()).await?;
            let is_stored;
            // Stored before anything is encrypted with it.
            (writer, is_stored) = store(writer, stored, &keyring).await?;
            if is_stored {
                let opened = Self {
                    keys: Keys::new(keyring),
                    sealing: Arc::clone(sealing),
                    readers: Arc::clone(readers),
                };
                return Ok((opened, writer));
            }
        }
        Err(SqlError::Storage(StorageError::Superseded))
    }

    /// Reads the stored keys again; returns whether they have changed.
    ///
    /// Another process may have replaced them.
    pub(super) async fn refresh(&self) -> Result<bool, SqlError> {
        // In a file only this process can replace keys.
        if !self.readers.database().is_shared() {
            return Ok(false);
        }
        let before = self.keys.current();
        let reader = self.readers.reader().await;
        let stored = blocking(move || Ok(reader.keyring()?));
        self.replace(&before, stored.await?).await
    }

    /// Uses these stored keys from now on; returns whether `before` is out of use.
    ///
    /// `before` are the keys that were used when the stored ones were read. If others are used by now, they may be
    /// newer than the stored ones, and stay.
    pub(super) async fn replace(
        &self,
        before: &Arc<Keyring>,
        stored: Option<Vec<u8>>,
    ) -> Result<bool, SqlError> {
        // Usually they are the same, and the wrapper is not called.
        if let Some(stored) = stored.filter(|stored| *before.stored() != **stored) {
            let keyring = Keyring::load(&stored, self.sealing.wrapper()).await;
            let keyring = keyring.map_err(StorageError::from)?;
            self.keys.replace(before, keyring);
        }
        Ok(!self.keys.is_current(before))
    }

    /// Creates a new data key, and stores it before it is used.
    ///
    /// The writer stores it, or a new connection if there is no writer.
    pub(super) async fn rotate(&self, writer: Option<&Arc<Mutex<Writer>>>) -> Result<(), SqlError> {
        for _ in 0..TRIES {
            let (keys, readers) = (self.keys.clone(), Arc::clone(&self.readers));
            let writer = writer.cloned();
            let rotated = blocking(move || match writer {
                // Under the lock, so that no rotation replaces what another one has stored.
                Some(writer) => rotate(&keys, &mut writer.lock()),
                None => rotate(&keys, &mut Writer::open(readers.database())?),
            });
            if rotated.await? {
                return Ok(());
            }
            // Another process has replaced the keys, and its keys must not be lost.
            self.refresh().await?;
        }
        Err(SqlError::Storage(StorageError::Superseded))
    }
}

/// Creates a new data key and stores it; `false` if other keys are stored.
fn rotate(keys: &Keys, writer: &mut Writer) -> Result<bool, SqlError> {
    let current = keys.current();
    let keyring = current.rotated().map_err(StorageError::from)?;
    // Compared and set, so that two rotations cannot both succeed and lose a key.
    let is_stored = writer.replace_keyring(Some(current.stored()), keyring.stored())?;
    if is_stored {
        // Only after it is stored: rows that are encrypted with it must be readable after a crash.
        keys.replace(&current, keyring);
    }
    Ok(is_stored)
}

/// Stores keys unless they are stored already; returns whether they are stored.
///
/// They replace the keys `before`. If other keys are stored by now, nothing is written.
async fn store(
    mut writer: Writer,
    before: Option<Vec<u8>>,
    keyring: &Keyring,
) -> Result<(Writer, bool), SqlError> {
    let stored = keyring.stored().to_vec();
    let replaced = blocking(move || {
        let is_stored = before.as_deref() == Some(stored.as_slice())
            || writer.replace_keyring(before.as_deref(), &stored)?;
        Ok((writer, is_stored))
    });
    replaced.await
}

/// Reads stored keys, or creates new ones.
///
/// If the wrapping key has changed, they are wrapped again.
async fn keyring(stored: Option<&[u8]>, wrapper: &dyn KeyWrapper) -> Result<Keyring, SqlError> {
    let keyring = match stored {
        None => Keyring::create(wrapper).await,
        Some(stored) => match Keyring::load(stored, wrapper).await {
            Ok(keyring) if !keyring.is_wrapped_by(wrapper) => keyring.rewrapped(wrapper).await,
            loaded => loaded,
        },
    };
    Ok(keyring.map_err(StorageError::from)?)
}
