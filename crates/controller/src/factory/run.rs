//! A run of a factory, from start to stop.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use lariat_cache::SharedClientFactory;
use lariat_lease::{Leadership, LeadershipState, LeaseError};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::options::{Election, Options};
use super::stopping::StopLog;
use super::watchdog::{Watchdog, Watched};
use crate::apart::{self, run_apart};
use crate::controller::{ControllerCore, Doing, Owner, Slot, Stopping};
use crate::error::{StopError, Unfinished};
use crate::many::Follower;
use crate::panics;

/// The tasks of a factory between a start and a stop: controllers, followers of kinds, and the election.
///
/// Dropping it aborts the controllers.
pub(super) struct FactoryRun {
    /// The number of workers given to the start.
    workers: Option<usize>,
    /// The factory's default.
    default_workers: Option<usize>,
    pub(super) stopping: Stopping,
    tasks: TaskTracker,
    /// The kinds that have an owner.
    kinds: Vec<Arc<Slot>>,
    election: Option<RunningElection>,
    /// The runtime of the start. Kinds may be added from threads without one.
    runtime: Handle,
    watched: Arc<Watched>,
    /// None once it has ended.
    watchdog: Mutex<Option<Watchdog>>,
}

/// The election or ring this process takes part in.
struct RunningElection {
    /// Joined after the controllers: the lease is released only when no handler runs.
    tasks: TaskTracker,
    /// Cancelled to release the lease.
    release: CancellationToken,
    /// Cancelled to end the election without releasing the lease, which then expires.
    expire: CancellationToken,
    lost: LostLease,
    /// None if the election is misconfigured.
    leadership: Option<Leadership>,
}

/// How the lease ends with a run.
#[derive(Debug, Clone, Copy)]
enum LeaseEnd {
    /// Another process may lead immediately.
    Release,
    /// Another process leads when the lease has expired.
    Expire,
}

/// The loss of a run's lease, and its reason.
#[derive(Clone)]
pub(super) struct LostLease {
    /// Cancelled to abort the controllers that need the lease.
    abort: CancellationToken,
    reason: Arc<OnceLock<LeaseError>>,
}

impl LostLease {
    /// Waits until the lease is lost.
    ///
    /// It never resolves if the run ends otherwise: aborting the run cancels `abort` too, but sets no reason.
    pub(super) async fn reason(&self) -> LeaseError {
        self.abort.cancelled().await;
        match self.reason.get() {
            Some(reason) => reason.clone(),
            None => std::future::pending().await,
        }
    }

    /// Returns why the lease was lost, if it was.
    pub(super) fn known(&self) -> Option<&LeaseError> {
        self.reason.get()
    }
}

impl RunningElection {
    /// Returns whether this process has not led in this run, and is not a member of the ring.
    fn stands_by(&self) -> bool {
        let state = self.leadership.as_ref().map(Leadership::state);
        matches!(state, Some(LeadershipState::Standby { .. }))
    }
}

