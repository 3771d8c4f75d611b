//! A process, as its program sees it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use kube::Client;
use lariat_cache::{CachedObject, Change, Informer, Selection, Subscription};
use lariat_controller::{
    Call, ControllerOptions, FactoryBuilder, HandlerOptions, HandlerResult, Middleware, Next,
    RunError, SharedControllerFactory,
};
use lariat_core::{Gvk, ObjectKey, TableSize};
use lariat_operator::Operator;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::activity::{Activity, ActivityKind, CacheProgress};
use crate::actors::{HandlerId, IncarnationId, Subscriber};
use crate::event::{Event, Next as Following, Written};
use crate::network::Link;
use crate::observed::Observed;
use crate::opaque::Opaque;
use crate::record::Recorder;

/// The time a start waits for its caches: longer than all faults, even by a fast clock.
const SYNC_TIMEOUT: Duration = Duration::from_secs(600);

/// One incarnation of a program, from its start to its end or kill.
///
/// A clone is a handle on the same incarnation.
///
/// ```
/// use lariat::sim::Simulation;
///
/// let simulation = Simulation::new(7).program("reader", |process| async move {
///     let version = process.client().apiserver_version().await?;
///     process.note(format_args!("{} talks to {}", process.name(), version.git_version));
///     process.terminated().await;
///     Ok(())
/// });
/// # drop(simulation);
/// ```
#[derive(Clone)]
pub struct Process {
    inner: Arc<Inner>,
}

struct Inner {
    incarnation: IncarnationId,
    link: Link,
    recorder: Recorder,
    shutdown: CancellationToken,
    factories: Mutex<Vec<SharedControllerFactory>>,
    operators: Mutex<Vec<Operator>>,
    subscribers: AtomicU32,
    commands: tokio::sync::Mutex<mpsc::UnboundedReceiver<Opaque>>,
    faults_ended: AtomicBool,
    /// For how long the process is down once its program has ended by itself.
    again: Mutex<Option<Duration>>,
}

