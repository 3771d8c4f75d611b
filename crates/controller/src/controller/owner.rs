//! The owner of a kind: the one task that opens, syncs, runs, drains and rests it.
//!
//! A kind has at most one owner in a run of the factory, which begins with the start or with the first use of the kind
//! after it, and runs do not overlap. It is in one of the [`State`]s, and each has a method that returns the next one:
//!
//! | state | workers | next |
//! |---|---|---|
//! | `Resting` | in calls of deregistered handlers | a use: `Syncing`; a stop: `Draining`; no workers: the owner ends |
//! | `Syncing` | the same | the kind's cache is synced: `Standby`; no handlers: `Resting`; a stop: `Draining` |
//! | `Standby` | the same | this process leads: `Running`; no handlers: `Resting`; a stop: `Draining` |
//! | `Running` | all | no handlers: `Resting`; a stop: `Draining` |
//! | `Draining` | until the queue is drained | the owner ends |
//!
//! A panic of user code in a state is logged, and the state begins again. Queue, handlers and records belong to the
//! [`ControllerCore`], which outlives owners.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{OptionFuture, select_all};
use tokio::task::{JoinError, JoinSet};
use tokio::time;
use tokio_util::task::TaskTracker;

use super::core::ControllerCore;
use super::crew::{Crew, Place};
use super::opened::Opened;
use super::resyncs::Resyncs;
use super::slot::Slot;
use super::sources::Sources;
use super::worker::{Stopping, work};
use crate::panics;

/// How long a kind without handlers stays in use.
///
/// It was opened by an enqueued key, for which a handler may still be registered.
const UNUSED: Duration = Duration::from_secs(60);

/// The delay before a worker that panicked is replaced, and before a state that panicked begins again.
const RESPAWN_PAUSE: Duration = Duration::from_secs(1);

/// Where the life of a kind is between a start and a stop.
#[derive(Clone)]
enum State {
    /// The kind has no handlers and no use of its cache.
    Resting,
    /// The cache is being filled.
    Syncing(Arc<Opened>),
    /// The cache is synced, and this process may not lead yet.
    Standby(Arc<Opened>),
    /// Handlers are called.
    Running(Arc<Opened>),
    /// A stop has begun. The use is that of the workers; none if the kind did not run.
    Draining(Option<Arc<Opened>>),
}

/// Why a wait has ended early.
enum Interrupt {
    /// The last handler has ended.
    Rest,
    /// A stop has begun.
    Stop,
}

/// The owner of a kind.
pub(crate) struct Owner {
    slot: Arc<Slot>,
    core: Arc<ControllerCore>,
    state: State,
    /// The number of workers.
    wanted: usize,
    stopping: Stopping,
    workers: JoinSet<()>,
    /// The tasks of the run. Workers are among them, so that a run is over when they have ended, however that comes.
    tasks: TaskTracker,
    crew: Arc<Crew>,
    resyncs: Resyncs,
    sources: Sources,
}

impl Owner {
    /// Creates the owner of a kind, whose workers are among `tasks`.
    pub(crate) fn new(
        slot: &Arc<Slot>,
        wanted: usize,
        stopping: Stopping,
        tasks: &TaskTracker,
    ) -> Self {
        let core = Arc::clone(slot.controller());
        core.begin_run();
        Self {
            // Now, and not by the task: a stop may begin before its first poll, and drains what was opened before.
            state: core.opened().map_or(State::Resting, State::Syncing),
            wanted,
            stopping,
            workers: JoinSet::new(),
            tasks: tasks.clone(),
            crew: Crew::new(&core, wanted),
            resyncs: Resyncs::default(),
            sources: Sources::new(core.gvk()),
            slot: Arc::clone(slot),
            core,
        }
    }

    /// Owns the kind until a stop has ended, or nothing of the kind is in use or running.
    pub(crate) async fn run(mut self) {
        loop {
            let turn = AssertUnwindSafe(self.turn()).catch_unwind().await;
            match turn {
                Ok(Some(next)) => self.state = next,
                Ok(None) => return,
                Err(panic) => {
                    // It drops handlers, relations and streams of users when they end.
                    let (kind, text) = (self.core.gvk(), panics::message(&*panic));
                    tracing::error!(%kind, "the owner of a controller panicked and continues: {text}");
                    time::sleep(RESPAWN_PAUSE).await;
                }
            }
        }
    }

    /// Stays in a state until it ends; returns the next one, or none at the end.
    async fn turn(&mut self) -> Option<State> {
        match self.state.clone() {
            State::Resting => self.rest().await,
            State::Syncing(opened) => Some(self.sync(&opened).await),
            State::Standby(opened) => Some(self.stand_by(&opened).await),
            State::Running(opened) => Some(self.supervise(&opened).await),
            State::Draining(opened) => {
                self.drain(opened.as_ref()).await;
                None
            }
        }
    }

