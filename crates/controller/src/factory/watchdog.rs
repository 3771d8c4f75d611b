//! A thread that notices handlers that block their threads, hang, or block the whole runtime.
//!
//! It also cures what tokio leaves open. A worker that returns from the I/O and time driver with a single task runs it
//! without waking another worker. If that task blocks, no thread polls the driver, although others are idle: all
//! timers and sockets stand still. A wake-up from a thread outside of the runtime always wakes an idle worker, which
//! takes over the driver when it parks again. The heartbeat is such a wake-up.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use lariat_core::clock;
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::dispatcher;

use crate::apart::logging_to;
use crate::controller::{Activity, Finding, Found, Looks, is_report};

/// After how long a call without a time limit is logged, and for how long a blocked thread explains a lost lease.
const HUNG: Duration = Duration::from_secs(60);

/// The longest and the shortest pause between two looks.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(500)];

/// The calls that the watchdog of a factory looks at.
#[derive(Default)]
pub(crate) struct Watched {
    /// Weak, so that the thread keeps no controller alive.
    activities: Mutex<Vec<Weak<Activity>>>,
    blame: Mutex<Option<Blame>>,
}

/// The last call that blocked its thread.
struct Blame {
    text: String,
    /// The number of looks since it did.
    age: u64,
}

/// The watchdog of a run of a factory; it ends when this is dropped.
pub(super) struct Watchdog {
    watched: Arc<Watched>,
    /// Dropped to end the thread. Nothing is sent.
    running: Option<mpsc::Sender<Infallible>>,
    thread: Option<thread::JoinHandle<()>>,
    /// The task whose wake-ups are the heartbeat. It ends with the thread.
    heart: JoinSet<()>,
}

/// The state of the thread.
struct Watching {
    watched: Arc<Watched>,
    pause: Duration,
    looks: Looks,
    /// None on a runtime with one thread, whose time may be paused.
    heartbeat: Option<Heartbeat>,
}

/// Wakes a task of the runtime with each look, and checks that the last wake-up was polled.
struct Heartbeat {
    sent: watch::Sender<u64>,
    polled: Arc<AtomicU64>,
    /// For how many looks the last wake-up has waited.
    missed: u64,
}

impl Watched {
    /// Adds the calls of a controller, unless an earlier run has added them.
    pub(super) fn add(&self, activity: &Arc<Activity>) {
        let added = Arc::downgrade(activity);
        let mut activities = self.activities.lock();
        activities.retain(|each| each.strong_count() > 0 && !each.ptr_eq(&added));
        activities.push(added);
    }

    /// Describes the call that blocks its thread, or did within the last minute.
    pub(super) fn culprit(&self) -> Option<String> {
        Some(self.blame.lock().as_ref()?.text.clone())
    }

    /// Forgets the calls that blocked their threads. Nothing looks at them between two runs.
    fn forget_blocked(&self) {
        *self.blame.lock() = None;
        self.activities()
            .iter()
            .for_each(|activity| activity.forget_blocked());
    }

