//! The feed: the task that writes the changes of a kind.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Informer, Phase, Subscriber, WarmIdentity};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::bare::Bare;
use super::blocking::{LOOK, blocking};
use super::covered::Covered;
use super::kind::{Inner, SqlKind};
use super::unread::{Unread, UnreadChange};
use crate::op::Op;
use crate::row::{Row, Unindexable, sound};
use crate::schema::Schema;
use crate::sql::StorageError;
use crate::store::{Reached, Writer};
use crate::watch::{Event, History, ObjectState};

/// The largest number of changes in one write, which take a few milliseconds.
const BATCH: usize = 500;

/// How often the informer's version is checked where replicas share the cache.
///
/// Queries of other replicas wait for the version that is written to the database.
const LOOK_SHARED: Duration = Duration::from_millis(100);

/// The shortest and the longest pause before a failed write is retried.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How often the content of objects that were written without it is checked.
const CONTENT_LOOK: Duration = Duration::from_secs(1);

/// Writes the changes that an informer publishes.
pub(super) struct Feed {
    pub(super) kind: Arc<Inner>,
    pub(super) informer: Informer,
    pub(super) history: Arc<History>,
    writer: Arc<Mutex<Writer>>,
    pub(super) reached: Reached,
    pub(super) unread: Arc<Unread>,
    covered: Covered,
    pub(super) bare: Bare,
    /// Whether all objects of the first sync were written.
    pub(super) is_filled: bool,
    /// The namespaces that have been forbidden since the first sync.
    ///
    /// Their rows were written by an earlier process.
    pub(super) forbidden: Vec<String>,
    /// The informer's identity that is written for a restart.
    ///
    /// With `None` the next process lists the kind.
    pub(super) identity: Option<WarmIdentity>,
    /// The token of the whole cache, where replicas share it.
    shared: Option<CancellationToken>,
    /// Stops the feed; a write in progress is finished first.
    pub(super) stopping: CancellationToken,
}

/// Ends the watches of a kind when it is dropped.
struct Ended {
    kind: Arc<Inner>,
    shared: Option<CancellationToken>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let shared = self.shared.as_ref();
        self.kind
            .end(shared.is_some_and(|stopping| !stopping.is_cancelled()));
    }
}

impl Feed {
    pub(super) fn new(
        kind: &SqlKind,
        informer: Informer,
        writer: &Arc<Mutex<Writer>>,
        stopping: &CancellationToken,
    ) -> Self {
        // Fields are in the content of objects. This is requested here and not in `run`: an informer that starts in
        // between would fill the cache with metadata only, and queries would be answered without fields.
        informer.need::<serde_json::Value>();
        let kind = Arc::clone(kind.inner());
        let (history, unread) = kind.begin();
        let reached = Reached {
            history: history.number(),
            ..Reached::default()
        };
        Self {
            kind,
            informer,
            history,
            writer: Arc::clone(writer),
            unread,
            reached,
            covered: Covered::default(),
            bare: Bare::default(),
            is_filled: false,
            forbidden: Vec::new(),
            identity: None,
            shared: None,
            stopping: stopping.clone(),
        }
    }

    /// Lets the feed write a cache that replicas share.
    ///
    /// `stopping` is the token of the whole cache. The token that was given to [`new`](Self::new) ends only this
    /// process's turn to write; the feed cancels it when its connection cannot write any more. If the feed ends before
    /// `stopping` is cancelled, its watches end because another process writes from then on.
    #[cfg(feature = "postgres")]
    pub(super) fn shared(mut self, stopping: &CancellationToken) -> Self {
        self.shared = Some(stopping.clone());
        self
    }

    /// Writes until it is stopped.
    pub(super) async fn run(mut self) {
        let unread = Arc::clone(&self.unread) as Arc<dyn Subscriber>;
        // Before the first fill, so that no change between the list and the subscription is lost.
        let _subscription = self.informer.subscribe(unread);
        // Ends the watches, after a stop, a drop or a panic.
        let _ended = Ended {
            kind: Arc::clone(&self.kind),
            shared: self.shared.clone(),
        };
        let informer = self.informer.clone();
        let is_in_file = self.kind.is_in_file();
        let write = async {
            self.fill().await;
            while !self.stopping.is_cancelled() {
                self.turn().await;
            }
        };
        // Without the cluster's uid, the next process cannot continue from the file.
        let know = async {
            if is_in_file {
                informer.cluster_is_known().await;
            }
            // The result is used through `warm_identity`; this future only must not end the `select!`.
            std::future::pending().await
        };
        tokio::select! {
            () = write => {}
            () = know => {}
        }
    }

