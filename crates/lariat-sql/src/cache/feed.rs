//! The task that writes the changes of a kind.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Informer, Phase, Subscriber};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::error::SqlError;
use super::kind::{Inner, SqlKind};
use super::unread::{Step, Unread};
use crate::row::{Row, Unindexable};
use crate::schema::Schema;
use crate::sqlite::{Op, Reached, StorageError, Writer};
use crate::watch::{Event, History, State};

/// How many changes are written at a time: a few milliseconds of work.
const BATCH: usize = 500;

/// How often it looks whether the informer is further, while queries wait for it and nothing changes.
const LOOK: Duration = Duration::from_millis(20);

/// How long it waits before it writes again what could not be written, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Runs what blocks.
///
/// # Errors
///
/// The runtime is shut down.
pub(super) async fn blocking<T, F>(work: F) -> Result<T, SqlError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, SqlError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(SqlError::Stopped),
    }
}

/// Writes what an informer says, change by change.
pub(super) struct Feed {
    kind: Arc<Inner>,
    informer: Informer,
    writer: Arc<Mutex<Writer>>,
    unread: Arc<Unread>,
    reached: Reached,
    /// Whether the informer had begun to read before the content was needed.
    is_late: bool,
    /// What is being written when it is cancelled is written to its end.
    stopping: CancellationToken,
}

/// Ends the watches of a kind when it is dropped.
struct Ended(Arc<History>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Steps that are written together.
struct Batch {
    steps: Vec<Step>,
    /// Up to where the kind is with them.
    reached: Reached,
    /// Since when the first of them waits, or earlier.
    since: Instant,
}

impl Feed {
    pub(super) fn new(
        kind: &SqlKind,
        informer: Informer,
        writer: &Arc<Mutex<Writer>>,
        stopping: &CancellationToken,
    ) -> Self {
        // Fields are in the content of objects. At once, not when it runs: an informer that is started meanwhile would fill the
        // cache with metadata alone, and queries would be answered without fields.
        informer.need::<serde_json::Value>();
        let is_late = informer.status().phase != Phase::Idle;
        Self {
            kind: Arc::clone(kind.inner()),
            informer,
            writer: Arc::clone(writer),
            unread: Arc::default(),
            reached: Reached::default(),
            is_late,
            stopping: stopping.clone(),
        }
    }

    /// Writes until it is stopped.
    pub(super) async fn run(mut self) {
        // However it ends: by a stop, a drop or a panic.
        let _ended = Ended(Arc::clone(&self.kind.history));
        self.upgraded().await;
        let unread = Arc::clone(&self.unread) as Arc<dyn Subscriber>;
        let _subscription = self.informer.subscribe(unread);
        self.fill().await;
        while !self.stopping.is_cancelled() {
            self.turn().await;
        }
    }

    /// Waits until all that was read as metadata has its content, which subscribers are not told.
    async fn upgraded(&self) {
        while self.is_late && !self.stopping.is_cancelled() {
            self.note_phase();
            if time::timeout(LOOK, self.informer.synced()).await.is_ok() {
                return;
            }
        }
    }

    fn note_phase(&self) {
        let phase = self.informer.status().phase.to_string();
        let progress = &self.kind.progress;
        progress.send_modify(|progress| progress.phase = phase);
    }

    /// Writes what there is at first, and deletes what an earlier process has left that is gone.
    async fn fill(&mut self) {
        loop {
            if self.stopping.is_cancelled() {
                return;
            }
            self.note_phase();
            let synced = time::timeout(LOOK, self.informer.synced()).await;
            while self.write_next().await {}
            match synced {
                Ok(true) => break,
                // The kind is not served; it may be later.
                Ok(false) => self.pause(PAUSES.0).await,
                Err(_) => {}
            }
        }
        let kind = Arc::clone(&self.kind);
        let writer = Arc::clone(&self.writer);
        let informer = self.informer.clone();
        let deleted = self.retry(move || {
            let keys = writer.lock().keys(&kind.tables)?;
            let keys = keys.iter().filter_map(|key| key.parse::<ObjectKey>().ok());
            let gone = keys.filter(|key| !informer.store().contains(key));
            let ops: Vec<Op> = gone.map(Op::Delete).collect();
            let reached = kind.progress.borrow().reached;
            writer.lock().apply(&kind.tables, &ops, reached)
        });
        let is_synced = deleted.await;
        self.kind
            .progress
            .send_modify(|progress| progress.is_synced = is_synced);
    }

    /// Waits for changes and writes them; or notes that there is none while the informer has gone on.
    async fn turn(&mut self) {
        let mut waiting = self.kind.waiting.subscribe();
        let is_waited_for = *waiting.borrow_and_update() > 0;
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => return,
            () = self.unread.filled() => {}
            () = time::sleep(LOOK), if is_waited_for => {}
            _ = waiting.changed() => {}
        }
        self.write_next().await;
    }

    /// Writes what has come by now; returns whether there was anything.
    async fn write_next(&mut self) -> bool {
        let batch = self.batch();
        let is_empty = batch.steps.is_empty();
        if is_empty {
            // Nothing is missing up to there.
            self.reached = batch.reached;
            self.note(batch.reached);
        } else {
            self.write(batch).await;
        }
        !is_empty && !self.stopping.is_cancelled()
    }

    /// Takes the changes that have come by now.
    fn batch(&self) -> Batch {
        let since = Instant::now();
        // Before steps are taken: all up to this version have come by now.
        let version = self.informer.status().version;
        let steps = self.unread.take(BATCH);
        let mut reached = self.reached;
        if self.unread.len() == 0
            && let Some(version) = version.and_then(|version| version.number().ok())
        {
            reached.version = version;
        }
        if self.kind.progress.borrow().is_synced {
            reached.change += steps.iter().map(events_of).sum::<u64>();
        }
        Batch {
            steps,
            reached,
            since,
        }
    }

    async fn write(&mut self, batch: Batch) {
        let Batch {
            steps,
            reached,
            since,
        } = batch;
        let unwritten = steps.len() + self.unread.len();
        let progress = &self.kind.progress;
        progress.send_modify(|progress| progress.unwritten = unwritten);
        let is_synced = progress.borrow().is_synced;
        let steps = Arc::new(steps);
        let (kind, writer) = (Arc::clone(&self.kind), Arc::clone(&self.writer));
        let to_write = Arc::clone(&steps);
        let written = self.retry(move || {
            let ops: Vec<Op> = to_write.iter().map(|step| kind.op(step)).collect();
            writer.lock().apply(&kind.tables, &ops, reached)
        });
        if !written.await {
            return;
        }
        if is_synced {
            let states = steps.iter().flat_map(events);
            let events = states.zip(self.reached.change + 1..);
            let events = events.map(|((old, new), change)| Event {
                version: reached.version,
                change,
                old,
                new,
            });
            self.kind.history.push(events);
        }
        self.reached = reached;
        self.kind.progress.send_modify(|progress| {
            progress.lag = since.elapsed();
            progress.unwritten = self.unread.len();
        });
        self.note(reached);
    }

    /// Waits, but not beyond a stop.
    async fn pause(&self, pause: Duration) {
        let paused = time::sleep(pause);
        self.stopping.run_until_cancelled(paused).await;
    }

    fn note(&self, reached: Reached) {
        self.kind.progress.send_if_modified(|progress| {
            let is_news = progress.reached != reached;
            progress.reached = reached;
            is_news
        });
    }

    /// Does what writes until it succeeds; a full disk, say, is waited out. Returns whether it has, before a stop.
    async fn retry<F>(&self, write: F) -> bool
    where
        F: Fn() -> Result<(), StorageError> + Clone + Send + 'static,
    {
        let (mut pause, longest) = PAUSES;
        loop {
            let write = write.clone();
            let error = match blocking(move || write().map_err(SqlError::from)).await {
                Ok(()) => break,
                Err(error) => error.to_string(),
            };
            let kind = self.kind.tables.schema.gvk();
            if self.kind.progress.borrow().last_error.is_none() {
                tracing::warn!(%kind, error, "the SQL cache cannot be written; it is tried again");
            }
            self.kind
                .progress
                .send_modify(|progress| progress.last_error = Some(error));
            self.pause(pause).await;
            if self.stopping.is_cancelled() {
                return false;
            }
            pause = (2 * pause).min(longest);
        }
        let had_error = self
            .kind
            .progress
            .send_if_modified(|progress| progress.last_error.take().is_some());
        if had_error {
            let kind = self.kind.tables.schema.gvk();
            tracing::info!(%kind, "the SQL cache is written again");
        }
        true
    }
}

