//! The recorder: queues events, and starts and stops the task that writes them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use lariat_cache::{ClientIdentity, SharedClientFactory};
use lariat_core::TableSize;
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

/// The number of events that the queue holds.
const QUEUE: usize = 1000;
/// The environment variable with the host name; in a Pod it is the Pod's name.
const HOST: &str = "HOSTNAME";

/// Publishes Events for an operator. Clones share one queue.
///
/// Publishing puts an event into a queue of 1,000 and returns. It does not wait, and drops the event if the queue is
/// full. A task, which the first event starts, takes the events from the queue one by one, combines, counts and limits
/// them by the [`EventOptions`], and writes them.
///
/// Delivery is not guaranteed. Events are dropped if the queue is full, if they exceed the limit, or if the API server
/// refuses them; [`status`](Self::status) counts them. If the API server does not answer or is overloaded, a write is
/// tried 12 times, 10 seconds apart, while the other events wait. A stop of the operator waits up to 5 seconds for the
/// queue, and then drops events until the operator is started again. If the operator and all recorders are dropped
/// without a stop, the queued events are lost.
///
/// Writing needs the verbs `create` and `patch` on `events`, in the core group or in `events.k8s.io`.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Node;
/// use kube::Resource;
/// use lariat::operator::Event;
/// use lariat::Operator;
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

/// The shared part of the clones of a recorder.
struct Core {
    clients: SharedClientFactory,
    /// Whether Events are logged instead of written.
    only_plans: Arc<AtomicBool>,
    name: Arc<str>,
    source: Arc<Source>,
    correlator: Arc<Mutex<Correlator>>,
    counts: Arc<Counts>,
    state: Mutex<TaskState>,
}

/// The task of a recorder, and whether it may be started.
#[derive(Default)]
struct TaskState {
    is_closed: bool,
    running: Option<WriterTask>,
    /// The progress of the task that a close waits for, or has waited for.
    closing: Option<Progress>,
}

/// The progress of a task, which outlives the task.
#[derive(Clone)]
struct Progress {
    /// The number of events in the queue or being written.
    queued: Arc<AtomicUsize>,
    /// The number of events that were put into the queue.
    given: u64,
    /// The number of events that the task has finished; closed when the task ends.
    done: watch::Receiver<u64>,
}

/// A running task and its queue.
///
/// Dropping this aborts the task, and counts the queued events as dropped.
struct WriterTask {
    queue: Option<mpsc::Sender<Box<Pending>>>,
    task: JoinSet<()>,
    counts: Arc<Counts>,
    progress: Progress,
}

/// Counters of the events of a recorder, since it was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventStatus {
    /// Events in the queue or being written.
    pub queued: usize,
    /// Successful writes: an Event was created, or its count increased.
    pub sent: u64,
    /// Events that were not written because they exceed the limit.
    pub filtered: u64,
    /// Events that the API server refused, or did not answer.
    pub failed: u64,
    /// Events that were dropped because the queue was full or the operator stopped.
    pub dropped: u64,
}

impl Recorder {
    /// Returns the recorder of an operator, creating it on first use.
    pub(crate) fn of(operator: &OperatorState) -> Arc<Self> {
        operator.feature_or(|| {
            let clients = operator.caches.clients();
            Self::new(&operator.name, clients, operator.plan_switch())
        })
    }

    fn new(name: &Arc<str>, clients: &SharedClientFactory, only_plans: Arc<AtomicBool>) -> Self {
        Self {
            core: Arc::new(Core {
                clients: clients.clone(),
                only_plans,
                name: Arc::clone(name),
                source: Arc::new(Source::new(name, std::env::var(HOST).ok())),
                correlator: Arc::new(Mutex::new(Correlator::new(EventOptions::default()))),
                counts: Arc::default(),
                state: Mutex::default(),
            }),
        }
    }

    /// Sets the options of this recorder and its clones.
    ///
    /// Earlier counts are forgotten, so a repeated event creates a new Event.
    ///
    /// ```no_run
    /// use lariat::Operator;
    /// use lariat::operator::{EventApi, EventOptions};
    ///
    /// # fn example(operator: Operator) {
    /// operator.events().configure(EventOptions::default().api(EventApi::Events).burst(50));
    /// # }
    /// ```
    pub fn configure(&self, options: EventOptions) {
        *self.core.correlator.lock() = Correlator::new(options);
    }

