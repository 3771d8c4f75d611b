//! A controller that runs, from the start to the stop.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{OptionFuture, select_all};
use lariat_core::Cause;
use lariat_lease::{ShardKey, Share};
use lariat_queue::{Add, LaneId};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use super::feed::Feed;
use super::slot::Slot;
use super::worker::{Stopping, work};
use crate::lane::{Lane, LaneList, Limit};

/// How often a kind that is not served is looked at again.
const MISSING_PERIOD: Duration = Duration::from_secs(1);

/// How long a controller goes on that has no handler: somebody enqueued a key, and may register one.
const UNUSED: Duration = Duration::from_secs(60);

/// How long to wait before a worker that died is replaced.
const RESPAWN_PAUSE: Duration = Duration::from_secs(1);

/// A controller that runs.
pub(crate) struct RunningController {
    pub(crate) slot: Arc<Slot>,
    pub(crate) core: Arc<ControllerCore>,
    pub(crate) workers: usize,
    pub(crate) stopping: Stopping,
    /// Cancelled if the caches were filled when a stop began: then what is due is drained, even if nobody was
    /// at work yet.
    pub(crate) filled: CancellationToken,
}

impl RunningController {
    /// Runs the workers once the cache is filled, until it is stopped or until nobody needs the controller.
    pub(crate) async fn run(self) {
        for lane in self.core.lanes().list().iter() {
            lane.limit().into_iter().for_each(Limit::open);
        }
        let mut workers = JoinSet::new();
        let ending = self.stopping.drain.child_token();
        tokio::select! {
            biased;
            () = self.supervise(&mut workers) => {}
            () = self.core.ended().cancelled() => {}
            () = ending.cancelled() => {}
        }
        while let Some(ended) = workers.join_next().await {
            self.replace_dead(&ended, &mut workers);
        }
        self.core.set_working(0);
        self.core.failures().flush();
        // Whoever comes after this controller waits for the one before it too.
        self.core.wait_for_predecessor().await;
    }

    /// Keeps workers at work, resyncs handlers, enqueues what a share gains, and takes handlers out whose time is over.
    async fn supervise(&self, workers: &mut JoinSet<()>) {
        tokio::select! {
            biased;
            () = self.filled() => {}
            () = self.sweep_meanwhile() => {}
        }
        tokio::select! {
            biased;
            () = self.leads() => {}
            () = self.sweep_meanwhile() => {}
        }
        self.core.wait_for_predecessor().await;
        if self.filled.is_cancelled() {
            // The caches were filled when the stop began, so what is due is drained.
            let lanes = self.core.lanes().list();
            lanes.iter().for_each(|lane| self.core.caches().open(lane));
        }
        self.core.caches().place_owners();
        self.core.set_working(self.workers);
        self.core.activity().clear();
        for _ in 0..self.workers {
            self.spawn(workers);
        }
        let mut resyncs = Resyncs::default();
        let mut gains = Gains::new(&self.core);
        loop {
            let changed = self.core.lanes().changed();
            // Those of a relation that was added meanwhile.
            self.core.caches().place_owners();
            let unused: OptionFuture<_> = self.core.is_unused().then(|| time::sleep(UNUSED)).into();
            let next = resyncs.follow(&self.core.lanes().list());
            let timer: OptionFuture<_> = next.map(time::sleep_until).into();
            tokio::select! {
                Some(ended) = workers.join_next() => self.replace_dead(&ended, workers),
                Some(()) = timer => resyncs.replay(&self.core),
                () = gains.enqueued(&self.core) => {}
                () = self.core.caches().read_unread() => {}
                () = self.core.caches().release_held() => {}
                () = self.some_is_over() => self.slot.sweep(&self.core),
                Some(()) = unused => self.slot.end_if_unused(&self.core),
                () = self.core.failures().sum_up(self.core.lanes()) => {}
                () = changed => {}
            }
        }
    }

    /// Waits for the caches, also of kinds that are not served yet.
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
    /// The queue fills meanwhile.
    async fn leads(&self) {
        if let Some(leadership) = self.core.leadership()
            && !leadership.acquired().await
        {
            // The election has ended; the factory is going to be stopped.
            std::future::pending().await
        }
    }

    /// Removes handlers that end before the workers begin.
    ///
    /// Workers wait for the caches, and for this process to lead.
    async fn sweep_meanwhile(&self) {
        loop {
            self.slot.sweep(&self.core);
            let changed = self.core.lanes().changed();
            tokio::select! {
                () = self.some_is_over() => {}
                () = changed => {}
            }
        }
    }

    /// Waits until the time of some handler is over.
    async fn some_is_over(&self) {
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

    /// Handlers' panics are caught where they are called, so a dead worker is a defect of ours, or a panic in
    /// the drop of a handler's future. It must not leave the kind without workers.
    fn replace_dead(&self, ended: &Result<(), JoinError>, workers: &mut JoinSet<()>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(kind = %self.core.gvk(), %error, "a worker died and is replaced");
            let (core, stopping) = (Arc::clone(&self.core), self.stopping.clone());
            workers.spawn(async {
                time::sleep(RESPAWN_PAUSE).await;
                work(core, stopping).await;
            });
        }
    }
}

/// When which handler is called for every object there is.
#[derive(Debug, Default)]
struct Resyncs(Vec<(LaneId, Instant)>);

impl Resyncs {
    /// Takes in which handlers there are; returns when the next is due.
    fn follow(&mut self, lanes: &LaneList) -> Option<Instant> {
        self.0
            .retain(|(id, _)| lanes.iter().any(|lane| lane.id() == *id));
        for lane in lanes.iter() {
            if let Some(period) = lane.resync_period()
                && !self.0.iter().any(|(id, _)| *id == lane.id())
                // What no clock can hold is never.
                && let Some(first) = Instant::now().checked_add(period)
            {
                self.0.push((lane.id(), first));
            }
        }
        self.0.iter().map(|(_, at)| *at).min()
    }

    /// Calls those that are due.
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

/// The objects that come to this process when the ring changes.
struct Gains {
    /// What shows the share; none without a ring.
    share: Option<watch::Receiver<Share>>,
    before: Share,
}

impl Gains {
    fn new(core: &ControllerCore) -> Self {
        let mut share = core.own_keys().follow();
        // The present one is enqueued too: what came before this process had a share was not.
        share.iter_mut().for_each(watch::Receiver::mark_changed);
        Self {
            share,
            before: Share::none(),
        }
    }

    /// Waits for another share, and enqueues what it gains.
    async fn enqueued(&mut self, core: &ControllerCore) {
        let Some(follow) = &mut self.share else {
            return std::future::pending().await;
        };
        if follow.changed().await.is_err() {
            return std::future::pending().await;
        }
        let share = follow.borrow_and_update().clone();
        enqueue_gained(core, &self.before, &share);
        self.before = share;
    }
}

/// Enqueues the objects that a new share holds and the one before did not, as if they had just appeared.
fn enqueue_gained(core: &ControllerCore, before: &Share, share: &Share) {
    let (gvk, lanes) = (core.gvk(), core.lanes().list());
    let snapshot = core.informer().store().snapshot();
    let gained = snapshot.iter().filter(|object| {
        let key = ShardKey::of_object(gvk, object);
        share.holds(key) && !before.holds(key)
    });
    core.add_in_pieces(gained.filter_map(|object| {
        let change = Feed::initial(object);
        let (due, priority) = lanes.due(&change);
        let add = Add::now().lanes(due.clone()).priority(priority);
        let add = add.payload(change.cause().into());
        (!due.is_empty()).then(|| (object.key().clone(), add))
    }));
}