impl FactoryRun {
    /// `workers` is the number given to the start.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub(super) fn new(workers: Option<usize>, options: &Options, watched: &Arc<Watched>) -> Self {
        Self {
            workers,
            default_workers: options.default_workers(),
            stopping: Stopping::new(),
            tasks: TaskTracker::new(),
            kinds: Vec::new(),
            election: None,
            runtime: Handle::current(),
            watched: Arc::clone(watched),
            watchdog: Mutex::new(Some(Watchdog::start(watched, options.blocked_after))),
        }
    }

    /// Takes part in an election or a ring until the run ends.
    ///
    /// A ring is joined once `synced` resolves, when the caches are synced: a member takes keys over from others, and
    /// must be able to process them.
    pub(super) fn take_part(
        &mut self,
        election: &Election,
        clients: &SharedClientFactory,
        synced: impl Future<Output = ()> + Send + 'static,
    ) {
        let (release, expire) = (CancellationToken::new(), CancellationToken::new());
        let lost = LostLease {
            abort: self.stopping.abort.child_token(),
            reason: Arc::default(),
        };
        // Before any controller asks who leads: the leadership still shows the end of the previous run, which a
        // controller would take for a lost lease.
        election.standby();
        let tasks = TaskTracker::new();
        let leadership = election.leadership();
        let (election, stop) = (election.clone(), release.clone().cancelled_owned());
        let (ended, expired) = (lost.clone(), expire.clone());
        let (watched, lease) = (Arc::clone(&self.watched), election.lease());
        // The connections of the handlers are driven by tasks of their runtime, which may be blocked.
        let separate = apart::is_apart().then(|| clients.clone());
        let elected = async move {
            let election = match &separate {
                Some(clients) => election.through(clients),
                None => election,
            };
            let run = async {
                match &election {
                    Election::Leader(elector) => elector.run(stop).await,
                    Election::Ring(member) => member.run(synced, stop).await,
                    // Not reached: `start` refuses such a factory.
                    Election::Invalid(error) => Err(error.clone()),
                }
            };
            // Otherwise a panic would leave a process that handles nothing any more, without an error.
            let run = AssertUnwindSafe(run).catch_unwind();
            let ending = expired.run_until_cancelled(run).await;
            let ending =
                ending.map(|ending| ending.unwrap_or_else(|panic| Err(panicked(&lease, &*panic))));
            if let Some(Err(error)) = ending {
                let error = explained(error, watched.culprit());
                // Set before the cancellation, so that tasks that it wakes find the reason.
                let is_first = ended.reason.set(error).is_ok();
                debug_assert!(is_first, "a lease is lost once");
                ended.abort.cancel();
            }
        };
        tasks.spawn(run_apart("lariat-lease", elected));
        tasks.close();
        self.election = Some(RunningElection {
            tasks,
            release,
            expire,
            lost,
            leadership,
        });
    }

    /// Returns a handle to wait for the loss of the lease; none without an election.
    pub(super) fn lost(&self) -> Option<LostLease> {
        Some(self.election.as_ref()?.lost.clone())
    }

    /// Returns the tokens that stop a controller.
    ///
    /// If the controller needs the lease, the loss of the lease aborts it too. Other controllers keep running.
    fn stopping_of(&self, core: &ControllerCore) -> Stopping {
        let mut stopping = self.stopping.clone();
        if let (Some(_), Some(election)) = (core.leadership(), &self.election) {
            stopping.abort = election.lost.abort.clone();
        }
        stopping
    }

    /// Starts the owner of a kind, unless it has one.
    pub(super) fn own(&mut self, slot: &Arc<Slot>) {
        if self.kinds.iter().any(|each| Arc::ptr_eq(each, slot)) {
            return;
        }
        let core = slot.controller();
        let workers = core.workers(self.workers, self.default_workers);
        let owner = Owner::new(slot, workers, self.stopping_of(core), &self.tasks);
        self.watched.add(core.activity());
        self.kinds.push(Arc::clone(slot));
        self.tasks.spawn_on(owner.run(), &self.runtime);
    }

    /// Starts a task that follows the served kinds.
    pub(super) fn follow(&self, follower: &Arc<Follower>) {
        let follower = Arc::clone(follower);
        let stop = self.stopping.drain.clone();
        let run = async move { follower.run(stop).await };
        self.tasks.spawn_on(run, &self.runtime);
    }

    /// Removes a kind that rests, so that its owner ends; returns whether it does.
    ///
    /// It is called under the lock under which owners start. So either the kind is found open, or it gets another owner
    /// when it is opened.
    pub(super) fn give_up(&mut self, slot: &Arc<Slot>) -> bool {
        let rests = slot.controller().opened().is_none();
        if rests {
            self.kinds.retain(|each| !Arc::ptr_eq(each, slot));
        }
        rests
    }

    /// Returns the runtime of the start.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Begins a stop, before the caches end.
    ///
    /// Only kinds whose caches are synced drain their queues: a handler must not be called with a half-filled cache.
    pub(super) fn begin_stop(&self) {
        self.cores().for_each(|core| core.note_stop());
        self.stopping.drain.cancel();
        // A process that leads later would handle nothing, and keep the lease until the last call of other kinds has
        // ended. Asked after the cancellation, from which on no kind begins to call handlers.
        if let Some(election) = self.election.as_ref().filter(|it| it.stands_by()) {
            election.release.cancel();
        }
    }

    fn cores(&self) -> impl Iterator<Item = &Arc<ControllerCore>> {
        self.kinds.iter().map(|slot| slot.controller())
    }

    /// Drains the queues within the grace period, and joins all tasks.
    pub(super) async fn stop(&self, grace: Duration) -> Result<(), StopError> {
        let drained = self.drain(grace).await;
        self.end().await;
        drained
    }

    /// Drops running calls, and joins all tasks.
    pub(super) async fn abort(&self, grace: Duration) -> Result<(), StopError> {
        self.cancel();
        self.tasks.close();
        self.join().await;
        self.end_election(LeaseEnd::Expire).await;
        let unfinished = self.unfinished(grace);
        self.end().await;
        unfinished
    }

    /// Cancels all tasks.
    pub(super) fn cancel(&self) {
        self.stopping.drain.cancel();
        self.stopping.abort.cancel();
        // Without a release: calls that are dropped now may have sent requests.
        if let Some(election) = &self.election {
            election.expire.cancel();
        }
    }

    /// Ends what a run without tasks has left.
    async fn end(&self) {
        let watchdog = self.watchdog.lock().take();
        if let Some(watchdog) = watchdog {
            watchdog.end().await;
        }
        // A queue that drains holds back keys that become due. They must be ready for the next start.
        self.cores().for_each(|core| core.end_drain());
    }

    async fn drain(&self, grace: Duration) -> Result<(), StopError> {
        self.cores().for_each(|core| core.drain());
        self.tasks.close();
        let stop_log = StopLog::new(self, grace);
        let is_in_time = time::timeout(grace, stop_log.join()).await.is_ok();
        if is_in_time && self.lost().is_none_or(|lease| lease.known().is_none()) {
            stop_log.log_end();
            self.end_election(LeaseEnd::Release).await;
            return Ok(());
        }
        // With the lease, workers have dropped their calls and left the rest. Otherwise running calls are dropped at
        // their next await. Their keys go back into the queue, and are reported as unfinished.
        if !is_in_time {
            stop_log.log_abort();
            self.stopping.abort.cancel();
            stop_log.join().await;
        }
        // Only now: the entries of dropped calls are left. Calls that need no lease may go on beside another leader's.
        let mut led = self.left().filter(|(core, _)| core.leadership().is_some());
        let drops_calls = led.any(|(_, calls)| !calls.is_empty());
        // A request of a dropped call may still arrive. It must not do so beside those of another leader.
        self.end_election(if drops_calls {
            LeaseEnd::Expire
        } else {
            LeaseEnd::Release
        })
        .await;
        self.unfinished(grace)
    }

    /// Returns the controllers, each with its running calls.
    pub(super) fn left(&self) -> impl Iterator<Item = (&Arc<ControllerCore>, Vec<Doing>)> {
        self.cores()
            .map(|core| (core, core.activity().in_progress()))
    }

    /// Ends the election. Call it when no handler runs any more, since another process may lead from then on.
    async fn end_election(&self, end: LeaseEnd) {
        if let Some(election) = &self.election {
            match end {
                LeaseEnd::Release => election.release.cancel(),
                LeaseEnd::Expire => election.expire.cancel(),
            }
            election.tasks.wait().await;
        }
    }

    /// Waits until every task has ended.
    pub(super) async fn join(&self) {
        self.tasks.wait().await;
    }

    /// Returns an error that names the keys that were due and not processed, if there are some.
    fn unfinished(&self, grace: Duration) -> Result<(), StopError> {
        let left = self.left();
        let unfinished = left.flat_map(|(core, dropped)| unfinished_of(core, dropped));
        let unfinished: Vec<_> = unfinished.collect();
        self.cores().for_each(|core| core.activity().clear());
        if unfinished.is_empty() {
            return Ok(());
        }
        Err(StopError { unfinished, grace })
    }
}