    /// Returns the identity that is written with a batch that was taken before.
    ///
    /// Once it was `None`, it is set again only when the informer has synced and all changes are in the batch: until
    /// then the rows may belong to another selection.
    pub(super) fn identity(&self) -> Option<WarmIdentity> {
        // Rows without content would lack fields in the next process, those left out are missing, and those of
        // forbidden namespaces may be outdated: it must list the kind.
        let is_partial =
            self.bare.len() > 0 || self.kind.left_out.len() > 0 || !self.forbidden.is_empty();
        if !self.kind.is_in_file() || is_partial {
            return None;
        }
        let now = self.informer.warm_identity();
        let is_whole = || {
            let is_synced = self.informer.status().phase == Phase::Synced;
            is_synced && self.unread.is_empty()
        };
        now.filter(|now| self.identity.as_ref() == Some(now) || is_whole())
    }

    pub(super) fn note_phase(&self) {
        let phase = self.informer.status().phase.to_string();
        let progress = &self.kind.progress;
        progress.send_modify(|progress| progress.phase = phase);
    }

    /// Waits for changes and writes them, or only the new version.
    async fn turn(&mut self) {
        let mut waiting = self.kind.waiting.subscribe();
        let is_waited_for = *waiting.borrow_and_update() > 0;
        let look = if is_waited_for { LOOK } else { LOOK_SHARED };
        let looks = is_waited_for || self.shared.is_some();
        // Content may have been loaded, or the file may be usable for the next process by now.
        let is_partial = self.bare.len() > 0 || !self.forbidden.is_empty();
        let has_bare = is_partial || (self.identity.is_none() && self.kind.is_in_file());
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => return,
            () = self.unread.filled() => {}
            // The version grows without changes too, and waiting queries and other processes need it.
            () = time::sleep(look), if looks => {}
            () = time::sleep(CONTENT_LOOK), if has_bare => {}
            // A query has begun to wait: the version is checked more often from now on.
            _ = waiting.changed() => {}
        }
        self.write_next().await;
        self.compare_readable().await;
        self.bare.report(&self.informer);
    }

    /// Writes the changes that are pending now.
    ///
    /// Changes that arrive meanwhile are left for later, because they may never stop.
    pub(super) async fn write_present(&mut self) {
        // At least once, for a version without changes.
        let mut left = self.unread.unwritten().0.max(1);
        while left > 0 && self.write_next().await {
            left = left.saturating_sub(BATCH);
        }
    }

    /// Writes the next batch of changes; `false` if there was none, or after a stop.
    async fn write_next(&mut self) -> bool {
        let (steps, reached) = self.batch();
        let is_empty = steps.is_empty();
        // A new version without changes is written too, so that all processes see it.
        let has_news = || reached != self.reached || self.identity() != self.identity;
        if !is_empty || (self.is_filled && has_news()) {
            self.write(steps.into(), reached).await;
        } else {
            // During the first fill, the version is written at its end.
            self.reached = reached;
        }
        !is_empty && !self.stopping.is_cancelled()
    }

    /// Takes the next batch of changes; returns it and the progress it leads to.
    fn batch(&mut self) -> (Vec<UnreadChange>, Reached) {
        let status = self.informer.status();
        let unread = &self.unread;
        // `begun` is read after the version, so that the steps of all changes up to the version have begun.
        if let Some(version) = status.version.and_then(|version| version.number().ok()) {
            self.covered.mark(unread.begun(), version);
        }
        // Before the steps are taken, so that content that was loaded meanwhile is part of this batch.
        self.bare.look(status.loads, &self.informer, unread);
        let steps = unread.take(BATCH);
        let mut reached = self.reached;
        if let Some(version) = self.covered.up_to(unread.first()) {
            reached.version = version;
        }
        if self.is_filled {
            // Numbers of changes begin after the first fill: watches do not report the initial list.
            reached.change += steps.iter().map(events_of).sum::<u64>();
        }
        (steps, reached)
    }

    async fn write(&mut self, steps: Arc<[UnreadChange]>, reached: Reached) {
        let (kind, to_read) = (Arc::clone(&self.kind), Arc::clone(&steps));
        // Computed once, even if the write is retried: values that cannot be indexed are counted here.
        let ops = blocking(move || Ok(to_read.iter().map(|step| kind.op(step)).collect()));
        let Ok(ops) = ops.await else { return };
        let ops: Arc<Vec<Op>> = Arc::new(ops);
        let identity = self.identity();
        self.identity.clone_from(&identity);
        let (kind, is_filled) = (Arc::clone(&self.kind), self.is_filled);
        let written = self.retry(move |writer| {
            let identity = identity.as_ref().map(WarmIdentity::as_str);
            let reached = is_filled.then_some((reached, identity));
            kind.left_out.apply(writer, &kind.tables, &ops, reached)
        });
        if !written.await {
            return;
        }
        if self.is_filled {
            let states = steps.iter().flat_map(events);
            let events = states
                .zip(self.reached.change + 1..)
                .map(|((old, new), change)| Event {
                    version: reached.version,
                    change,
                    old,
                    new,
                });
            // After the commit: a reader that gets the event and queries then finds the change.
            self.history.push(events);
        }
        self.bare.wrote(&steps, &self.informer, &self.unread);
        self.reached = reached;
        // Last, so that the status shows the steps as unwritten until the history has them.
        self.unread.written();
        self.kind.progress.send_modify(|progress| {
            if self.is_filled {
                progress.reached = reached;
            }
            progress.without_content = self.bare.len();
        });
    }

    /// Waits, but not beyond a stop.
    pub(super) async fn pause(&self, pause: Duration) {
        let paused = time::sleep(pause);
        self.stopping.run_until_cancelled(paused).await;
    }

    /// Repeats a write until it succeeds; returns `false` if it is stopped before.
    ///
    /// After an error, such as a full disk, the write is retried with growing [pauses](PAUSES).
    pub(super) async fn retry<F>(&self, write: F) -> bool
    where
        F: Fn(&mut Writer) -> Result<(), StorageError> + Clone + Send + 'static,
    {
        let (mut pause, longest) = PAUSES;
        loop {
            // The writer's lock is taken on the blocking thread: other kinds may be writing for long.
            let (write, writer) = (write.clone(), Arc::clone(&self.writer));
            let written = blocking(move || {
                let mut writer = writer.lock();
                let written = write(&mut writer);
                Ok((written, writer.is_lost()))
            });
            let (error, is_lost) = match written.await {
                Ok((Ok(()), _)) => break,
                Ok((Err(error), is_lost)) => (error.to_string(), is_lost),
                Err(error) => (error.to_string(), false),
            };
            if is_lost {
                // Another process may write by now, and writes what this one could not.
                self.stopping.cancel();
            }
            let kind = self.kind.tables.schema.gvk();
            // Logged once, not with every retry.
            if self.kind.progress.borrow().last_error.is_none() {
                tracing::warn!(%kind, error, "the SQL cache cannot be written, retrying");
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
            tracing::info!(%kind, "the SQL cache can be written again");
        }
        true
    }
}

