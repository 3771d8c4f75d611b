//! A run of a fleet, in which clusters join and leave as sources and code demand.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::error::FleetError;
use crate::fleet::{Fleet, FleetState};
use crate::life::Life;
use crate::terms::Terms;
use crate::wanted::{Access, SourceId, Wanted};

/// A fleet that is running.
struct Running {
    /// The fleet.
    fleet: Fleet,
    /// The terms in which the clients of the clusters may write.
    terms: Terms,
    /// The number of workers per kind; `None` for the default.
    workers: Option<usize>,
    /// One task per cluster.
    lives: JoinSet<()>,
    /// The clusters with a task, by name.
    begun: BTreeMap<Arc<str>, Begun>,
    /// Marks the fleet as running.
    mark: Arc<Mark>,
}

/// A cluster with a task.
struct Begun {
    /// The task.
    task: Id,
    /// The stay of the cluster that the task is for.
    stay: u64,
    /// The version of the access that the task was sent last.
    version: u64,
    /// Sends the task another access.
    access: watch::Sender<Access>,
    /// Cancelled when the cluster must leave.
    leaving: CancellationToken,
}

/// Marks the fleet as running until the last task of the run has ended.
///
/// The tasks share it, because they may outlive the future of the run for a moment when that is dropped.
struct Mark(Arc<FleetState>);

impl Fleet {
    /// Runs the operators of all clusters until `shutdown` resolves, then stops them.
    ///
    /// `workers` is the number of workers per kind and cluster; `None` is the default of the factory. Only one run at a
    /// time is possible; a fleet can run again afterwards. At the end of a run, the clusters of sources are forgotten,
    /// those that were [added](Self::add) are kept.
    ///
    /// # Errors
    ///
    /// [`FleetError::AlreadyRunning`]; [`FleetError::Source`] if a source cannot be read; [`FleetError::NoElection`] or
    /// [`FleetError::Lost`] if the fleet is [fenced](crate::FleetBuilder::fenced_by). All operators have been stopped.
    /// A cluster that cannot be started is no error; see [`status`](Self::status).
    ///
    /// # Panics
    ///
    /// If it is polled outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, all operators are dropped without a grace period.
    pub async fn run<T>(
        &self,
        workers: impl Into<Option<usize>>,
        shutdown: impl Future<Output = T>,
    ) -> Result<(), FleetError> {
        if self.0.is_running.swap(true, Ordering::AcqRel) {
            return Err(FleetError::AlreadyRunning);
        }
        let mark = Arc::new(Mark(Arc::clone(&self.0)));
        let mut shutdown = pin!(shutdown);
        let terms = tokio::select! {
            biased;
            _ = &mut shutdown => return Ok(()),
            terms = Terms::begun(&self.0) => terms?,
        };
        let running = Running::new(self, terms, workers.into(), mark);
        running.run(shutdown).await
    }
}

impl Running {
    /// Prepares a run.
    fn new(fleet: &Fleet, terms: Terms, workers: Option<usize>, mark: Arc<Mark>) -> Self {
        Self {
            fleet: fleet.clone(),
            terms,
            workers,
            lives: JoinSet::new(),
            begun: BTreeMap::new(),
            mark,
        }
    }

