//! The fill of a kind: writing the first list, and deleting rows that an earlier process has left.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::WarmIdentity;
use lariat_core::ObjectKey;
use tokio::time::{self, Instant};

use super::blocking::LOOK;
use super::feed::{Feed, PAUSES};
use crate::op::Op;
use crate::store::Reached;

/// How long the first fill waits for the version that another process wrote.
///
/// The API server that this process reads from may be behind the one that the other process read from. After this time
/// a lower version is accepted, because the cluster may have been restored.
const STALE: Duration = Duration::from_secs(3);

impl Feed {
    /// Writes the initial list, and deletes rows whose objects do not exist.
    ///
    /// An earlier process may have left such rows. Those of forbidden namespaces stay, because nobody knows whether
    /// their objects exist.
    pub(super) async fn fill(&mut self) {
        // The version that another process has written before.
        let before = self.kind.progress.borrow().reached.version;
        let deadline = Instant::now() + STALE;
        loop {
            if self.stopping.is_cancelled() {
                return;
            }
            self.note_phase();
            // Changes are written while the informer lists, so the fill does not begin only at its end.
            let synced = time::timeout(LOOK, self.informer.synced()).await;
            // Changes that are pending by now belong to the initial list.
            self.write_present().await;
            // Objects that were written without their content are written again if the informer has it by now.
            self.write_present().await;
            match synced {
                // The list may come from an API server that is behind the one that the other process read from.
                Ok(true) if self.reached.version < before && Instant::now() < deadline => {
                    self.pause(LOOK).await;
                }
                // The informer is reading content that it had cached as metadata; until then fields have no values.
                Ok(true) if self.informer.is_upgrading() => self.pause(LOOK).await,
                Ok(true) => break,
                // The kind is not served, and may be later.
                Ok(false) => self.pause(PAUSES.0).await,
                Err(_) => {}
            }
        }
        self.forbidden = self.informer.status().forbidden_namespaces;
        let forbidden = self.forbidden.clone();
        let is_listed = move |key: &ObjectKey| !is_in(key, &forbidden);
        if self.delete_absent(self.reached, is_listed).await {
            self.is_filled = true;
            self.kind.progress.send_modify(|progress| {
                progress.is_synced = true;
                progress.reached = self.reached;
            });
            self.bare.report(&self.informer);
        }
    }

    /// Deletes rows of objects that are gone from formerly forbidden namespaces.
    ///
    /// Their last states are not known, so watches cannot report these deletions, and have to list again.
    pub(super) async fn compare_readable(&mut self) {
        let now = self.informer.status().forbidden_namespaces;
        let forbidden = std::mem::take(&mut self.forbidden);
        let (forbidden, readable): (Vec<_>, Vec<_>) =
            forbidden.into_iter().partition(|it| now.contains(it));
        self.forbidden = forbidden;
        if readable.is_empty() {
            return;
        }
        let reached = Reached {
            change: self.reached.change + 1,
            ..self.reached
        };
        let is_listed = move |key: &ObjectKey| is_in(key, &readable);
        if self.delete_absent(reached, is_listed).await {
            self.history.forget(reached.change);
            self.reached = reached;
            let progress = &self.kind.progress;
            progress.send_modify(|progress| progress.reached = reached);
        }
    }

    /// Deletes the rows that `is_listed` selects and whose objects do not exist.
    ///
    /// Returns `false` if it is stopped before.
    async fn delete_absent(
        &mut self,
        reached: Reached,
        is_listed: impl Fn(&ObjectKey) -> bool + Clone + Send + 'static,
    ) -> bool {
        let identity = self.identity();
        self.identity.clone_from(&identity);
        let (kind, informer) = (Arc::clone(&self.kind), self.informer.clone());
        let unread = Arc::clone(&self.unread);
        let written = self.retry(move |writer| {
            // All under the writer's lock: rows that remain are those of objects that the store or a step has.
            let stored = writer.keys(&kind.tables)?;
            let ops: Vec<Op> = stored
                .iter()
                .filter_map(|key| key.parse::<ObjectKey>().ok())
                // The deletion of an object with a pending step is left to that step, so that watches report it.
                .filter(|key| !unread.has(key) && !informer.store().contains(key))
                .filter(&is_listed)
                .map(Op::Delete)
                .collect();
            // Objects that are not selected any more may have been removed from the store just now.
            let identity = identity
                .as_ref()
                .filter(|it| informer.warm_identity().as_ref() == Some(*it))
                .map(WarmIdentity::as_str);
            writer.apply(&kind.tables, &ops, Some((reached, identity)))?;
            // Statistics of empty tables would lead the planner to scan them.
            writer.settle(&kind.tables)
        });
        written.await
    }
}

fn is_in(key: &ObjectKey, namespaces: &[String]) -> bool {
    key.namespace()
        .is_some_and(|of| namespaces.iter().any(|namespace| namespace == of))
}
