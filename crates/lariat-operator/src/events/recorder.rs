//! The recorder: takes events from anybody, and writes them on a task of its own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use lariat_cache::{ClientIdentity, SharedClientFactory};
use lariat_core::Remembered;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use super::correlator::Correlator;
use super::record::{Pending, Source};
use super::sink::{Counts, Sink};
use super::{Event, EventApi, EventOptions, task};
use crate::clock;
use crate::reconcile::OperatorState;

/// How many events wait to be written.
const QUEUE: usize = 1000;
/// Says on which host a program runs; in a pod it is the pod's name.
const HOST: &str = "HOSTNAME";

/// Writes Events for an operator; a clone is the same recorder.
///
/// Publishing puts an event into a queue of 1000 and returns: it never waits and never fails. One task, begun with the
/// first event, writes what is in the queue, one after the other, after it was combined, counted and limited as
/// [`EventOptions`] say. Events are for people; they are not delivered: what does not fit into the queue, is over
/// the limit, or is refused by the API server is not written, and [`status`](Self::status) counts it.
///
/// A server that does not answer or is overloaded is tried 12 times, 10 seconds apart, while the others wait. When
/// the operator stops, what is in the queue gets up to 5 seconds; then events are dropped until the operator starts
/// again. When the operator and all recorders are dropped without that, what is in the queue is lost.
///
/// Writing needs the verbs `create` and `patch` for `events`, in the core group or in `events.k8s.io`.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Node;
/// use kube::Resource;
/// use lariat_operator::{Event, Operator};
///
/// # fn example(operator: Operator, node: Node) {
/// let recorder = operator.events();
/// recorder.publish(&node.object_ref(&()), Event::normal("Drained", "moved 12 pods to other nodes"));
/// # }
/// ```
#[derive(Clone)]
pub struct Recorder {
    core: Arc<Core>,
}

struct Core {
    clients: SharedClientFactory,
    name: Arc<str>,
    source: Arc<Source>,
    correlator: Arc<Mutex<Correlator>>,
    counts: Arc<Counts>,
    state: Mutex<TaskState>,
}

#[derive(Default)]
struct TaskState {
    is_closed: bool,
    running: Option<WriterTask>,
    /// How far the task is that a close waits for, or waited for.
    closing: Option<Progress>,
}

/// How far a task is.
#[derive(Clone)]
struct Progress {
    /// How many events are in the queue or being written.
    queued: Arc<AtomicUsize>,
    /// How many events the task was given.
    given: u64,
    /// With how many of them it is done; closed once it has ended.
    done: watch::Receiver<u64>,
}

/// The task, and the way to it. Dropped, the task ends, and what waited for it counts as dropped.
struct WriterTask {
    queue: Option<mpsc::Sender<Box<Pending>>>,
    task: JoinSet<()>,
    counts: Arc<Counts>,
    progress: Progress,
}

/// How many events came to what, since the recorder was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventStatus {
    /// Waiting to be written.
    pub queued: usize,
    /// Writes that went well: an Event created, or counted up.
    pub sent: u64,
    /// Not written because they are over the limit.
    pub filtered: u64,
    /// Not written because the API server refused them, or did not answer for too long.
    pub failed: u64,
    /// Not written because the queue was full, or the operator stopped.
    pub dropped: u64,
}

impl Recorder {
    /// Returns the recorder of an operator, which is made if this is the first time.
    pub(crate) fn of(operator: &OperatorState) -> Arc<Self> {
        operator.feature_or(|| Self::new(&operator.name, operator.caches.clients()))
    }

    fn new(name: &Arc<str>, clients: &SharedClientFactory) -> Self {
        Self {
            core: Arc::new(Core {
                clients: clients.clone(),
                name: Arc::clone(name),
                source: Arc::new(Source::new(name, std::env::var(HOST).ok())),
                correlator: Arc::new(Mutex::new(Correlator::new(EventOptions::default()))),
                counts: Arc::default(),
                state: Mutex::default(),
            }),
        }
    }

    /// Sets the options, for everybody who has this recorder; what was counted so far is forgotten.
    pub fn configure(&self, options: EventOptions) {
        *self.core.correlator.lock() = Correlator::new(options);
    }

    /// Records an event about an object. It never waits and never fails.
    ///
    /// kube makes a reference of a typed object: [`object_ref`](kube::Resource::object_ref). The Event is written
    /// to the object's namespace, or to `default` if it is in none.
    ///
    /// Outside a tokio runtime an event is dropped, unless the recorder's task runs already.
    pub fn publish(&self, about: &ObjectReference, event: Event) {
        self.core.publish(Box::new(Pending {
            about: about.clone(),
            event,
            at: Instant::now(),
            time: clock::now(),
        }));
    }

