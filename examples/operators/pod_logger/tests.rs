//! Which lines are logged.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use lariat::SharedControllerFactory;
use lariat::cluster::Cluster;
use lariat::cluster::faults::{Action, Rule};
use lariat::cluster::testing::{TestCluster, pod};
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use super::{Event, RETRIES, options, register};

/// A cluster, and what was logged.
struct Bench {
    cluster: TestCluster,
    factory: SharedControllerFactory,
    pods: Api<Pod>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        let builder = SharedControllerFactory::builder(cluster.client());
        let factory = builder.default_options(options()).build();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&lines);
        let registered = register(&factory, move |event, key, phase| {
            let line = format!("{} {key} {phase}", event.as_str());
            log.lock().push(line);
        });
        registered.expect("registered");
        factory.start(None).await.expect("started");
        Self {
            pods: Api::default_namespaced(cluster.client()),
            cluster,
            factory,
            lines,
        }
    }

    async fn create(&self) {
        let created = pod("web").create(&self.cluster.client()).await;
        created.expect("created");
    }

    async fn run(&self) {
        let patch = Patch::Merge(json!({"status": {"phase": "Running"}}));
        let params = PatchParams::default();
        let patched = self.pods.patch_status("web", &params, &patch).await;
        patched.expect("patched");
    }

    async fn delete(&self) {
        // An update before says that it is being deleted.
        let deleted = self
            .pods
            .delete("web", &DeleteParams::default().grace_period(0))
            .await;
        deleted.expect("deleted");
    }

    async fn logged(&self) -> Vec<String> {
        sleep(Duration::from_secs(1)).await;
        std::mem::take(&mut *self.lines.lock())
    }
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_event_is_a_line() {
    let bench = Bench::new().await;
    bench.create().await;
    assert_eq!(bench.logged().await, ["created default/web Pending"]);
    bench.run().await;
    assert_eq!(bench.logged().await, ["updated default/web Running"]);
    bench.delete().await;
    let mut lines = bench.logged().await;
    lines.retain(|line| !line.starts_with("updated"));
    assert_eq!(lines, ["deleted default/web Running"]);
}

/// In the original each event is a key of its own in the queue; it panics at the update of a deleted pod, and at the
/// deletion.
#[tokio::test(start_paused = true)]
async fn simultaneous_events_are_separate_lines() {
    let bench = Bench::new().await;
    // A cache without objects is listed again after a failure, instead of resuming the watch.
    let other = pod("other").create(&bench.cluster.client()).await;
    other.expect("created");
    assert_eq!(bench.logged().await, ["created default/other Pending"]);
    // All changes from now on arrive together.
    let slow = Rule::new(Action::Delay(Duration::from_secs(10))).verb("watch");
    bench.cluster.faults().add(slow);
    bench.cluster.cut_watches();
    bench.create().await;
    bench.run().await;
    assert_eq!(bench.logged().await, [""; 0]);
    sleep(Duration::from_secs(30)).await;
    let lines = bench.logged().await;
    assert_eq!(
        lines,
        ["created default/web Running", "updated default/web Running"]
    );
    bench.cluster.cut_watches();
    bench.run().await;
    bench.delete().await;
    sleep(Duration::from_secs(30)).await;
    let lines = bench.logged().await;
    assert_eq!(
        lines.last().map(String::as_str),
        Some("deleted default/web Running"),
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn existing_pods_are_logged_as_created_and_resyncs_are_not_logged() {
    let bench = Bench::new().await;
    bench.create().await;
    bench.logged().await;
    bench.factory.stop().await.unwrap();
    let again = Bench {
        factory: SharedControllerFactory::builder(bench.cluster.client()).build(),
        ..bench
    };
    let log = Arc::clone(&again.lines);
    register(&again.factory, move |event, _, _| {
        log.lock().push(event.as_str().to_owned())
    })
    .unwrap();
    again.factory.start(1).await.unwrap();
    assert_eq!(again.logged().await, ["created"]);
    sleep(Duration::from_secs(86_400)).await;
    assert_eq!(again.logged().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_cannot_be_logged_is_retried_five_times_and_the_others_continue() {
    let cluster = Cluster::for_test().await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let calls: Arc<Mutex<Vec<Event>>> = Arc::default();
    let log = Arc::clone(&calls);
    let broken = move |event, _: &lariat::ObjectKey, _: &str| {
        log.lock().push(event);
        assert_ne!(event, Event::Created, "no space left on device");
    };
    register(&factory, broken).unwrap();
    factory.start(1).await.unwrap();
    pod("web").create(&cluster.client()).await.unwrap();
    sleep(Duration::from_secs(600)).await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let at_once = DeleteParams::default().grace_period(0);
    pods.delete("web", &at_once).await.unwrap();
    sleep(Duration::from_secs(600)).await;
    let tries = 1 + RETRIES as usize;
    let mut expected = vec![Event::Created; tries];
    expected.push(Event::Deleted);
    calls.lock().retain(|event| *event != Event::Updated);
    assert_eq!(*calls.lock(), expected);
}
