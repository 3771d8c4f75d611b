//! Workers: take a key, run its handlers, give it back.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{OptionFuture, select_all};
use lariat_lease::{Permit, Shards, Share};
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use super::resync::Resyncs;
use super::run::{Taken, run};
use super::slot::Slot;
use crate::lane::Limit;

/// The two steps of a stop.
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    /// Finish what is due, then end.
    pub(crate) drain: CancellationToken,
    /// End now; calls under way are dropped.
    pub(crate) abort: CancellationToken,
}

impl Stopping {
    pub(crate) fn new() -> Self {
        Self {
            drain: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }
}

/// How often a kind that is not served is looked at again.
const MISSING_PERIOD: Duration = Duration::from_secs(1);

/// How long a controller goes on that has no handler: somebody enqueued a key, and may register one.
const UNUSED: Duration = Duration::from_secs(60);

/// How long to wait before a worker that died is replaced.
const RESPAWN_PAUSE: Duration = Duration::from_secs(1);

/// How long a worker waits that may not call a handler, because the deadline of the lease has passed.
const FENCED_PAUSE: Duration = Duration::from_millis(100);

/// A controller that runs.
pub(crate) struct Running {
    pub(crate) slot: Arc<Slot>,
    pub(crate) core: Arc<ControllerCore>,
    pub(crate) workers: usize,
    pub(crate) stopping: Stopping,
    /// Cancelled if the caches were filled when a stop began: then what is due is drained, even if nobody was
    /// at work yet.
    pub(crate) filled: CancellationToken,
}

impl Running {
    /// Runs the workers once the cache is filled, until told to stop or until nobody needs the controller.
    pub(crate) async fn run(self) {
        for lane in self.core.lanes().list().iter() {
            lane.limit().into_iter().for_each(Limit::open);
        }
        let mut workers = JoinSet::new();
        let ending = self.stopping.drain.child_token();
        tokio::select! {
            biased;
            () = self.look_after(&mut workers) => {}
            () = self.core.ended().cancelled() => {}
            () = ending.cancelled() => {}
        }
        while let Some(ended) = workers.join_next().await {
            self.replace_dead(&ended, &mut workers);
        }
        self.core.set_working(0);
        self.core.failures().flush();
        // Whoever comes after this controller waits for the one before it too.
        self.core.is_alone().await;
    }

    /// Keeps workers at work, resyncs handlers, enqueues what a share gains, and takes handlers out whose time is over.
    async fn look_after(&self, workers: &mut JoinSet<()>) {
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
        self.core.is_alone().await;
        if self.filled.is_cancelled() {
            // The caches were filled when the stop began, so what is due is drained.
            let lanes = self.core.lanes().list();
            lanes.iter().for_each(|lane| self.core.open(lane));
        }
        self.core.place_owners();
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
            self.core.place_owners();
            let unused: OptionFuture<_> = self.core.is_unused().then(|| time::sleep(UNUSED)).into();
            let next = resyncs.follow(&self.core.lanes().list());
            let timer: OptionFuture<_> = next.map(time::sleep_until).into();
            tokio::select! {
                Some(ended) = workers.join_next() => self.replace_dead(&ended, workers),
                Some(()) = timer => resyncs.replay(&self.core),
                () = gains.enqueued(&self.core) => {}
                () = self.core.read_unread() => {}
                () = self.core.release_held() => {}
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
            while !self.core.synced().await {
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
        match ends.is_empty() {
            true => std::future::pending().await,
            false => drop(select_all(ends).await),
        }
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

async fn work(core: Arc<ControllerCore>, stopping: Stopping) {
    let draining = Arc::new(stopping.drain.clone());
    let worker = core.activity().add_worker();
    let mut next = None;
    loop {
        let work = match next.take() {
            Some(work) => {
                // A worker that never waits would keep its thread from all other tasks.
                task::consume_budget().await;
                work
            }
            None => tokio::select! {
                biased;
                () = stopping.abort.cancelled() => return,
                () = core.ended().cancelled() => return,
                work = get(&core, &stopping) => match work {
                    Some(work) => work,
                    None => return,
                },
            },
        };
        if stopping.abort.is_cancelled() || core.ended().is_cancelled() {
            return;
        }
        if !core.may_call() {
            // The key stays in line. What ends the workers is about to come, or the answer to a renewal that was under way.
            drop(work);
            tokio::select! {
                biased;
                () = stopping.abort.cancelled() => return,
                () = core.ended().cancelled() => return,
                () = time::sleep(FENCED_PAUSE) => continue,
            }
        }
        let permit = match core.shards().map(|shards| core.permit(shards, &work)) {
            Some(None) => {
                pass_on(&core, work);
                continue;
            }
            permit => permit.flatten(),
        };
        worker.begin(work.key());
        let run = run(&core, work, &draining, &worker);
        // The run comes first: one that is done at once waits for nothing, and its worker looks at `abort` above. The others are
        // polled while a handler waits; all workers of all kinds share what they wait for.
        let done = tokio::select! {
            biased;
            done = run => done,
            // The activity shows what was dropped.
            () = stopping.abort.cancelled() => return,
            // What is dropped goes back into the queue, and is passed on when it is handed out again.
            () = revoked(permit.as_ref()) => None,
        };
        worker.end();
        next = done.and_then(|(work, verdicts)| work.done_and_try_get(verdicts));
    }
}

/// Gives back a key that belongs to another member of the ring, which enqueues it when it gets it.
fn pass_on(core: &ControllerCore, work: Taken) {
    for lane in core.lanes().list().iter() {
        lane.pass(work.key(), core);
    }
    work.done_with([]);
}

async fn revoked(permit: Option<&Permit>) {
    match permit {
        Some(permit) => permit.revoked().await,
        None => std::future::pending().await,
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
        let mut share = core.shards().map(Shards::follow);
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
        core.enqueue_gained(&self.before, &share);
        self.before = share;
    }
}

/// Waits for the next key. While there is no handler keys stay in the queue, for one that may be registered.
async fn get(core: &ControllerCore, stopping: &Stopping) -> Option<Taken> {
    tokio::select! {
        biased;
        () = core.lanes().any() => {}
        () = stopping.drain.cancelled() => return None,
    }
    core.queue().get().await
}
