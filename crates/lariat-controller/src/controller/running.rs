//! A running controller, from start to stop.
//!
//! [`RunningController::run`] is one task. It waits until the caches are synced and this process leads, spawns the
//! workers, and then supervises them along with everything else that happens periodically or on a signal. A stop ends
//! the supervision, and waits for the workers, which drain the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{OptionFuture, select_all};
use lariat_core::{Cause, Gvk};
use lariat_queue::{Add, LaneId};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use super::feed::Feed;
use super::shards::{Follower, Gain};
use super::slot::Slot;
use super::sources::Sources;
use super::worker::{Stopping, work};
use crate::lane::{Lane, LaneList, Limit};
use crate::panics;

/// How often a kind that is not served is checked again.
const MISSING_PERIOD: Duration = Duration::from_secs(1);

/// How long a controller without handlers keeps running.
///
/// It was created by an enqueued key, for which a handler may still be registered.
const UNUSED: Duration = Duration::from_secs(60);

/// The delay before a worker that panicked is replaced, and before a supervisor that panicked continues.
const RESPAWN_PAUSE: Duration = Duration::from_secs(1);

/// The parts of a running controller that a panic of its supervisor leaves as they are.
struct Supervised {
    workers: JoinSet<()>,
    /// Lives until the drain has ended: when it is dropped, a share that is divided by a label becomes empty, and the
    /// workers would drop the keys that they are to drain.
    follower: Option<Follower>,
    resyncs: Resyncs,
    sources: Sources,
}

impl Supervised {
    fn new(gvk: &Gvk) -> Self {
        Self {
            workers: JoinSet::new(),
            follower: None,
            resyncs: Resyncs::default(),
            sources: Sources::new(gvk),
        }
    }
}

/// A controller between start and stop.
pub(crate) struct RunningController {
    pub(crate) slot: Arc<Slot>,
    pub(crate) core: Arc<ControllerCore>,
    pub(crate) workers: usize,
    pub(crate) stopping: Stopping,
    /// Cancelled when a stop begins, if the caches are synced by then.
    ///
    /// Keys that are due are drained in this case, even if no worker has started yet.
    pub(crate) filled: CancellationToken,
}

impl RunningController {
    /// Runs the controller until a stop, or until its last handler ends.
    pub(crate) async fn run(self) {
        for lane in self.core.lanes().list().iter() {
            // The previous stop has left the limits draining.
            lane.limit().into_iter().for_each(Limit::open);
        }
        let ending = self.stopping.drain.child_token();
        let mut supervised = Supervised::new(self.core.gvk());
        tokio::select! {
            biased;
            () = self.supervise_always(&mut supervised) => {}
            () = self.core.ended().cancelled() => {}
            () = ending.cancelled() => {}
        }
        let Supervised {
            mut workers,
            follower: _follower,
            sources,
            ..
        } = supervised;
        // The streams end before the drain: a call may wait until its stream does. A panic of their drop is printed by
        // the panic hook, and must not end the drain.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(sources)));
        // A worker that panics during a drain is replaced too. Otherwise the drain would not end.
        while let Some(ended) = workers.join_next().await {
            self.replace_dead(&ended, &mut workers);
        }
        self.core.set_working(0);
        self.core.failures().flush();
        // The next controller of the kind waits for this task only, so this task must outlast those of the previous
        // controller. It may have been stopped before it came to wait for them.
        self.core.wait_for_predecessor().await;
    }

    /// Supervises, and continues after a panic.
    ///
    /// The supervisor drops handlers, relations and streams of users when they end. A panic there must not leave the
    /// kind without workers.
    async fn supervise_always(&self, supervised: &mut Supervised) {
        loop {
            let turn = AssertUnwindSafe(self.supervise(supervised)).catch_unwind();
            if let Err(panic) = turn.await {
                let (kind, text) = (self.core.gvk(), panics::message(&*panic));
                tracing::error!(%kind, "the supervisor of a controller panicked and continues: {text}");
            }
            time::sleep(RESPAWN_PAUSE).await;
        }
    }

    /// Starts the workers, and supervises them and all periodic work.
    ///
    /// It replaces workers that panicked, enqueues resyncs, keys of streams and keys that the share gains, replays
    /// related content, releases keys that wait for caches, removes handlers whose token is cancelled, and logs failure
    /// summaries. It never returns; the caller drops it. After a panic it can be called again.
    async fn supervise(&self, supervised: &mut Supervised) {
        let Supervised {
            workers,
            follower,
            resyncs,
            sources,
        } = supervised;
        tokio::select! {
            biased;
            () = self.filled() => {}
            () = self.sweep_meanwhile() => {}
        }
        // Before this process joins a ring. With a label, a member takes over a value only once all followers have
        // cached its objects, so every kind must follow before the first key moves.
        if follower.is_none() {
            *follower = self.core.own_keys().follow();
        }
        tokio::select! {
            biased;
            () = self.leads() => {}
            () = self.sweep_meanwhile() => {}
        }
        self.core.wait_for_predecessor().await;
        if self.filled.is_cancelled() {
            // A stop has begun, and the caches were synced by then. Keys that wait for caches are due, so they are
            // drained too.
            let lanes = self.core.lanes().list();
            lanes.iter().for_each(|lane| self.core.caches().open(lane));
        }
        self.core.caches().place_owners();
        self.core.set_working(self.workers);
        if workers.is_empty() {
            // The entries of workers that an earlier stop aborted. Its error has named them.
            self.core.activity().clear();
        }
        for _ in workers.len()..self.workers {
            self.spawn(workers);
        }
        loop {
            // Created before the state is read, so that a change in between is not missed.
            let changed = self.core.lanes().changed();
            // Again in each turn, for relations that were added in the meantime.
            self.core.caches().place_owners();
            let unused: OptionFuture<_> = self.core.is_unused().then(|| time::sleep(UNUSED)).into();
            let lanes = self.core.lanes().list();
            sources.follow(&lanes);
            let next = resyncs.follow(&lanes);
            let timer: OptionFuture<_> = next.map(time::sleep_until).into();
            tokio::select! {
                // Every branch can be dropped and created again without losing anything.
                Some(ended) = workers.join_next() => self.replace_dead(&ended, workers),
                Some(()) = timer => resyncs.replay(&self.core),
                () = sources.enqueue_next(&self.core) => {}
                () = enqueue_gains(&self.core, follower) => {}
                () = self.core.caches().read_unread() => {}
                () = self.core.caches().release_held() => {}
                () = self.lane_ended() => self.slot.sweep(&self.core),
                Some(()) = unused => self.slot.end_if_unused(&self.core),
                () = self.core.sum_up_failures() => {}
                () = changed => {}
            }
        }
    }