    /// Runs until `shutdown` resolves, a source fails, or a term is over.
    async fn run<T>(
        mut self,
        mut shutdown: Pin<&mut impl Future<Output = T>>,
    ) -> Result<(), FleetError> {
        let terms = self.terms.clone();
        let mut over = pin!(terms.over());
        let state = Arc::clone(&self.fleet.0);
        let ending = CancellationToken::new();
        let _ended = ending.clone().drop_guard();
        let mut sources = JoinSet::new();
        for (at, source) in state.sources.iter().enumerate() {
            let (wanted, ending) = (Arc::clone(&state.wanted), ending.clone());
            let source = Arc::clone(source);
            sources.spawn(async move { source.follow(source_id(at), wanted, ending).await });
        }
        let result = loop {
            // Created before the clusters are read, so that a change in between is not missed.
            let changed = state.wanted.changed();
            self.settle(&state.wanted.all());
            tokio::select! {
                biased;
                _ = &mut shutdown => break Ok(()),
                error = &mut over => break Err(error),
                Some(ended) = sources.join_next() => match ended {
                    Ok(Err(error)) => break Err(error),
                    Ok(Ok(())) => {}
                    Err(error) => tracing::error!(%error, "a source of clusters ended"),
                },
                Some(ended) = self.lives.join_next_with_id() => self.ended(ended),
                () = changed => {}
            }
        };
        ending.cancel();
        self.begun.values().for_each(|begun| begun.leaving.cancel());
        // Sources first, so that none adds a cluster after the tasks have ended.
        while sources.join_next().await.is_some() {}
        while self.lives.join_next().await.is_some() {}
        let ids = (0..state.sources.len()).map(source_id);
        // The next run reads the sources again. Clusters that have disappeared by then must not join.
        ids.for_each(|id| state.wanted.forget(id));
        result
    }

    /// Starts clusters that should be in the fleet, and stops the others.
    ///
    /// A cluster whose access has changed is sent the new one, and replaces the present one once it works.
    fn settle(&mut self, wanted: &BTreeMap<Arc<str>, Wanted>) {
        for (name, begun) in &mut self.begun {
            match wanted.get(name).filter(|wanted| wanted.stay == begun.stay) {
                Some(wanted) if wanted.version != begun.version => {
                    begun.version = wanted.version;
                    begun.access.send_replace(wanted.access.clone());
                }
                Some(_) => {}
                None => begun.leaving.cancel(),
            }
        }
        for (name, wanted) in wanted {
            // A cluster that is still leaving starts again when its task has ended: two operators must not run in one
            // cluster.
            if !self.begun.contains_key(name) {
                self.begin(name, wanted);
            }
        }
    }

    /// Starts the task of a cluster.
    fn begin(&mut self, name: &Arc<str>, wanted: &Wanted) {
        let leaving = CancellationToken::new();
        let (sender, access) = watch::channel(wanted.access.clone());
        let life = Life {
            fleet: self.fleet.clone(),
            name: Arc::clone(name),
            access,
            terms: self.terms.clone(),
            workers: self.workers,
            leaving: leaving.clone(),
        };
        tracing::info!(cluster = %name, "a cluster joins the fleet");
        let mark = Arc::clone(&self.mark);
        // The mark is held until the task has ended, even if the run's future is dropped before.
        let life = async move {
            life.run().await;
            drop(mark);
        };
        let task = self.lives.spawn(life).id();
        let begun = Begun {
            task,
            stay: wanted.stay,
            version: wanted.version,
            access: sender,
            leaving,
        };
        self.begun.insert(Arc::clone(name), begun);
    }

    /// Removes the task of a cluster that has left.
    fn ended(&mut self, ended: Result<(Id, ()), tokio::task::JoinError>) {
        let task = match ended {
            Ok((task, ())) => task,
            Err(error) => {
                tracing::error!(%error, "the task of a cluster died");
                error.id()
            }
        };
        // A task that panicked has not removed its cluster. The next `settle` starts the cluster again.
        let mut died = self.begun.extract_if(.., |_, begun| begun.task == task);
        if let Some((name, _)) = died.next() {
            self.fleet.0.members.lock().remove(&name);
        }
    }
}

/// Returns the number of the source at this index; 0 stands for code.
fn source_id(at: usize) -> SourceId {
    SourceId(at + 1)
}

impl Drop for Mark {
    fn drop(&mut self) {
        // Only members of tasks that were aborted are left. They own what the user registered, so they are dropped
        // outside the lock.
        let members = std::mem::take(&mut *self.0.members.lock());
        drop(members);
        self.0.is_running.store(false, Ordering::Release);
    }
}
