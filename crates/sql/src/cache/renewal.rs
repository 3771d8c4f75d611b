//! Renewal: after a rotation of the data key, rows are sealed anew and the old data keys are dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lariat_seal::Keyring;
use parking_lot::Mutex;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::error::SqlError;
use super::feed::PAUSES;
use super::keys::SharedKeys;
use super::kind::SqlKind;
use crate::sealed::Sealed;
use crate::sql::StorageError;
use crate::store::Writer;

/// The pause between two pieces, in which other writes get the writer's lock.
const PAUSE: Duration = Duration::from_millis(10);

/// Seals the rows of old data keys anew, as long as this process writes.
///
/// Its progress is not stored. While the keyring has old data keys, all rows are read again after a restart, after
/// another rotation, and when another process takes over writing.
pub(super) struct Renewal {
    pub(super) keys: SharedKeys,
    pub(super) kinds: Vec<SqlKind>,
    pub(super) writer: Arc<Mutex<Writer>>,
    pub(super) stopping: CancellationToken,
}

impl Renewal {
    /// Runs until it is stopped; a piece that is being written is finished first.
    pub(super) async fn run(self) {
        let mut used = self.keys.keys.subscribe();
        let (mut pause, longest) = PAUSES;
        while !self.stopping.is_cancelled() {
            let keyring = Arc::clone(&used.borrow_and_update());
            match self.renew(&keyring).await {
                Ok(()) => {
                    pause = PAUSES.0;
                    // Returns at once if the keys have changed meanwhile.
                    let changed = used.changed();
                    self.stopping.run_until_cancelled(changed).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "rows of an old data key cannot be sealed anew, retrying");
                    let paused = time::sleep(pause);
                    self.stopping.run_until_cancelled(paused).await;
                    pause = (2 * pause).min(longest);
                }
            }
        }
    }

    /// Seals all rows with the current data key; stops if the keys change meanwhile.
    async fn renew(&self, keyring: &Arc<Keyring>) -> Result<(), SqlError> {
        if keyring.old_data_keys() == 0 {
            return Ok(());
        }
        let kinds: Vec<(&SqlKind, &Sealed)> = self
            .kinds
            .iter()
            .filter_map(|kind| Some((kind, kind.inner().tables.sealed.as_ref()?)))
            .collect();
        for (kind, of) in &kinds {
            let of = (*of).clone();
            let rows = self.with_writer(move |writer| writer.sealed_rows(&of));
            kind.inner().old_rows.store(rows.await?, Ordering::Relaxed);
        }
        for (kind, of) in &kinds {
            if !self.renew_kind(kind, of, keyring).await? {
                return Ok(());
            }
        }
        let kinds = kinds.into_iter().map(|(kind, _)| kind);
        let numbers = kinds.map(|kind| kind.inner().tables.layout.number());
        self.retire(numbers.collect(), keyring).await
    }

    /// Seals the rows of a kind anew.
    ///
    /// Returns `false` if it is stopped, or the keys change before the end.
    async fn renew_kind(
        &self,
        kind: &SqlKind,
        of: &Sealed,
        keyring: &Arc<Keyring>,
    ) -> Result<bool, SqlError> {
        let mut after = 0;
        loop {
            if self.stopping.is_cancelled() || !self.keys.keys.is_current(keyring) {
                return Ok(false);
            }
            let (of, keys) = (of.clone(), Arc::clone(keyring));
            let renewed = self.with_writer(move |writer| writer.renew(&of, &keys, after));
            let left = &kind.inner().old_rows;
            let Some(renewed) = renewed.await? else {
                left.store(0, Ordering::Relaxed);
                return Ok(true);
            };
            after = renewed.last;
            let rows = left.load(Ordering::Relaxed).saturating_sub(renewed.rows);
            left.store(rows, Ordering::Relaxed);
            time::sleep(PAUSE).await;
        }
    }

    /// Drops the old data keys, unless the keys have changed.
    async fn retire(&self, numbers: Vec<i64>, keyring: &Arc<Keyring>) -> Result<(), SqlError> {
        let (keys, before) = (self.keys.keys.clone(), Arc::clone(keyring));
        let is_retired = self.with_writer(move |writer| {
            // Under the writer's lock, so that no row is sealed with a key that is dropped.
            if !keys.is_current(&before) {
                return Ok(true);
            }
            let after = before.without_old()?;
            let is_stored = writer.retire(numbers, &before, &after)?;
            if is_stored {
                keys.replace(&before, after);
            }
            Ok(is_stored)
        });
        // Another process has stored other keys; the rows must be sealed with those.
        if !is_retired.await? && !self.keys.refresh().await? {
            return Err(StorageError::Superseded.into());
        }
        Ok(())
    }

    /// Runs work with the writer, which blocks.
    async fn with_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, SqlError> {
        let writer = Arc::clone(&self.writer);
        blocking(move || Ok(work(&mut writer.lock())?)).await
    }
}