    /// Publishes an event about an object.
    ///
    /// It does not wait, and drops the event if the queue is full. For a typed object, kube creates the reference:
    /// [`object_ref`](kube::Resource::object_ref). The Event is written to the object's namespace, or to `default` for
    /// a cluster-scoped object. Outside a tokio runtime the event is dropped, unless the recorder's task is running.
    ///
    /// In an operator that only plans, the event is logged instead.
    pub fn publish(&self, about: &ObjectReference, event: Event) {
        if self.core.only_plans.load(Ordering::Acquire) {
            return log(about, &event);
        }
        self.core.publish(Box::new(Pending {
            about: about.clone(),
            event,
            at: Instant::now(),
            time: clock::now(),
        }));
    }

    /// Waits until the events published before are written or dropped.
    ///
    /// It does not wait for events that are only counted so far, for a later write. Use it in tests, and in programs
    /// that end without [`stop`](crate::Operator::stop). If the API server does not answer, it takes as long as the
    /// retries, which is minutes for each event: use a timeout.
    ///
    /// ```no_run
    /// # use lariat::Operator;
    /// # use std::time::Duration;
    /// # async fn example(operator: Operator) {
    /// let flushed = tokio::time::timeout(Duration::from_secs(5), operator.events().flush()).await;
    /// if flushed.is_err() {
    ///     println!("{} events are not written", operator.events().status().queued);
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future only ends the wait.
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
            // An error means that the task has ended, so that there is nothing to wait for.
            let _ = done.wait_for(|done| *done >= given).await;
        }
    }

    /// Returns the counters of the recorder.
    #[must_use]
    pub fn status(&self) -> EventStatus {
        let counts = &self.core.counts;
        let state = self.core.state.lock();
        // An ended task has dropped its queue.
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

    /// Returns the sizes of the memory and the queue, with their bounds.
    pub(crate) fn table_sizes(&self) -> [TableSize; 2] {
        let (subjects, most) = self.core.correlator.lock().table_sizes();
        let queued = self.status().queued;
        // There may be two tasks, the running one and the one that is closing. Each holds one event besides its queue.
        [
            TableSize::new("events", subjects, most),
            TableSize::new("queued events", queued, 2 * (QUEUE + 1)),
        ]
    }

    /// Returns the API through which Events are written.
    pub(crate) fn api(&self) -> EventApi {
        self.core.correlator.lock().api()
    }

    /// Accepts events again after a close.
    pub(crate) fn open(&self) {
        self.core.state.lock().is_closed = false;
    }

    /// Stops accepting events, and waits a while for the queued ones to be written.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, unwritten events are dropped.
    pub(crate) async fn close(&self, timeout: Duration) {
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
        // Without a sender the task ends after the last queued event.
        running.queue = None;
        let ended = time::timeout(timeout, running.task.join_next()).await;
        if ended.is_err() {
            let waiting = running.progress.queued.load(Ordering::Relaxed);
            tracing::warn!(operator = %self.core.name, waiting, "queued Events are dropped: the API server is too slow");
            running.task.shutdown().await;
        }
    }
}

/// Logs an event that is only planned.
fn log(about: &ObjectReference, event: &Event) {
    let (kind, namespace) = (about.kind.as_deref(), about.namespace.as_deref());
    let (name, reason, note) = (about.name.as_deref(), event.reason(), event.note());
    tracing::info!(
        kind,
        namespace,
        name,
        reason,
        note,
        "would publish an Event"
    );
}

impl Core {
    fn publish(&self, pending: Box<Pending>) {
        // Held across the send, so that events are queued in the order in which they were published, and none is sent
        // to a task that a concurrent close is ending.
        let mut state = self.state.lock();
        if state.is_closed {
            return self.drop_one();
        }
        let Err(pending) = self.offer(&mut state, pending) else {
            return;
        };
        // There is no task yet, or it has ended with the runtime on which it ran.
        state.running = self.begin();
        if self.offer(&mut state, pending).is_err() {
            self.drop_one();
        }
    }

    /// Puts an event into the queue of the task; returns it if there is no task.
    fn offer(&self, state: &mut TaskState, pending: Box<Pending>) -> Result<(), Box<Pending>> {
        let Some(running) = &mut state.running else {
            return Err(pending);
        };
        let Some(queue) = &running.queue else {
            return Err(pending);
        };
        // Counted before the event is sent: the task may take it and decrement the count at once.
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
                    tracing::warn!(%operator, "Events are dropped: the queue is full; logged once");
                }
                Ok(())
            }
        }
    }

    /// Starts the task; returns `None` outside a runtime.
    fn begin(&self) -> Option<WriterTask> {
        let runtime = Handle::try_current().ok()?;
        // The identity only sets the field manager. If it cannot be used, Events are still worth writing.
        let identity = ClientIdentity::default().field_manager(&*self.name);
        // Events are reports: a replica on standby, or one that has just lost its lease, may write them too.
        let client = self
            .clients
            .unfenced_client_as(identity)
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
    /// Returns the progress of all tasks that may have events.
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