    /// Waits for a use of the kind. Only calls of deregistered handlers are running.
    async fn rest(&mut self) -> Option<State> {
        self.resyncs = Resyncs::default();
        self.core.set_working(0);
        self.end_sources();
        loop {
            // Created before the state is read, so that a change in between is not missed.
            let core = Arc::clone(&self.core);
            let changed = core.lanes().changed();
            // First: what is opened during a stop waits for the next start.
            if self.stopping.drain.is_cancelled() {
                return Some(State::Draining(None));
            }
            if let Some(opened) = self.core.opened() {
                return Some(State::Syncing(opened));
            }
            if self.workers.is_empty() && self.gives_up() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.stopping.drain.cancelled() => {}
                // A worker that panicked is not replaced: there is nothing to do.
                Some(ended) = self.workers.join_next() => drop(self.has_panicked(&ended)),
                () = self.core.log_leaving() => {}
                () = changed => {}
            }
        }
    }

    /// Waits until the cache of the kind is synced, also if the kind is not served yet.
    async fn sync(&mut self, opened: &Arc<Opened>) -> State {
        let interrupt = tokio::select! {
            biased;
            () = opened.caches().own_synced() => {
                self.core.await_related(opened);
                return State::Standby(Arc::clone(opened));
            }
            interrupt = interrupted(&self.slot, &self.stopping, opened) => interrupt,
        };
        match interrupt {
            Interrupt::Rest => State::Resting,
            // The keys that are due are drained if the caches were synced when the stop began, even if no worker has
            // started yet. With a half-filled cache no handler is called.
            Interrupt::Stop if self.core.was_synced_at_stop() => State::Standby(Arc::clone(opened)),
            Interrupt::Stop => State::Draining(None),
        }
    }

    /// Waits until this process leads, if only the leader handles the kind. Keys are queued in the meantime.
    async fn stand_by(&mut self, opened: &Arc<Opened>) -> State {
        let leads = async {
            if let Some(leadership) = self.core.leadership()
                && !leadership.acquired().await
            {
                // The election has ended, so this run is about to be stopped.
                std::future::pending().await
            }
        };
        let interrupt = tokio::select! {
            biased;
            // A process that leads only after its stop has begun calls no handler, and gives the lease back.
            () = leads => return if self.stopping.drain.is_cancelled() && !self.core.is_drained_by_stop() {
                State::Draining(None)
            } else {
                State::Running(Arc::clone(opened))
            },
            interrupt = interrupted(&self.slot, &self.stopping, opened) => interrupt,
        };
        match interrupt {
            Interrupt::Rest => State::Resting,
            Interrupt::Stop => State::Draining(None),
        }
    }

    /// Starts the workers, and supervises them and all periodic work.
    ///
    /// It replaces workers that panicked or are in calls of deregistered handlers, enqueues resyncs, keys of streams
    /// and keys that the share gains, replays related content, releases keys that wait for caches, removes handlers
    /// whose token is cancelled, and logs failure summaries.
    async fn supervise(&mut self, opened: &Arc<Opened>) -> State {
        let caches = opened.caches();
        if self.stopping.drain.is_cancelled() && self.core.was_synced_at_stop() {
            // Keys that wait for caches are due, so they are drained too. Keys whose caches are not synced wait for the
            // next start.
            let lanes = self.core.lanes().list();
            lanes.iter().for_each(|lane| caches.open(lane));
        }
        caches.place_owners();
        self.core.set_working(self.wanted);
        let core = Arc::clone(&self.core);
        loop {
            // Created before the state is read, so that a change in between is not missed.
            let changed = core.lanes().changed();
            self.fill(opened);
            // Again in each turn, for relations that were added in the meantime.
            caches.place_owners();
            let lanes = self.core.lanes().list();
            self.sources.follow(&lanes);
            let next = self.resyncs.follow(&lanes);
            let timer: OptionFuture<_> = next.map(time::sleep_until).into();
            let (slot, stopping) = (&self.slot, &self.stopping);
            tokio::select! {
                // Every branch can be dropped and created again without losing anything.
                () = opened.closed().cancelled() => return State::Resting,
                () = stopping.drain.cancelled() => return State::Draining(Some(Arc::clone(opened))),
                Some(ended) = self.workers.join_next() => self.replace_dead(&ended, opened),
                Some(()) = timer => self.resyncs.replay(&core, opened),
                () = self.sources.enqueue_next(&core) => {}
                () = core.enqueue_gains(opened) => {}
                () = caches.read_unread() => {}
                () = caches.release_held() => {}
                () = lane_ended(&core) => slot.sweep(),
                () = unused(&core) => slot.rest_if_unused(),
                () = core.failures_due() => core.log_failures(false),
                () = core.log_leaving() => {}
                () = changed => {}
            }
        }
    }

    /// Spawns workers until there are enough.
    fn fill(&mut self, opened: &Arc<Opened>) {
        // After the loss of the lease, workers end at once.
        while !self.stopping.abort.is_cancelled()
            && let Some(place) = self.crew.join()
        {
            self.spawn(place, opened, Duration::ZERO);
        }
    }

    /// Spawns a worker, which begins after a pause.
    fn spawn(&mut self, place: Place, opened: &Arc<Opened>, pause: Duration) {
        let (core, opened) = (Arc::clone(&self.core), Arc::clone(opened));
        let stopping = self.stopping.clone();
        let worker = async move {
            if !pause.is_zero() {
                time::sleep(pause).await;
            }
            work(place, core, opened, stopping).await;
        };
        self.workers.spawn(self.tasks.track_future(worker));
    }

    /// Replaces a worker that panicked, and logs the panic.
    ///
    /// Panics of handlers are caught by the guard of a call. A bug in this crate gets here, or a panic while a
    /// handler's future is dropped. Neither may leave the kind without workers.
    fn replace_dead(&mut self, ended: &Result<(), JoinError>, opened: &Arc<Opened>) {
        if self.has_panicked(ended)
            && let Some(place) = self.crew.join()
        {
            self.spawn(place, opened, RESPAWN_PAUSE);
        }
    }

    /// Returns whether a worker has panicked, and logs it.
    fn has_panicked(&self, ended: &Result<(), JoinError>) -> bool {
        let panic = ended.as_ref().err().filter(|error| error.is_panic());
        if let Some(error) = panic {
            tracing::error!(kind = %self.core.gvk(), %error, "a worker panicked");
        }
        panic.is_some()
    }

    /// Waits until the workers have drained the queue.
    async fn drain(&mut self, opened: Option<&Arc<Opened>>) {
        self.core
            .note_drain(opened.is_some() && self.core.may_call());
        // The streams end before the drain: a call may wait until its stream does.
        self.end_sources();
        let core = Arc::clone(&self.core);
        loop {
            // Created before the state is read, so that a change in between is not missed.
            let changed = core.lanes().changed();
            // Only if they would find a key: other workers end at once.
            let finds_key = !core.queue().is_empty() && !core.is_unused();
            if let Some(opened) = opened
                && finds_key
                && !opened.closed().is_cancelled()
            {
                self.fill(opened);
            }
            tokio::select! {
                biased;
                ended = self.workers.join_next() => match (ended, opened) {
                    (None, _) => break,
                    // A worker that panics during a drain is replaced too. Otherwise the drain would not end.
                    (Some(ended), Some(opened)) => self.replace_dead(&ended, opened),
                    (Some(ended), None) => drop(self.has_panicked(&ended)),
                },
                () = lane_ended(&core) => self.slot.sweep(),
                () = core.log_leaving() => {}
                () = changed => {}
            }
        }
        self.core.set_working(0);
        self.core.log_failures(true);
    }

    /// Returns whether the kind still rests and this owner ends, so that the slot can be dropped.
    fn gives_up(&self) -> bool {
        let factory = self.slot.factory().upgrade();
        // Without a factory, `drain` is cancelled.
        factory.is_some_and(|factory| factory.give_up(&self.slot))
    }

    /// Drops the streams of keys. A panic of their drop is printed by the panic hook, and must not end the owner.
    fn end_sources(&mut self) {
        let sources = std::mem::replace(&mut self.sources, Sources::new(self.core.gvk()));
        let _ = catch_unwind(AssertUnwindSafe(|| drop(sources)));
    }
}

