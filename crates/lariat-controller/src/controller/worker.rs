//! Workers: take a key, run its handlers, give it back.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use super::run::run;

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

/// How long to wait before a worker that died is replaced.
const RESPAWN_PAUSE: Duration = Duration::from_secs(1);

/// Runs the workers of a controller once its cache is filled, until it is told to stop.
pub(crate) async fn run_workers(core: Arc<ControllerCore>, workers: usize, stopping: Stopping) {
    let filled = stopping.drain.run_until_cancelled(filled(&core)).await;
    if filled.is_none() {
        return;
    }
    let mut set = JoinSet::new();
    for _ in 0..workers {
        set.spawn(work(Arc::clone(&core), stopping.clone()));
    }
    while let Some(ended) = set.join_next().await {
        // Handlers' panics are caught where they are called, so this is a defect of ours, or a panic in
        // the drop of a handler's future. It must not leave the kind without workers.
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(kind = %core.gvk(), %error, "a worker died and is replaced");
            time::sleep(RESPAWN_PAUSE).await;
            set.spawn(work(Arc::clone(&core), stopping.clone()));
        }
    }
}

/// Waits for the cache, also of a kind that is not served yet.
async fn filled(core: &ControllerCore) {
    while !core.informer().synced().await {
        time::sleep(MISSING_PERIOD).await;
    }
}

async fn work(core: Arc<ControllerCore>, stopping: Stopping) {
    loop {
        let work = tokio::select! {
            biased;
            () = stopping.abort.cancelled() => return,
            work = core.queue().take() => work,
        };
        let Some(work) = work else {
            return;
        };
        let key: ObjectKey = work.key().clone();
        let run = run(&core, work, &stopping.drain);
        if stopping.abort.run_until_cancelled(run).await.is_none() {
            tracing::warn!(kind = %core.gvk(), %key, "handlers were dropped: the grace period is over");
            return;
        }
    }
}