    /// Waits until every event that was published before is written, or is not going to be: limited, given up, dropped.
    /// One that is only counted so far, for a later write, is not waited for.
    ///
    /// For programs that end without [`stop`](crate::Operator::stop), and for tests. While the API server does not
    /// answer this takes as long as writes are tried, minutes for each event: put a timeout around it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn flush(&self) {
        let waiting = {
            let state = self.core.state.lock();
            let progress: Vec<Progress> = state.progress().cloned().collect();
            progress
        };
        for Progress {
            mut done, given, ..
        } in waiting
        {
            // An error says that the task has ended, which leaves nothing to wait for.
            let _ = done.wait_for(|done| *done >= given).await;
        }
    }

    /// Returns what became of the events so far.
    #[must_use]
    pub fn status(&self) -> EventStatus {
        let counts = &self.core.counts;
        let state = self.core.state.lock();
        // What waited for a task that has ended is dropped.
        let alive = state
            .progress()
            .filter(|task| task.done.has_changed().is_ok());
        EventStatus {
            queued: alive.map(|task| task.queued.load(Ordering::Relaxed)).sum(),
            sent: counts.sent.load(Ordering::Relaxed),
            filtered: counts.filtered.load(Ordering::Relaxed),
            failed: counts.failed.load(Ordering::Relaxed),
            dropped: counts.dropped.load(Ordering::Relaxed),
        }
    }

    /// Returns how much is remembered.
    pub(crate) fn remembered(&self) -> [Remembered; 2] {
        let (subjects, most) = self.core.correlator.lock().remembered();
        let queued = self.status().queued;
        // One is in the hands of each task.
        [
            Remembered::new("events", subjects, most),
            Remembered::new("queued events", queued, 2 * (QUEUE + 1)),
        ]
    }

    /// Returns through which API it writes.
    pub(crate) fn api(&self) -> EventApi {
        self.core.correlator.lock().api()
    }

    /// Takes events again after a close.
    pub(crate) fn open(&self) {
        self.core.state.lock().is_closed = false;
    }

    /// Takes no more events, and waits up to a time until those that wait are written.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what is not written yet is dropped too.
    pub(crate) async fn close(&self, patience: Duration) {
        let running = {
            let mut state = self.core.state.lock();
            state.is_closed = true;
            let running = state.running.take();
            if let Some(running) = &running {
                state.closing = Some(running.progress.clone());
            }
            running
        };
        let Some(mut running) = running else {
            return;
        };
        // The task ends once it has taken the last one.
        running.queue = None;
        let ended = time::timeout(patience, running.task.join_next()).await;
        if ended.is_err() {
            let waiting = running.progress.queued.load(Ordering::Relaxed);
            tracing::warn!(operator = %self.core.name, waiting, "Events are dropped, the API server is too slow");
            running.task.shutdown().await;
        }
    }
}

impl Core {
    fn publish(&self, pending: Box<Pending>) {
        let mut state = self.state.lock();
        if state.is_closed {
            return self.drop_one();
        }
        let Err(pending) = self.offer(&mut state, pending) else {
            return;
        };
        // There is no task, or it ended with its runtime.
        state.running = self.begin();
        if self.offer(&mut state, pending).is_err() {
            self.drop_one();
        }
    }

    /// Gives an event to the task, or back if there is none.
    fn offer(&self, state: &mut TaskState, pending: Box<Pending>) -> Result<(), Box<Pending>> {
        let Some(running) = &mut state.running else {
            return Err(pending);
        };
        let Some(queue) = &running.queue else {
            return Err(pending);
        };
        // Before the task can take it and count it down.
        running.progress.queued.fetch_add(1, Ordering::Relaxed);
        let Err(error) = queue.try_send(pending) else {
            running.progress.given += 1;
            return Ok(());
        };
        running.progress.queued.fetch_sub(1, Ordering::Relaxed);
        match error {
            TrySendError::Closed(pending) => Err(pending),
            TrySendError::Full(_) => {
                self.drop_one();
                if !self.counts.logged.full.swap(true, Ordering::Relaxed) {
                    let operator = &self.name;
                    tracing::warn!(%operator, "Events are dropped, there are more than can be written; logged once");
                }
                Ok(())
            }
        }
    }

    /// Begins the task, inside a runtime.
    fn begin(&self) -> Option<WriterTask> {
        let runtime = Handle::try_current().ok()?;
        let identity = ClientIdentity::default().field_manager(&*self.name);
        let client = self
            .clients
            .client_as(identity)
            .unwrap_or_else(|_| self.clients.client());
        let sink = Sink {
            sender: Sink::sender(client),
            source: Arc::clone(&self.source),
            correlator: Arc::clone(&self.correlator),
            counts: Arc::clone(&self.counts),
        };
        let (queue, events) = mpsc::channel(QUEUE);
        let queued = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let (counting, done) = watch::channel(0);
        let task = task::run(sink, events, Arc::clone(&queued), counting);
        tasks.spawn_on(task, &runtime);
        Some(WriterTask {
            queue: Some(queue),
            task: tasks,
            counts: Arc::clone(&self.counts),
            progress: Progress {
                queued,
                given: 0,
                done,
            },
        })
    }

    fn drop_one(&self) {
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl TaskState {
    /// Returns how far the tasks are that may have something to write.
    fn progress(&self) -> impl Iterator<Item = &Progress> {
        let running = self.running.iter().map(|running| &running.progress);
        self.closing.iter().chain(running)
    }
}

impl Drop for WriterTask {
    fn drop(&mut self) {
        let queued = self.progress.queued.load(Ordering::Relaxed);
        let waiting = u64::try_from(queued).unwrap_or(u64::MAX);
        self.counts.dropped.fetch_add(waiting, Ordering::Relaxed);
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("name", &self.core.name)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
