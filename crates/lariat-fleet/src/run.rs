//! A run of a fleet: clusters join and leave as they are wanted.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::error::FleetError;
use crate::fleet::{Fleet, FleetState};
use crate::life::Life;
use crate::wanted::{SourceId, Wanted};

/// A fleet that runs.
struct Running {
    fleet: Fleet,
    workers: Option<usize>,
    lives: JoinSet<()>,
    /// The clusters with a task, by name.
    begun: BTreeMap<Arc<str>, Begun>,
    mark: Arc<Mark>,
}

/// A cluster with a task.
struct Begun {
    task: Id,
    /// The version of the access it was begun with.
    version: u64,
    leaving: CancellationToken,
}

/// Marks the fleet as running until the last task of the run has ended.
struct Mark(Arc<FleetState>);

impl Fleet {
    /// Runs the operators of all clusters until `shutdown` resolves, and stops them.
    ///
    /// `workers` is the number of workers for each kind of each cluster. A fleet can run once at a time, and again
    /// after that. What sources name is forgotten at the end of a run.
    ///
    /// # Errors
    ///
    /// The fleet runs already, or a source cannot be followed; then nothing runs any more. Clusters that cannot be
    /// started are no errors; see [`status`](Self::status).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the operators are dropped without grace period.
    pub async fn run<T>(
        &self,
        workers: impl Into<Option<usize>>,
        shutdown: impl Future<Output = T>,
    ) -> Result<(), FleetError> {
        if self.0.is_running.swap(true, Ordering::AcqRel) {
            return Err(FleetError::AlreadyRunning);
        }
        Running::new(self, workers.into()).run(shutdown).await
    }
}

impl Running {
    fn new(fleet: &Fleet, workers: Option<usize>) -> Self {
        Self {
            fleet: fleet.clone(),
            workers,
            lives: JoinSet::new(),
            begun: BTreeMap::new(),
            mark: Arc::new(Mark(Arc::clone(&fleet.0))),
        }
    }

    /// Runs until `shutdown` resolves.
    async fn run<T>(mut self, shutdown: impl Future<Output = T>) -> Result<(), FleetError> {
        let state = Arc::clone(&self.fleet.0);
        let ending = CancellationToken::new();
        let _ended = ending.clone().drop_guard();
        let mut sources = JoinSet::new();
        for (at, source) in state.sources.iter().enumerate() {
            let (wanted, ending) = (Arc::clone(&state.wanted), ending.clone());
            let source = Arc::clone(source);
            sources.spawn(async move { source.follow(source_id(at), wanted, ending).await });
        }
        let mut shutdown = pin!(shutdown);
        let result = loop {
            // Created before the clusters are read, so that a change in between is not missed.
            let changed = state.wanted.changed();
            self.settle(&state.wanted.all());
            tokio::select! {
                biased;
                _ = &mut shutdown => break Ok(()),
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
        while sources.join_next().await.is_some() {}
        while self.lives.join_next().await.is_some() {}
        let ids = (0..state.sources.len()).map(source_id);
        ids.for_each(|id| state.wanted.retain(id, |_| false));
        result
    }

    /// Begins clusters that are wanted; stops those that are not wanted any more, or whose access changed.
    fn settle(&mut self, wanted: &BTreeMap<Arc<str>, Wanted>) {
        for (name, begun) in &self.begun {
            let stays = wanted
                .get(name)
                .is_some_and(|it| it.version == begun.version);
            if !stays {
                begun.leaving.cancel();
            }
        }
        for (name, wanted) in wanted {
            // One that leaves joins again once its task has ended.
            if !self.begun.contains_key(name) {
                self.begin(name, wanted);
            }
        }
    }

    fn begin(&mut self, name: &Arc<str>, wanted: &Wanted) {
        let leaving = CancellationToken::new();
        let life = Life {
            fleet: self.fleet.clone(),
            name: Arc::clone(name),
            access: wanted.access.clone(),
            workers: self.workers,
            leaving: leaving.clone(),
        };
        tracing::info!(cluster = %name, "a cluster joins the fleet");
        let mark = Arc::clone(&self.mark);
        let life = async move {
            life.run().await;
            drop(mark);
        };
        let task = self.lives.spawn(life).id();
        let begun = Begun {
            task,
            version: wanted.version,
            leaving,
        };
        self.begun.insert(Arc::clone(name), begun);
    }

    /// Forgets the task of a cluster that has left.
    fn ended(&mut self, ended: Result<(Id, ()), tokio::task::JoinError>) {
        let task = match ended {
            Ok((task, ())) => task,
            Err(error) => {
                tracing::error!(%error, "the task of a cluster died");
                error.id()
            }
        };
        let mut died = self.begun.extract_if(.., |_, begun| begun.task == task);
        if let Some((name, _)) = died.next() {
            self.fleet.0.members.lock().remove(&name);
        }
    }
}

/// Returns the number of the source in this place.
fn source_id(at: usize) -> SourceId {
    SourceId(at + 1)
}

impl Drop for Mark {
    fn drop(&mut self) {
        // Clusters whose tasks were aborted, with the future of the run. They have what the user registered, so they are
        // dropped without the lock.
        let members = std::mem::take(&mut *self.0.members.lock());
        drop(members);
        self.0.is_running.store(false, Ordering::Release);
    }
}
