//! The keys of encrypted kinds, which all who share a database have.

use std::sync::Arc;

use lariat_seal::{KeyWrapper, Keyring, Sealing};
use parking_lot::Mutex;

use super::error::SqlError;
use super::feed::blocking;
use crate::sealed::Keys;
use crate::sql::StorageError;
use crate::store::{Database, Writer};

/// How often keys are stored again that another process has replaced meanwhile.
const TRIES: u32 = 8;

/// The keys of a cache, and where they are stored.
#[derive(Debug, Clone)]
pub(super) struct SharedKeys {
    pub(super) keys: Keys,
    sealing: Arc<Sealing>,
    database: Database,
}

impl SharedKeys {
    /// Reads the keys, or makes and stores them; wraps them again where the key that wraps them has changed.
    ///
    /// Returns the writer, too, which was lent.
    pub(super) async fn open(
        database: &Database,
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
            // Before anything is sealed with it.
            (writer, is_stored) = store(writer, stored, &keyring).await?;
            if is_stored {
                let opened = Self {
                    keys: Keys::new(keyring),
                    sealing: Arc::clone(sealing),
                    database: database.clone(),
                };
                return Ok((opened, writer));
            }
        }
        Err(SqlError::Storage(StorageError::Superseded))
    }

    /// Reads the keys again, which another process may have replaced; returns whether they are others.
    pub(super) async fn refresh(&self) -> Result<bool, SqlError> {
        let database = self.database.clone();
        let stored = blocking(move || Ok(Writer::open_to_read(&database)?.keyring()?));
        self.replace(stored.await?).await
    }

    /// Uses these keys, as they are stored; returns whether they are others.
    pub(super) async fn replace(&self, stored: Option<Vec<u8>>) -> Result<bool, SqlError> {
        let Some(stored) = stored else {
            return Ok(false);
        };
        if *self.keys.current().stored() == *stored {
            return Ok(false);
        }
        let keyring = Keyring::load(&stored, self.sealing.wrapper()).await;
        self.keys.replace(keyring.map_err(StorageError::from)?);
        Ok(true)
    }

    /// Makes a new data key, and stores it before it is used; by this writer, or a connection of its own.
    pub(super) async fn rotate(&self, writer: Option<&Arc<Mutex<Writer>>>) -> Result<(), SqlError> {
        for _ in 0..TRIES {
            let (keys, database) = (self.keys.clone(), self.database.clone());
            let writer = writer.cloned();
            let rotated = blocking(move || match writer {
                // One after the other: none may replace what another has stored.
                Some(writer) => rotate(&keys, &mut writer.lock()),
                None => rotate(&keys, &mut Writer::open(&database)?),
            });
            if rotated.await? {
                return Ok(());
            }
            // Another process has replaced them meanwhile: none may be lost.
            self.refresh().await?;
        }
        Err(SqlError::Storage(StorageError::Superseded))
    }
}

/// Makes a new data key and stores it; returns false if other keys are stored than these.
fn rotate(keys: &Keys, writer: &mut Writer) -> Result<bool, SqlError> {
    let current = keys.current();
    let keyring = current.rotated().map_err(StorageError::from)?;
    let is_stored = writer.replace_keyring(Some(current.stored()), keyring.stored())?;
    if is_stored {
        keys.replace(keyring);
    }
    Ok(is_stored)
}

/// Stores keys in the place of others, unless they are the same; returns whether they are there now.
async fn store(
    mut writer: Writer,
    before: Option<Vec<u8>>,
    keyring: &Keyring,
) -> Result<(Writer, bool), SqlError> {
    let stored = keyring.stored().to_vec();
    let stored = blocking(move || {
        let is_stored = before.as_deref() == Some(stored.as_slice())
            || writer.replace_keyring(before.as_deref(), &stored)?;
        Ok((writer, is_stored))
    });
    stored.await
}

/// Reads stored keys, or makes some; wraps them again where the key that wraps them has changed.
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