/// Returns the keys of a kind that were not processed, given its dropped calls.
fn unfinished_of(core: &ControllerCore, dropped: Vec<Doing>) -> Vec<Unfinished> {
    let ready = if core.is_drained_by_stop() {
        core.queue().due_keys()
    } else {
        Vec::new()
    };
    // The keys of calls that were dropped while their kind rests have left the queue.
    let (kept, gone): (Vec<_>, Vec<_>) = dropped
        .into_iter()
        .partition(|doing| ready.contains(&doing.key));
    let of = |key, handler| Unfinished {
        gvk: core.gvk().clone(),
        key,
        handler,
    };
    let ready = ready.into_iter().map(|key| {
        let doing = kept.iter().find(|doing| doing.key == key);
        let handler = doing.and_then(|doing| doing.handler.clone());
        of(key, handler)
    });
    let gone = gone.iter();
    let gone = gone.map(|doing| of(doing.key.clone(), doing.handler.clone()));
    ready.chain(gone).collect()
}

/// Returns the error of an election that panicked.
///
/// The lease is lost with it: nothing renews it any more.
fn panicked(lease: &str, panic: &(dyn Any + Send)) -> LeaseError {
    LeaseError::Lost {
        lease: lease.to_owned(),
        reason: format!("its renewal panicked: {}", panics::message(panic)),
    }
}

/// Adds to the error of a lost lease the handler that has blocked a thread, if there is one.
fn explained(error: LeaseError, culprit: Option<String>) -> LeaseError {
    match (error, culprit) {
        (LeaseError::Lost { lease, reason }, Some(culprit)) => LeaseError::Lost {
            lease,
            reason: format!("{reason}; {culprit}"),
        },
        (error, _) => error,
    }
}

impl Drop for FactoryRun {
    fn drop(&mut self) {
        self.cancel();
    }
}