impl Process {
    pub(crate) fn new(
        incarnation: IncarnationId,
        link: Link,
        commands: mpsc::UnboundedReceiver<Opaque>,
        recorder: &Recorder,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                incarnation,
                link,
                recorder: recorder.clone(),
                shutdown: CancellationToken::new(),
                factories: Mutex::default(),
                operators: Mutex::default(),
                subscribers: AtomicU32::new(0),
                commands: tokio::sync::Mutex::new(commands),
                faults_ended: AtomicBool::new(false),
                again: Mutex::default(),
            }),
        }
    }

    /// Returns the name of the process, such as `operator-0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.incarnation.process
    }

    /// Returns the number of incarnations of the process before this one.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.inner.incarnation.number
    }

    /// Returns a client whose requests go through the simulated network.
    ///
    /// # Panics
    ///
    /// It is called outside of the program: the client has a task of its own.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.inner.link.clone(), "default")
    }

    /// Returns the builder of a factory whose calls of handlers are in the trace.
    ///
    /// Handlers get a middleware outside of all others. Options set on the builder afterwards with
    /// [`FactoryBuilder::default_options`] replace it: give them [`observed`](Self::observed) instead. A start waits
    /// 600 seconds for its caches, which is longer than any fault lasts.
    pub fn factory(&self) -> FactoryBuilder {
        let options =
            ControllerOptions::default().handlers(self.observed(HandlerOptions::default()));
        SharedControllerFactory::builder(self.client())
            .default_options(options)
            // Otherwise the default would end a start while the plan still keeps its answers back.
            .sync_timeout(SYNC_TIMEOUT)
    }

    /// Returns handler options with middleware that reports calls to the trace.
    ///
    /// ```
    /// use lariat::controller::{ControllerOptions, HandlerOptions};
    /// use lariat::sim::Simulation;
    /// use std::time::Duration;
    ///
    /// let simulation = Simulation::new(7).program("operator", |process| async move {
    ///     let handlers = process.observed(HandlerOptions::default().timeout(Duration::from_secs(20)));
    ///     let options = ControllerOptions::default().handlers(handlers);
    ///     let factory = process.factory().default_options(options).build();
    ///     process.run(&factory, 2).await?;
    ///     Ok(())
    /// });
    /// # drop(simulation);
    /// ```
    pub fn observed(&self, options: HandlerOptions) -> HandlerOptions {
        options.wrap(Probe {
            process: self.clone(),
        })
    }

    /// Registers a factory whose caches and queues are sampled during the run.
    ///
    /// The samples are for the checkers of Lariat's own simulation; other runs need none.
    pub fn inspect(&self, factory: &SharedControllerFactory) {
        self.inner.factories.lock().push(factory.clone());
    }

    /// Runs a factory until the program is asked to end; it is registered too.
    ///
    /// It has `workers` workers; see [`inspect`](Self::inspect).
    ///
    /// # Errors
    ///
    /// The start failed, or the stop had to cut calls short although no fault was left when the program was asked to
    /// end: while faults last, a call may take longer than any grace period.
    pub async fn run(
        &self,
        factory: &SharedControllerFactory,
        workers: usize,
    ) -> Result<(), RunError> {
        self.inspect(factory);
        // A fault may end while the stop still waits for a call it has made long.
        let had_faults_ended = AtomicBool::new(false);
        let terminated = async {
            self.terminated().await;
            had_faults_ended.store(self.faults_ended(), Ordering::Relaxed);
        };
        match factory.run(workers, terminated).await {
            Err(RunError::Stop(_)) if !had_faults_ended.load(Ordering::Relaxed) => Ok(()),
            result => result,
        }
    }

    /// Registers an operator and its factory; see [`inspect`](Self::inspect).
    pub fn inspect_operator(&self, operator: &Operator) {
        self.inspect(operator.factory());
        self.inner.operators.lock().push(operator.clone());
    }

    /// Resolves when the simulation asks the program to end, as SIGTERM does.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: it resolves at once from then on.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lariat::sim::Simulation;
    ///
    /// let simulation = Simulation::new(7).program("poller", |process| async move {
    ///     loop {
    ///         tokio::select! {
    ///             () = process.terminated() => return Ok(()),
    ///             () = tokio::time::sleep(Duration::from_secs(10)) => process.note("polls"),
    ///         }
    ///     }
    /// });
    /// # drop(simulation);
    /// ```
    pub async fn terminated(&self) {
        self.inner.shutdown.cancelled().await;
    }

    /// Allows the program to end by itself, as after a lost lease.
    ///
    /// It is restarted later.
    pub(crate) fn start_again(&self, after: Duration) {
        *self.inner.again.lock() = Some(after);
    }

    pub(crate) fn starts_again(&self) -> Option<Duration> {
        *self.inner.again.lock()
    }

    /// Reports that a handler is about to write, with the mark it leaves in the object.
    pub(crate) fn writes(&self, kind: &Gvk, key: &ObjectKey, mark: &str) {
        self.inner.recorder.note(Event::Writes {
            incarnation: self.inner.incarnation.clone(),
            kind: kind.clone(),
            key: key.clone(),
            mark: Arc::from(mark),
        });
    }

    /// Adds a line to the trace.
    pub fn note(&self, text: impl fmt::Display) {
        self.inner.recorder.say(text.to_string());
    }

    /// Adds a read of a cache to the trace.
    pub fn has_read(&self, kind: &Gvk, key: &ObjectKey, object: Option<&Arc<CachedObject>>) {
        self.inner.recorder.note(Event::Read {
            incarnation: self.inner.incarnation.clone(),
            kind: kind.clone(),
            key: key.clone(),
            object: object.map(Observed::new),
        });
    }

    /// Adds an answered write of the process to the trace, with its version.
    pub fn has_written(&self, kind: &Gvk, key: &ObjectKey, version: &str) {
        self.inner.recorder.note(Event::Wrote {
            incarnation: self.inner.incarnation.clone(),
            kind: kind.clone(),
            key: key.clone(),
            written: Written::State(version.parse().unwrap_or_default()),
        });
    }

    /// Adds an answered deletion of the object with the uid to the trace.
    pub fn has_deleted(&self, kind: &Gvk, key: &ObjectKey, uid: &str) {
        self.inner.recorder.note(Event::Wrote {
            incarnation: self.inner.incarnation.clone(),
            kind: kind.clone(),
            key: key.clone(),
            written: Written::Gone(uid.to_owned()),
        });
    }

    /// Selects objects of a kind as [`Informer::select`], and notes it in the trace.
    pub fn select(&self, informer: &Informer, selection: Selection) {
        self.inner.recorder.note(Event::Selected {
            incarnation: self.inner.incarnation.clone(),
            kind: informer.gvk().clone(),
            selection: selection.clone(),
        });
        // Reported first: what is published from here on belongs to the new selection.
        informer.select(selection);
    }

    /// Adds published changes of a cache to the trace, until the subscription drops.
    pub fn subscribe(&self, informer: &Informer) -> Subscription {
        let number = self.inner.subscribers.fetch_add(1, Ordering::Relaxed);
        let listener = Listener {
            recorder: self.inner.recorder.clone(),
            subscriber: Subscriber {
                incarnation: self.inner.incarnation.clone(),
                kind: informer.gvk().clone(),
                number: number.into(),
            },
        };
        // Reported first, because the subscription publishes the present objects at once.
        self.acts(ActivityKind::Subscribed(listener.subscriber.clone()));
        informer.subscribe(Arc::new(listener))
    }

    /// Reports an activity of the process with its factory.
    pub(crate) fn acts(&self, what: ActivityKind) {
        self.inner.recorder.note(Event::Acted(Activity {
            incarnation: self.inner.incarnation.clone(),
            what,
        }));
    }

    /// Reports how far the caches of the process are.
    pub(crate) fn has_cached(&self, kinds: Vec<CacheProgress>) {
        self.inner.recorder.note(Event::Cached {
            incarnation: self.inner.incarnation.clone(),
            kinds,
        });
    }

    /// Returns how often the cache of a kind has been filled.
    fn loads(&self, kind: &Gvk) -> Option<u64> {
        let factories = self.inner.factories.lock();
        let mut statuses = factories.iter().flat_map(|each| each.caches().status());
        statuses
            .find(|each| each.gvk == *kind)
            .map(|each| each.loads)
    }

    /// Returns whether all faults have ended, and programs must behave.
    #[must_use]
    pub fn faults_ended(&self) -> bool {
        self.inner.faults_ended.load(Ordering::Relaxed)
    }

    /// Reports an action of the program.
    pub(crate) fn did(&self, action: Opaque) {
        self.inner.recorder.note(Event::Did {
            incarnation: self.inner.incarnation.clone(),
            action,
        });
    }

    pub(crate) fn note_faults_ended(&self) {
        self.inner.faults_ended.store(true, Ordering::Relaxed);
    }

    /// Waits for the next thing the plan asks of the program.
    pub(crate) async fn command(&self) -> Option<Opaque> {
        self.inner.commands.lock().await.recv().await
    }

    pub(crate) fn id(&self) -> &IncarnationId {
        &self.inner.incarnation
    }

    pub(crate) fn terminate(&self) {
        self.inner.shutdown.cancel();
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.inner.shutdown.is_cancelled()
    }

    pub(crate) fn factories(&self) -> Vec<SharedControllerFactory> {
        self.inner.factories.lock().clone()
    }

    /// Returns the sizes of the tables of the program's factories and operators.
    pub(crate) fn table_sizes(&self) -> Vec<TableSize> {
        let operators = self.inner.operators.lock().clone();
        let mut all: Vec<_> = operators.iter().flat_map(Operator::table_sizes).collect();
        all.extend(self.factories().iter().flat_map(|each| each.table_sizes()));
        all
    }

    /// Drops the handles that would keep the program's factories alive.
    pub(crate) fn forget_factories(&self) {
        self.inner.factories.lock().clear();
        self.inner.operators.lock().clear();
    }

    /// Breaks all connections of the process.
    pub(crate) fn cut(&self) {
        self.inner.link.cut();
    }

    /// Returns whether a write of the process is under way.
    pub(crate) fn is_writing(&self) -> bool {
        self.inner.link.is_writing()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.inner.link.sent()
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("name", &self.inner.incarnation.process)
            .field("incarnation", &self.inner.incarnation.number)
            .finish_non_exhaustive()
    }
}