impl Inner {
    /// Makes the change of a row from what happened to an object.
    fn op(&self, step: &Step) -> Op {
        let Some(object) = &step.new else {
            return Op::Delete(step.key.clone());
        };
        let json = object.json().unwrap_or_default().into_owned();
        let parsed = serde_json::from_slice(&json).unwrap_or_default();
        let (row, unindexable) = Row::read(&self.tables.schema, object, &parsed);
        self.count(&self.tables.schema, object.key(), &unindexable);
        Op::Put {
            row,
            json,
            is_initial: step.is_initial,
        }
    }

    /// Counts values that cannot be indexed; the first of each field is logged.
    fn count(&self, schema: &Schema, key: &ObjectKey, unindexable: &[Unindexable]) {
        for Unindexable { place, why } in unindexable {
            let mut counts = self.unindexable.lock();
            let count = counts.entry(*place).or_default();
            *count += 1;
            if *count == 1 {
                let (kind, field) = (schema.gvk(), schema.fields()[*place].name());
                tracing::warn!(%kind, %key, field, why, "a field cannot be indexed: the object has no value for it");
            }
        }
    }
}

/// Returns the states between which a step leads, for watches; a successor of the same name is a deletion and a creation.
fn events(step: &Step) -> impl Iterator<Item = (Option<State>, Option<State>)> + use<> {
    let state = |object: &Option<Arc<_>>| object.as_ref().map(|it| State::new(Arc::clone(it)));
    let (old, new) = (state(&step.old), state(&step.new));
    let (first, second) = if step.is_successor() {
        ((old, None), Some((None, new)))
    } else {
        ((old, new), None)
    };
    std::iter::once(first).chain(second)
}

/// Returns how many events a step is.
fn events_of(step: &Step) -> u64 {
    1 + u64::from(step.is_successor())
}