impl Inner {
    /// Converts a step of an object to a change of its row.
    fn op(&self, step: &UnreadChange) -> Op {
        let Some(object) = &step.new else {
            return Op::Delete(step.key.clone());
        };
        let stored = object.json().unwrap_or_default();
        let (row, unindexable) = Row::of(&self.tables.schema, object, &stored);
        let json = sound(&stored).into_owned();
        self.count(&self.tables.schema, object.key(), &unindexable);
        Op::Put {
            row,
            json,
            is_initial: step.is_initial,
        }
    }

    /// Counts values that cannot be indexed; the first one of each field is logged.
    fn count(&self, schema: &Schema, key: &ObjectKey, unindexable: &[Unindexable]) {
        for Unindexable { place, reason } in unindexable {
            let mut counts = self.unindexable.lock();
            let count = counts.entry(*place).or_default();
            *count += 1;
            if *count == 1 {
                let (kind, field) = (schema.gvk(), schema.fields()[*place].name());
                tracing::warn!(%kind, %key, field, reason, "a field cannot be indexed: the object has no value for it");
            }
        }
    }
}

/// Returns the events of a step for watches, with the states before and after.
///
/// A successor of the same name is a deletion and a creation.
fn events(
    step: &UnreadChange,
) -> impl Iterator<Item = (Option<ObjectState>, Option<ObjectState>)> + use<> {
    let state =
        |object: &Option<Arc<_>>| object.as_ref().map(|it| ObjectState::new(Arc::clone(it)));
    let (old, new) = (state(&step.old), state(&step.new));
    let (first, second) = if step.is_successor() {
        ((old, None), Some((None, new)))
    } else {
        ((old, new), None)
    };
    std::iter::once(first).chain(second)
}

/// Returns the number of events of a step.
fn events_of(step: &UnreadChange) -> u64 {
    1 + u64::from(step.is_successor())
}