    fn activities(&self) -> Vec<Arc<Activity>> {
        let activities = self.activities.lock();
        activities.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Watchdog {
    /// Starts the thread, except in a simulation.
    ///
    /// A call is logged when one poll of it has lasted for `limit`.
    pub(super) fn start(watched: &Arc<Watched>, limit: Duration) -> Self {
        let (running, stop) = mpsc::channel();
        let mut heart = JoinSet::new();
        if clock::is_simulated() {
            return Self {
                watched: Arc::clone(watched),
                running: None,
                thread: None,
                heart,
            };
        }
        let pause = (limit / 4).clamp(PAUSES[0], PAUSES[1]);
        let is_parallel = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        let watching = Watching {
            watched: Arc::clone(watched),
            pause,
            looks: Looks {
                blocked: count(limit, pause),
                hung: count(HUNG, pause),
            },
            heartbeat: is_parallel.then(|| Heartbeat::start(&mut heart)),
        };
        let subscriber = dispatcher::get_default(Clone::clone);
        let on_thread = move || logging_to(&subscriber, || watching.run(&stop));
        let builder = thread::Builder::new().name("lariat-watchdog".to_owned());
        let thread = builder.spawn(on_thread);
        if let Err(error) = &thread {
            tracing::warn!(%error, "no watchdog can be started: handlers that block a thread are not named");
        }
        Self {
            watched: Arc::clone(watched),
            running: Some(running),
            thread: thread.ok(),
            heart,
        }
    }

    /// Ends the thread and its task, and waits for both.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the task.
    pub(super) async fn end(mut self) {
        self.end_thread();
        while self.heart.join_next().await.is_some() {}
    }

    /// Ends the thread. It waits for nothing but the log, so this does not block for long.
    fn end_thread(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the panic hook.
            let _ = thread.join();
            self.watched.forget_blocked();
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end_thread();
    }
}

/// Returns how many looks fit into a time, rounded up.
fn count(time: Duration, pause: Duration) -> u64 {
    let looks = time.as_nanos().div_ceil(pause.as_nanos().max(1));
    u64::try_from(looks).map_or(u64::MAX, |looks| looks.max(1))
}

impl Watching {
    /// Looks at regular intervals until the sender is dropped, or the runtime is shut down.
    fn run(mut self, stop: &mpsc::Receiver<Infallible>) {
        // Intervals are counted, and the clock is not read: a process that was suspended resumes with the next one.
        while stop.recv_timeout(self.pause) == Err(RecvTimeoutError::Timeout) {
            let activities = self.watched.activities();
            let found = activities.iter().flat_map(|each| each.look(self.looks));
            let found: Vec<_> = found.collect();
            found.iter().for_each(|found| self.report(found));
            self.blame(&found);
            let blocked = count_blocked(&found);
            if self.heartbeat.as_mut().is_some_and(Heartbeat::has_ended) {
                return;
            }
            self.beat(blocked);
        }
    }

    fn report(&self, found: &Found<'_>) {
        if !found.is_news {
            return;
        }
        let (kind, key, handler) = (found.gvk, &found.doing.key, found.doing.handler.as_deref());
        match found.finding {
            Finding::Blocks(looks) => tracing::error!(
                %kind, %key, handler, lasts = ?self.lasted(looks),
                "handler blocks its thread; call blocking code in `spawn_blocking`"
            ),
            Finding::Returned(looks) => tracing::info!(
                %kind, %key, handler, lasted = ?self.lasted(looks),
                "handler no longer blocks its thread"
            ),
            Finding::Hangs(looks) => tracing::warn!(
                %kind, %key, handler, lasts = ?self.lasted(looks),
                "handler's call has not ended; `HandlerOptions::timeout` limits its calls"
            ),
        }
    }

    /// Remembers the call that has blocked its thread last.
    fn blame(&self, found: &[Found<'_>]) {
        let mut blame = self.watched.blame.lock();
        if let Some(last) = &mut *blame {
            last.age += 1;
        }
        blame.take_if(|last| last.age > count(HUNG, self.pause));
        let text = found.iter().find_map(|found| match found.finding {
            Finding::Blocks(looks) => Some(format!(
                "{found} blocks a thread since {:?}",
                self.lasted(looks)
            )),
            Finding::Returned(looks) => Some(format!(
                "{found} blocked a thread for {:?}",
                self.lasted(looks)
            )),
            Finding::Hangs(_) => None,
        });
        if let Some(text) = text {
            *blame = Some(Blame { text, age: 0 });
        }
    }

    /// Wakes the runtime, and logs if it has not polled its task since the last wake-ups.
    fn beat(&mut self, blocked: usize) {
        let (pause, limit) = (self.pause, self.looks.blocked);
        let Some(heartbeat) = &mut self.heartbeat else {
            return;
        };
        let lasted = |looks| lasted(pause, looks);
        match heartbeat.beat() {
            Ok(missed) if missed >= limit => {
                tracing::info!(lasted = ?lasted(missed), "the runtime polls tasks again");
            }
            Err(missed) if is_report(missed, limit) => tracing::error!(
                blocked,
                lasts = ?lasted(missed),
                "the runtime polls no tasks: each of its threads is blocked, or the process gets no CPU time"
            ),
            _ => {}
        }
    }

    fn lasted(&self, looks: u64) -> Duration {
        lasted(self.pause, looks)
    }
}

fn lasted(pause: Duration, looks: u64) -> Duration {
    pause.saturating_mul(u32::try_from(looks).unwrap_or(u32::MAX))
}

fn count_blocked(found: &[Found<'_>]) -> usize {
    let is_blocked = |found: &&Found<'_>| matches!(found.finding, Finding::Blocks(_));
    found.iter().filter(is_blocked).count()
}

impl Heartbeat {
    /// Starts the task that is woken.
    fn start(heart: &mut JoinSet<()>) -> Self {
        let (sent, mut beats) = watch::channel(0);
        let polled = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&polled);
        heart.spawn(async move {
            // Ends when the thread has ended.
            while beats.changed().await.is_ok() {
                noted.store(*beats.borrow_and_update(), Ordering::Relaxed);
            }
        });
        Self {
            sent,
            polled,
            missed: 0,
        }
    }

    /// Returns whether the runtime is shut down, which drops the task.
    fn has_ended(&mut self) -> bool {
        self.sent.is_closed()
    }

    /// Wakes the task, if it was polled since the last wake-up.
    ///
    /// Returns for how many looks that wake-up had to wait, or has been waiting.
    fn beat(&mut self) -> Result<u64, u64> {
        let sent = *self.sent.borrow();
        if self.polled.load(Ordering::Relaxed) != sent {
            self.missed += 1;
            return Err(self.missed);
        }
        self.sent.send_replace(sent + 1);
        Ok(std::mem::take(&mut self.missed))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use lariat_core::{Gvk, ObjectKey};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(40);

    fn runtime() -> tokio::runtime::Runtime {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).build().expect("a runtime")
    }

    #[test]
    fn watchdog_ends_with_its_runtime() {
        let runtime = runtime();
        let mut watchdog = runtime.block_on(async { Watchdog::start(&Arc::default(), LIMIT) });
        let thread = watchdog.thread.take().expect("a thread");
        drop(runtime);
        // It is not dropped yet.
        assert!(watchdog.running.is_some());
        thread.join().expect("no panic");
    }

    #[test]
    fn watchdog_ends_when_dropped_outside_of_its_runtime() {
        let runtime = runtime();
        let watchdog = runtime.block_on(async { Watchdog::start(&Arc::default(), LIMIT) });
        drop(watchdog);
        drop(runtime);
    }

    #[tokio::test(start_paused = true)]
    async fn watchdog_does_not_wake_a_runtime_with_one_thread() {
        let watchdog = Watchdog::start(&Arc::default(), LIMIT);
        assert!(watchdog.thread.is_some());
        assert!(watchdog.heart.is_empty());
        watchdog.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn watchdog_does_not_run_in_a_simulation() {
        let _simulated = clock::simulate(|| SystemTime::UNIX_EPOCH);
        let watchdog = Watchdog::start(&Arc::default(), LIMIT);
        assert!(watchdog.thread.is_none());
    }

    #[test]
    fn heartbeat_wakes_an_idle_worker_that_takes_the_driver() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let watchdog = runtime.block_on(async { Watchdog::start(&Arc::default(), LIMIT) });
        let (give, take) = mpsc::channel();
        // The worker that waits for the timer blocks afterwards, until the other one has waited for a second timer.
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            tasks.spawn(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                take.recv().expect("the other task sends")
            });
            tasks.spawn(async move {
                tokio::time::sleep(Duration::from_millis(60)).await;
                give.send(7).expect("the other task waits");
                7
            });
            while let Some(ended) = tasks.join_next().await {
                assert_eq!(ended.expect("no panic"), 7);
            }
            watchdog.end().await;
        });
    }

