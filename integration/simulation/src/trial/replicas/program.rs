//! The program of a replica: handlers that take their time, and then write the object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Error, Resource, ResourceExt};
use lariat_controller::{
    Context, HandlerError, Outcome, RunError, SharedController, SharedControllerFactory,
};
use lariat_core::ObjectKey;
use lariat_lease::{Lease, Sharding};
use lariat_sim::Process;
use lariat_sim::internals::ProcessExt;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time;

use crate::setup::{Setup, WRITER};

/// The annotation with the number of a foreign write.
pub(crate) const NUMBER: &str = "sim.dev/number";

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The time a stop waits for calls under way.
const GRACE: Duration = Duration::from_secs(20);

/// The longest that one that has lost its lease is down.
const DOWN: u64 = 5_000;

/// A kind of the trial.
trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + DeserializeOwned
    + Clone
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
}

impl Kind for ConfigMap {}
impl Kind for Secret {}

pub(super) async fn run(process: Process, setup: Arc<Setup>) -> Result<(), Failed> {
    let factory = factory(&process, &setup);
    let work = Arc::new(Work {
        process: process.clone(),
        setup: Arc::clone(&setup),
        written: AtomicU64::new(0),
        spawned: Mutex::default(),
    });
    for number in 0..setup.handlers {
        register(&factory.for_object::<ConfigMap>(), number, &work)?;
        register(&factory.for_object::<Secret>(), number, &work)?;
    }
    let ended = process.run(&factory, setup.workers).await;
    // Writes that have outlasted their calls end with the program.
    let mut spawned = std::mem::take(&mut *work.spawned.lock());
    spawned.shutdown().await;
    match ended {
        Err(RunError::Lost(_)) => {
            process.start_again(Duration::from_millis(fastrand::u64(500..DOWN)));
            Ok(())
        }
        result => Ok(result?),
    }
}

fn factory(process: &Process, setup: &Setup) -> SharedControllerFactory {
    let times = setup.times;
    let lease = Lease::new("trial")
        .namespace("default")
        .identity(process.identity())
        .duration(times.duration)
        .renew_deadline(times.renew_deadline)
        .retry_period(times.retry_period);
    let builder = process.factory().grace_period(GRACE);
    let elected = if setup.is_sharded {
        builder.sharding(Sharding::new(lease).drain_timeout(times.drain))
    } else {
        builder.leader_election(lease)
    };
    elected.build()
}

fn register<K: Kind>(
    controller: &SharedController<K>,
    number: usize,
    work: &Arc<Work>,
) -> Result<(), Failed> {
    let name = format!("h{number}");
    let (work, field) = (Arc::clone(work), format!("sim.dev/h{number}"));
    let handler = move |cx: Context<K>| {
        let (work, field) = (Arc::clone(&work), field.clone());
        async move { work.handle(&cx, &field).await }
    };
    controller.register_handler(&name, handler)?;
    Ok(())
}

struct Work {
    process: Process,
    setup: Arc<Setup>,
    written: AtomicU64,
    /// Writes of tasks that may outlast their calls.
    spawned: Mutex<JoinSet<()>>,
}

impl Work {
    /// Waits for some time, and writes the seen state into the object.
    ///
    /// It writes nothing if the state is there already.
    async fn handle<K: Kind>(&self, cx: &Context<K>, field: &str) -> Result<Outcome, HandlerError> {
        let Some(object) = cx.object()? else {
            return Ok(Outcome::done());
        };
        let annotation = |name: &str| object.annotations().get(name).cloned();
        let number = annotation(NUMBER).unwrap_or_default();
        // Each handler has a field of its own, so handlers do not take each other's writes for their own.
        if annotation(field).as_ref() == Some(&number) {
            return Ok(Outcome::done());
        }
        self.takes_time().await;
        if self.fails(cx.key()) {
            return Err("the back end is away".into());
        }
        let mark = format!(
            "{}.{}",
            self.process.identity(),
            self.written.fetch_add(1, Ordering::Relaxed)
        );
        let mut patch = json!({"metadata": {"annotations": {field: number, WRITER: mark}}});
        if fastrand::bool() {
            // Half of the writes would be refused after a change of the object; the others only fencing can keep back.
            patch["metadata"]["resourceVersion"] = json!(object.resource_version());
        }
        self.process.writes(cx.gvk(), cx.key(), &mark);
        let (api, name) = (
            Api::<K>::namespaced(cx.client(), "default"),
            cx.key().name().to_owned(),
        );
        let write = async move {
            api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                .await
        };
        let patched = match fastrand::u8(..3) {
            0 => write.await,
            1 => in_task_of_call(write).await,
            _ => self.in_task(write).await,
        };
        match patched {
            Err(Error::Api(status)) if status.code == 404 => Ok(Outcome::done()),
            Err(error) => Err(error.into()),
            Ok(object) => {
                let version = object.resource_version().unwrap_or_default();
                self.process.has_written(cx.gvk(), cx.key(), &version);
                Ok(Outcome::done())
            }
        }
    }

    /// Returns whether the handler fails for a key now.
    fn fails(&self, key: &ObjectKey) -> bool {
        let is_chosen = key.name().bytes().last().is_some_and(|last| last % 2 == 0);
        self.setup.fails && is_chosen && !self.process.faults_ended()
    }

    /// Writes in a task that goes on if the call is dropped.
    ///
    /// In a ring the key may be another member's by then, so that the task ends with the call.
    async fn in_task<T: Send + 'static>(
        &self,
        write: impl Future<Output = T> + Send + 'static,
    ) -> T {
        if self.setup.is_sharded {
            return in_task_of_call(write).await;
        }
        let (answer, answered) = oneshot::channel();
        let task = async move { drop(answer.send(write.await)) };
        {
            let mut spawned = self.spawned.lock();
            while spawned.try_join_next().is_some() {}
            spawned.spawn(task);
        }
        match answered.await {
            Ok(answer) => answer,
            // The task ends early with the program only, which drops this call too.
            Err(_) => std::future::pending().await,
        }
    }

    async fn takes_time(&self) {
        let longest = match fastrand::u8(..8) {
            // Longer than any lease duration, so that the holder changes while the call runs.
            0 => 40_000,
            1 => u64::try_from(self.setup.times.drain.as_millis()).unwrap_or_default() + 8_000,
            2 | 3 => 5_000,
            _ => 300,
        };
        let ends = time::Instant::now() + Duration::from_millis(fastrand::u64(..=longest));
        // Once all faults have ended, everything has to come to rest.
        while time::Instant::now() < ends && !self.process.faults_ended() {
            time::sleep_until(ends.min(time::Instant::now() + Duration::from_secs(1))).await;
        }
    }
}

/// Writes in a task that is aborted if the call is dropped.
async fn in_task_of_call<T: Send + 'static>(write: impl Future<Output = T> + Send + 'static) -> T {
    let mut task = JoinSet::new();
    task.spawn(write);
    let ended = task.join_next().await;
    ended.and_then(Result::ok).expect("a write does not panic")
}
