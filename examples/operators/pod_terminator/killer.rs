//! The killers: a task for each PodTerminator, and their owner.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use lariat::cache::Query;
use lariat::kube::Resource;
use lariat::operator::{Event, Recorder};
use lariat::prelude::*;
use lariat::{CancellationToken, describe};
use parking_lot::Mutex;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::task::TaskTracker;

use super::round::{self, Round, key_of};
use super::{PodTerminator, PodTerminatorSpec};
use crate::{Paint, print_action};

/// The killers of an operator, at most one for each PodTerminator; clones share them.
#[derive(Clone)]
pub(super) struct Killers(Arc<KillerPool>);

/// What the killers have in common.
struct KillerPool {
    pods: CachedApi<Pod>,
    events: Recorder,
    tasks: TaskTracker,
    /// The lock is kept for a whole round, so rounds run one after the other. Each sees what the one before killed,
    /// and two PodTerminators with the same pods cannot leave fewer than either of them allows.
    random: tokio::sync::Mutex<Rng>,
    running: Mutex<HashMap<ObjectKey, KillerHandle>>,
}

/// The handle of a killer.
#[derive(Clone)]
struct KillerHandle {
    spec: PodTerminatorSpec,
    /// Stops the killer when it is cancelled.
    stop: CancellationToken,
    /// Cancelled when the killer has ended, even by a panic.
    ended: CancellationToken,
}

impl KillerHandle {
    fn does(&self, spec: &PodTerminatorSpec) -> bool {
        self.spec == *spec && !self.stop.is_cancelled() && !self.ended.is_cancelled()
    }
}

/// The state of a killer task.
struct Killer {
    pool: Arc<KillerPool>,
    object: Arc<PodTerminator>,
    query: Query,
    stop: CancellationToken,
}

impl Killers {
    pub(super) fn new(operator: &Operator, tasks: &TaskTracker, random: Rng) -> Self {
        Self(Arc::new(KillerPool {
            pods: operator.api::<Pod>(),
            events: operator.events(),
            tasks: tasks.clone(),
            random: tokio::sync::Mutex::new(random),
            running: Mutex::default(),
        }))
    }

    /// Starts the killer of an object, unless one with the same spec is running.
    ///
    /// One with another spec is stopped first: two killers of an object never run at the same time.
    pub(super) async fn ensure(&self, cx: &Reconcile<PodTerminator>) -> Result<(), HandlerError> {
        let spec = &cx.object().spec;
        if self.running(cx.key()).is_some_and(|one| one.does(spec)) {
            return Ok(());
        }
        self.stop(cx.key()).await;
        let query = round::query(spec)?;
        // The operator's stop ends it as well.
        let stop = cx.stopping().child_token();
        let running = KillerHandle {
            spec: spec.clone(),
            stop: stop.clone(),
            ended: CancellationToken::new(),
        };
        let killer = Killer {
            pool: Arc::clone(&self.0),
            object: Arc::clone(cx.object()),
            query,
            stop,
        };
        let ended = running.ended.clone().drop_guard();
        self.0.running.lock().insert(cx.key().clone(), running);
        self.0.tasks.spawn(async move {
            let _ended = ended;
            killer.run().await;
        });
        Ok(())
    }

    /// Stops the killer of a key, if there is one; once this returns, it kills no more.
    ///
    /// A running deletion is waited for. If the future is dropped, the killer still stops, and the next caller waits
    /// for it.
    pub(super) async fn stop(&self, key: &ObjectKey) {
        let Some(running) = self.running(key) else {
            return;
        };
        running.stop.cancel();
        running.ended.cancelled().await;
        self.0.running.lock().remove(key);
    }

    fn running(&self, key: &ObjectKey) -> Option<KillerHandle> {
        self.0.running.lock().get(key).cloned()
    }
}

impl Killer {
    async fn run(self) {
        let spec = &self.object.spec;
        let (percent, seconds) = (spec.termination_percent, spec.period_seconds.max(1));
        let verb = if spec.dry_run { "would kill" } else { "kills" };
        let what = format!("{verb} {percent} % of its pods every {seconds} s");
        self.print(Paint::Green, what);
        let period = Duration::from_secs(seconds.unsigned_abs().into());
        let mut rounds = interval_at(Instant::now() + period, period);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = String::new();
        loop {
            // A stop ends the wait for the period and for the lock, but not a running round.
            let random = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                random = async { rounds.tick().await; self.pool.random.lock().await } => random,
            };
            self.round(random, &mut last).await;
        }
        self.print(Paint::Dim, "ends");
    }

    async fn round(&self, mut random: MutexGuard<'_, Rng>, last: &mut String) {
        let played = round::play(
            &self.pool.pods,
            &self.object.spec,
            &self.query,
            &mut random,
            &self.stop,
        )
        .await;
        match played {
            Ok(round) => self.report(&round, last),
            Err(error) => {
                let reason = describe(&error);
                self.print(Paint::Red, format_args!("cannot list pods: {reason}"));
            }
        }
    }

    /// Reports the result of a round, unless nothing was killed again.
    fn report(&self, round: &Round, last: &mut String) {
        let spec = &self.object.spec;
        let text = round.summary(spec);
        if !round.killed.is_empty() || *last != text {
            self.print(Paint::Yellow, &text);
        }
        *last = text;
        for pod in round.killed.iter().filter(|_| !spec.dry_run) {
            let event = Event::normal("PodTerminated", format!("killed pod {}", key_of(pod)));
            self.record(pod, event);
        }
        for (pod, reason) in &round.failed {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            print_action(
                "Pod",
                name,
                Paint::Red,
                format_args!("not killed: {reason}"),
            );
            let note = format!("pod {} was not killed: {reason}", key_of(pod));
            self.record(pod, Event::warning("PodNotTerminated", note));
        }
    }

    /// Records an Event about the PodTerminator.
    fn record(&self, pod: &Pod, event: Event) {
        let event = event.action("Terminating").related(pod.object_ref(&()));
        self.pool
            .events
            .publish(&self.object.object_ref(&()), event);
    }

    fn print(&self, paint: Paint, what: impl fmt::Display) {
        let name = self.object.metadata.name.as_deref().unwrap_or_default();
        print_action("Terminator", name, paint, what);
    }
}

impl Round {
    fn summary(&self, spec: &PodTerminatorSpec) -> String {
        let (killed, alive) = (self.killed.len(), self.alive);
        let verb = if spec.dry_run { "would kill" } else { "killed" };
        let mut text = format!("{verb} {killed} of {alive}");
        if self.is_limited(spec) {
            text += &format!(", as {} must stay", spec.minimum_instances);
        }
        if !self.failed.is_empty() {
            text += &format!("; {} could not be killed", self.failed.len());
        }
        text
    }

    /// Returns whether the minimum reduced the number.
    fn is_limited(&self, spec: &PodTerminatorSpec) -> bool {
        let unlimited = PodTerminatorSpec {
            minimum_instances: 0,
            ..spec.clone()
        };
        self.quota < round::quota(self.alive, &unlimited)
    }
}