    /// Waits until the caches are synced, also those of kinds that are not served yet.
    async fn filled(&self) {
        let synced = async {
            while !self.core.caches().synced().await {
                time::sleep(MISSING_PERIOD).await;
            }
        };
        tokio::select! {
            () = synced => {}
            () = self.filled.cancelled() => {}
        }
    }

    /// Waits until this process leads, if only the leader handles the kind.
    ///
    /// Keys are queued in the meantime.
    async fn leads(&self) {
        if let Some(leadership) = self.core.leadership()
            && !leadership.acquired().await
        {
            // The election has ended, so this run is about to be stopped.
            std::future::pending().await
        }
    }

    /// Removes handlers whose token is cancelled before the workers start.
    ///
    /// The caches may take long to sync, and a standby replica may wait for hours. The future never resolves.
    async fn sweep_meanwhile(&self) {
        loop {
            self.slot.sweep(&self.core);
            let changed = self.core.lanes().changed();
            tokio::select! {
                () = self.lane_ended() => {}
                () = changed => {}
            }
        }
    }

    /// Waits until the token of some handler is cancelled.
    async fn lane_ended(&self) {
        let lanes = self.core.lanes().list();
        let tokens = lanes.iter().filter_map(|lane| lane.until());
        let ends: Vec<_> = tokens.map(|token| Box::pin(token.cancelled())).collect();
        if ends.is_empty() {
            return std::future::pending().await;
        }
        drop(select_all(ends).await);
    }

    fn spawn(&self, workers: &mut JoinSet<()>) {
        workers.spawn(work(Arc::clone(&self.core), self.stopping.clone()));
    }

    /// Replaces a worker that panicked.
    ///
    /// Panics of handlers are caught by the guard of a call. What gets here is a bug in this crate, or a panic while a
    /// handler's future is dropped. Neither may leave the kind without workers.
    fn replace_dead(&self, ended: &Result<(), JoinError>, workers: &mut JoinSet<()>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(kind = %self.core.gvk(), %error, "worker panicked, starting another");
            let (core, stopping) = (Arc::clone(&self.core), self.stopping.clone());
            workers.spawn(async {
                time::sleep(RESPAWN_PAUSE).await;
                work(core, stopping).await;
            });
        }
    }
}

/// The next resync of each handler that has a resync period.
#[derive(Debug, Default)]
struct Resyncs(Vec<(LaneId, Instant)>);

impl Resyncs {
    /// Takes over the present handlers; returns when the next resync is due.
    fn follow(&mut self, lanes: &LaneList) -> Option<Instant> {
        self.0
            .retain(|(id, _)| lanes.iter().any(|lane| lane.id() == *id));
        for lane in lanes.iter() {
            if let Some(period) = lane.resync_period()
                && !self.0.iter().any(|(id, _)| *id == lane.id())
                // A period that overflows the clock means never.
                && let Some(first) = Instant::now().checked_add(period)
            {
                self.0.push((lane.id(), first));
            }
        }
        self.0.iter().map(|(_, at)| *at).min()
    }

    /// Enqueues all objects for the handlers whose resync is due.
    fn replay(&mut self, core: &ControllerCore) {
        let (lanes, now) = (core.lanes().list(), Instant::now());
        for (id, at) in self.0.iter_mut().filter(|(_, at)| *at <= now) {
            let lane = lanes.iter().find(|lane: &&Arc<Lane>| lane.id() == *id);
            let period = lane.and_then(|lane| Some((lane, lane.resync_period()?)));
            if let Some((lane, period)) = period {
                core.replay(lane, &Cause::Resync, false);
                *at = now + period;
            }
        }
    }
}

/// Waits until the share gains keys, and enqueues them.
///
/// Without a ring it never resolves.
async fn enqueue_gains(core: &ControllerCore, follower: &mut Option<Follower>) {
    match follower {
        Some(follower) => enqueue_gained(core, &follower.gained(core.informer()).await),
        None => std::future::pending().await,
    }
}

/// Enqueues the objects that the share has gained, like those of an initial list.
fn enqueue_gained(core: &ControllerCore, gain: &Gain) {
    let lanes = core.lanes().list();
    let snapshot = core.informer().store().snapshot();
    let gained = snapshot.iter().filter(|object| gain.holds(object));
    core.add_in_pieces(gained.filter_map(|object| {
        let change = Feed::initial(object);
        let (due, priority) = lanes.due(&change);
        let add = Add::now()
            .lanes(due.clone())
            .priority(priority)
            .payload(change.cause().into());
        (!due.is_empty()).then(|| (object.key().clone(), add))
    }));
}
