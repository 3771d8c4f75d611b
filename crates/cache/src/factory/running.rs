//! The tasks between a start and a stop: informers, and the end of unused kinds.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::OptionFuture;
use lariat_core::Gvk;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::FactoryCore;
use crate::informer::Core;

/// A requested kind.
pub(super) struct Kind {
    pub(super) core: Arc<Core>,
    /// Stops the informer of the kind, if it is running.
    stop: Option<CancellationToken>,
}

/// The running informers.
pub(super) struct RunningInformers {
    stop: CancellationToken,
    tasks: TaskTracker,
    /// The runtime of the start. Kinds may be requested on threads without one.
    runtime: Handle,
}

impl Kind {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core, stop: None }
    }
}

impl RunningInformers {
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub(super) fn new() -> Self {
        Self {
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
        }
    }

    pub(super) fn spawn(&self, kind: &mut Kind) {
        let stop = self.stop.child_token();
        kind.stop = Some(stop.clone());
        let run = Arc::clone(&kind.core).run(stop);
        self.tasks.spawn_on(run, &self.runtime);
    }

    /// Spawns the task that ends unused kinds.
    pub(super) fn watch_use(&self, shared: &Arc<FactoryCore>) {
        let idle = Arc::clone(&shared.common.idle);
        let ending = end_unused(Arc::downgrade(shared), idle);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(ending).await;
        });
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(super) fn abort(self) {
        self.stop.cancel();
    }
}

/// Ends kinds after their grace period, until the factory is dropped.
async fn end_unused(factory: Weak<FactoryCore>, idle: Arc<Notify>) {
    // Kinds may have become unused before this task started.
    let mut next = Some(Instant::now());
    loop {
        let timer: OptionFuture<_> = next.map(time::sleep_until).into();
        tokio::select! {
            () = idle.notified() => {}
            Some(()) = timer => {}
        }
        // Upgraded only for a moment: this task must not keep the factory alive.
        match factory.upgrade() {
            Some(shared) => next = shared.end_unused(Instant::now()),
            None => return,
        }
    }
}

impl FactoryCore {
    /// Ends kinds that have been unused for the grace period.
    ///
    /// Returns when the next one will have been.
    fn end_unused(&self, now: Instant) -> Option<Instant> {
        let grace: Duration = self.options.idle_grace;
        let ends = |kind: &Kind| kind.core.usage().idle_since()?.checked_add(grace);
        let is_over = |_: &Gvk, kind: &Kind| ends(kind).is_some_and(|at| at <= now);
        let kinds = self.gvks().into_iter();
        // Checked again under the lock of the entry: the kind may be in use again by now.
        let ended: Vec<(Gvk, Kind)> = kinds
            .filter_map(|gvk| self.kinds.remove_if(&gvk, is_over))
            .collect();
        let next = self.kinds.iter().filter_map(|kind| ends(&kind)).min();
        for (kind, ended) in ended {
            tracing::info!(%kind, objects = ended.core.objects(), "the kind is unused and its watch ends");
            if let Some(stop) = ended.stop {
                stop.cancel();
            }
        }
        next
    }
}
