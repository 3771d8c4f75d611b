//! Waiting for a status that another client writes: the original's integration test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat::cluster::Cluster;
use lariat::prelude::*;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::{SECOND, spec};
use crate::autoscaler::{Autoscaler, AutoscalerStatus};
use crate::define;

/// Checks every second whether there are as many replicas as desired.
#[derive(Default)]
struct Watcher {
    calls: AtomicUsize,
    satisfied: Notify,
}

impl Watcher {
    fn look(&self, autoscaler: &Autoscaler) -> Outcome {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let status = autoscaler.status.as_ref();
        let available = status.map_or(0, |status| status.available_replicas);
        if available < autoscaler.spec.desired_replicas {
            return Outcome::requeue_after(SECOND);
        }
        self.satisfied.notify_one();
        Outcome::done()
    }
}

/// Raises the status by one every two seconds.
async fn raise(autoscalers: &Api<Autoscaler>) {
    for available in 1..=10 {
        sleep(2 * SECOND).await;
        let status = AutoscalerStatus {
            available_replicas: available,
            ready: available == 10,
        };
        let patch = Patch::Merge(json!({"status": status}));
        let patched = autoscalers
            .patch_status("test", &PatchParams::default(), &patch)
            .await;
        patched.expect("it can be written");
    }
}

#[tokio::test(start_paused = true)]
async fn looking_every_second_sees_ten_replicas_come() {
    let cluster = Cluster::for_test().await;
    define::<Autoscaler>(&cluster.client()).await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new("autoscaler", &factory);
    let watcher = Arc::new(Watcher::default());
    let looking = Arc::clone(&watcher);
    operator
        .reconciler("look", &factory.for_object::<Autoscaler>())
        .register(move |cx| {
            let outcome = looking.look(cx.object());
            async { Ok(outcome) }
        })
        .unwrap();
    operator.start(1).await.unwrap();
    let autoscalers: Api<Autoscaler> = Api::default_namespaced(cluster.client());
    let wanted = Autoscaler::new("test", spec("blue", 10));
    autoscalers
        .create(&PostParams::default(), &wanted)
        .await
        .unwrap();
    let started = Instant::now();
    let satisfied = timeout(90 * SECOND, watcher.satisfied.notified());
    let ((), satisfied) = tokio::join!(raise(&autoscalers), satisfied);
    satisfied.unwrap();
    assert_eq!(started.elapsed().as_secs(), 20);
    let calls = watcher.calls.load(Ordering::Relaxed);
    assert!(
        (20..=32).contains(&calls),
        "each second, and when something changed: {calls}"
    );
    // The look that was scheduled before the last change still comes, and schedules none.
    sleep(2 * SECOND).await;
    let calls = watcher.calls.load(Ordering::Relaxed);
    sleep(90 * SECOND).await;
    assert_eq!(watcher.calls.load(Ordering::Relaxed), calls, "done is done");
}