/// Removes handlers whose token is cancelled, until the kind rests or a stop begins.
///
/// The caches may take long to sync, and a standby replica may wait for hours.
async fn interrupted(slot: &Slot, stopping: &Stopping, opened: &Opened) -> Interrupt {
    let core = slot.controller();
    loop {
        slot.sweep();
        let changed = core.lanes().changed();
        tokio::select! {
            biased;
            () = opened.closed().cancelled() => return Interrupt::Rest,
            () = stopping.drain.cancelled() => return Interrupt::Stop,
            () = core.log_leaving() => {}
            () = lane_ended(core) => {}
            () = unused(core) => slot.rest_if_unused(),
            () = changed => {}
        }
    }
}

/// Waits until a kind without handlers has been in use for long enough.
async fn unused(core: &ControllerCore) {
    if core.is_unused() {
        time::sleep(UNUSED).await;
    } else {
        std::future::pending().await
    }
}

/// Waits until the token of some handler is cancelled.
async fn lane_ended(core: &ControllerCore) {
    let lanes = core.lanes().list();
    let tokens = lanes.iter().filter_map(|lane| lane.until());
    let ends: Vec<_> = tokens.map(|token| Box::pin(token.cancelled())).collect();
    if ends.is_empty() {
        return std::future::pending().await;
    }
    drop(select_all(ends).await);
}