    #[test]
    fn calls_of_a_controller_are_looked_at_once_after_restarts() {
        let watched = Watched::default();
        let activity = Arc::new(Activity::new(Gvk::new("", "v1", "ConfigMap")));
        (0..3).for_each(|_| watched.add(&activity));
        assert_eq!(watched.activities().len(), 1);
    }

    #[tokio::test]
    async fn blocked_call_is_forgotten_when_the_watchdog_ends() {
        let watched = Arc::new(Watched::default());
        let activity = Arc::new(Activity::new(Gvk::new("", "v1", "ConfigMap")));
        watched.add(&activity);
        let watchdog = Watchdog::start(&watched, LIMIT);
        let worker = activity.add_worker();
        worker.begin(&ObjectKey::cluster("a"));
        let blocks = async {
            while activity.blocked() == 0 || watched.culprit().is_none() {
                thread::yield_now();
            }
            watchdog.end().await;
            (activity.blocked(), watched.culprit())
        };
        assert_eq!(worker.polling(blocks).await, (0, None));
        worker.end();
    }

    #[test]
    fn looks_are_counted_and_rounded_up() {
        let pause = Duration::from_millis(500);
        assert_eq!(count(Duration::from_secs(2), pause), 4);
        assert_eq!(count(Duration::from_millis(1_001), pause), 3);
        assert_eq!(count(Duration::ZERO, pause), 1);
        assert_eq!(count(Duration::MAX, pause), u64::MAX);
    }

    #[test]
    fn heartbeat_that_is_not_polled_is_counted_in_looks() {
        let (sent, _receiver) = watch::channel(0);
        let mut heartbeat = Heartbeat {
            sent,
            polled: Arc::default(),
            missed: 0,
        };
        assert_eq!(heartbeat.beat(), Ok(0));
        assert_eq!(heartbeat.beat(), Err(1));
        assert_eq!(heartbeat.beat(), Err(2));
        heartbeat.polled.store(1, Ordering::Relaxed);
        assert_eq!(heartbeat.beat(), Ok(2));
        assert_eq!(heartbeat.beat(), Err(1));
    }
}