/// Reports calls of handlers.
#[derive(Debug)]
struct Probe {
    process: Process,
}

impl Middleware for Probe {
    async fn handle(&self, call: Call, next: Next) -> HandlerResult {
        let inner = &self.process.inner;
        // Made before anything is awaited: if the call is dropped, its guard still reports the end.
        let mut running = RunningCall {
            recorder: inner.recorder.clone(),
            handler: HandlerId {
                incarnation: inner.incarnation.clone(),
                kind: call.gvk().clone(),
                name: Arc::from(call.handler()),
            },
            key: call.key().clone(),
            run: call.run(),
            result: None,
            next: Following::Dropped,
        };
        let loads = self.process.loads(call.gvk());
        inner.recorder.note(Event::Began {
            handler: running.handler.clone(),
            key: running.key.clone(),
            run: running.run,
            attempt: call.attempt(),
            object: call.object().map(Observed::new),
            causes: Arc::new(call.causes().clone()),
            loads,
        });
        let result = next.run(call).await;
        running.next = following(&result);
        running.result = Some(match &result {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        });
        result
    }
}

/// Returns the call that must follow a call.
fn following(result: &HandlerResult) -> Following {
    match result {
        Ok(outcome) => outcome.delay().map_or(Following::Done, Following::Again),
        Err(error) if error.is_retryable() => Following::Retry(error.delay()),
        Err(_) => Following::Done,
    }
}

/// A call in progress; dropped without a result, it was cancelled or panicked.
struct RunningCall {
    recorder: Recorder,
    handler: HandlerId,
    key: ObjectKey,
    run: u64,
    result: Option<Result<(), String>>,
    next: Following,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        // Without a panic the future was dropped: at the end of a grace period, or with the process.
        if self.result.is_none() && std::thread::panicking() {
            self.next = Following::Panicked;
        }
        self.recorder.note(Event::Ended {
            handler: self.handler.clone(),
            key: self.key.clone(),
            run: self.run,
            result: self.result.take(),
            next: self.next,
        });
    }
}

struct Listener {
    recorder: Recorder,
    subscriber: Subscriber,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.recorder
            .note(Event::Unsubscribed(self.subscriber.clone()));
    }
}

impl lariat_cache::Subscriber for Listener {
    fn changed(&self, changes: &[Change]) {
        for change in changes {
            self.recorder.note(Event::Published {
                subscriber: self.subscriber.clone(),
                change: change.clone(),
            });
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
