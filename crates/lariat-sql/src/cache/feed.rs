//! The task that writes the changes of a kind.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Informer, Subscriber};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::bare::Bare;
use super::covered::Covered;
use super::error::SqlError;
use super::kind::{Inner, SqlKind};
use super::unread::Step;
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

/// How often it looks whether the content has come of objects that were written without it.
const CONTENT_LOOK: Duration = Duration::from_secs(1);

/// Writes what an informer says, change by change.
pub(super) struct Feed {
    kind: Arc<Inner>,
    informer: Informer,
    writer: Arc<Mutex<Writer>>,
    reached: Reached,
    covered: Covered,
    bare: Bare,
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

impl Feed {
    pub(super) fn new(
        kind: &SqlKind,
        informer: Informer,
        writer: &Arc<Mutex<Writer>>,
        stopping: &CancellationToken,
    ) -> Self {
        Self {
            kind: Arc::clone(kind.inner()),
            informer,
            writer: Arc::clone(writer),
            reached: Reached::default(),
            covered: Covered::default(),
            bare: Bare::default(),
            stopping: stopping.clone(),
        }
    }

    /// Writes until it is stopped.
    pub(super) async fn run(mut self) {
        // Fields are in the content of objects.
        self.informer.need::<serde_json::Value>();
        let history = Arc::clone(&self.kind.history);
        let unread = Arc::clone(&self.kind.unread) as Arc<dyn Subscriber>;
        let _subscription = self.informer.subscribe(unread);
        // However it ends: by a stop, a drop or a panic.
        let _ended = Ended(history);
        self.fill().await;
        while !self.stopping.is_cancelled() {
            self.turn().await;
        }
    }

    /// Writes what there is at first, and deletes what an earlier process has left that is gone.
    async fn fill(&mut self) {
        loop {
            if self.stopping.is_cancelled() {
                return;
            }
            let phase = self.informer.status().phase.to_string();
            self.kind
                .progress
                .send_modify(|progress| progress.phase = phase);
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
        let reached = self.reached;
        let deleted = self.retry(move || {
            let keys = writer.lock().keys(&kind.tables)?;
            let keys = keys.iter().filter_map(|key| key.parse::<ObjectKey>().ok());
            let gone = keys.filter(|key| !informer.store().contains(key));
            let ops: Vec<Op> = gone.map(Op::Delete).collect();
            writer.lock().apply(&kind.tables, &ops, reached)
        });
        let is_synced = deleted.await;
        self.bare.report(&self.informer);
        self.kind
            .progress
            .send_modify(|progress| progress.is_synced = is_synced);
    }

    /// Waits for changes and writes them; or writes how far the informer has gone on without one.
    async fn turn(&mut self) {
        let mut waiting = self.kind.waiting.subscribe();
        let is_waited_for = *waiting.borrow_and_update() > 0;
        let has_bare = self.bare.len() > 0;
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => return,
            () = self.kind.unread.filled() => {}
            () = time::sleep(LOOK), if is_waited_for => {}
            () = time::sleep(CONTENT_LOOK), if has_bare => {}
            _ = waiting.changed() => {}
        }
        self.write_next().await;
        self.bare.report(&self.informer);
    }

    /// Writes what has come by now; returns whether there was a change.
    async fn write_next(&mut self) -> bool {
        let (steps, reached) = self.batch();
        let is_empty = steps.is_empty();
        // A version alone is written, too: an answer of that version says so then, from whatever process it comes.
        if !is_empty || reached != self.reached {
            self.write(steps.into(), reached).await;
        }
        !is_empty && !self.stopping.is_cancelled()
    }

    /// Takes changes that have come by now; returns them, and up to where the kind is with them.
    fn batch(&mut self) -> (Vec<Step>, Reached) {
        let status = self.informer.status();
        let unread = &self.kind.unread;
        // After the version: all up to it have begun.
        if let Some(version) = status.version.and_then(|version| version.number().ok()) {
            self.covered.mark(unread.begun(), version);
        }
        self.bare.look(status.loads, &self.informer, unread);
        let steps = unread.take(BATCH);
        let mut reached = self.reached;
        if let Some(version) = self.covered.up_to(unread.first()) {
            reached.version = version;
        }
        if self.kind.progress.borrow().is_synced {
            reached.change += steps.iter().map(events_of).sum::<u64>();
        }
        (steps, reached)
    }

    async fn write(&mut self, steps: Arc<[Step]>, reached: Reached) {
        let (kind, to_read) = (Arc::clone(&self.kind), Arc::clone(&steps));
        // Once, however often they are written: what cannot be indexed is counted.
        let ops = blocking(move || Ok(to_read.iter().map(|step| kind.op(step)).collect()));
        let Ok(ops) = ops.await else { return };
        let ops: Arc<Vec<Op>> = Arc::new(ops);
        let (kind, writer) = (Arc::clone(&self.kind), Arc::clone(&self.writer));
        let written = self.retry(move || writer.lock().apply(&kind.tables, &ops, reached));
        if !written.await {
            return;
        }
        if self.kind.progress.borrow().is_synced {
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
        self.bare.wrote(&steps, &self.informer, &self.kind.unread);
        self.reached = reached;
        self.kind.unread.written();
        self.kind.progress.send_modify(|progress| {
            progress.reached = reached;
            progress.without_content = self.bare.len();
        });
    }

    /// Waits, but not beyond a stop.
    async fn pause(&self, pause: Duration) {
        let paused = time::sleep(pause);
        self.stopping.run_until_cancelled(paused).await;
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
