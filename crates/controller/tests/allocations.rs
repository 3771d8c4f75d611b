//! Counts the allocations of a key's run, from `enqueue` to the calls of its handlers.
//!
//! The figures are bounds: a change that needs more has to be worth it, and one that needs fewer lowers them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use lariat_cache::{Metadata, View};
use lariat_cluster::Cluster;
use lariat_controller::{Context, Outcome, SharedController, SharedControllerFactory};
use lariat_core::ObjectKey;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::sync::Notify;

/// How many runs are measured, after as many that are not.
const RUNS: u64 = 200;

/// The number of calls, and a notification of each.
#[derive(Default)]
struct Calls {
    count: AtomicUsize,
    called: Notify,
}

impl Calls {
    async fn reach(&self, count: usize) {
        while self.count.load(Ordering::Relaxed) < count {
            self.called.notified().await;
        }
    }
}

fn register<K: View>(
    controller: &SharedController<K>,
    name: &str,
    calls: &Arc<Calls>,
    reads: bool,
) {
    let calls = Arc::clone(calls);
    let handler = move |cx: Context<K>| {
        let calls = Arc::clone(&calls);
        async move {
            if reads {
                assert!(cx.object()?.is_some());
            }
            calls.count.fetch_add(1, Ordering::Relaxed);
            calls.called.notify_one();
            Ok(Outcome::done())
        }
    };
    controller
        .register_handler(name, handler)
        .expect("registered");
}

/// Returns the number of allocations of a run with a number of handlers.
fn per_run<K: View>(
    controller: impl Fn(&SharedControllerFactory) -> SharedController<K>,
    handlers: usize,
    reads: bool,
) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (calls, key) = (
        Arc::new(Calls::default()),
        ObjectKey::namespaced("default", "one"),
    );
    let (controller, _factory, _cluster) = runtime.block_on(async {
        let cluster = Cluster::builder().start().await.expect("started");
        let object = json!({"metadata": {"name": "one"}, "data": {"key": "value"}});
        let object: ConfigMap = serde_json::from_value(object).expect("a ConfigMap");
        let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
        drop(
            api.create(&PostParams::default(), &object)
                .await
                .expect("created"),
        );
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        let controller = controller(&factory);
        for number in 0..handlers {
            register(&controller, &format!("handler-{number}"), &calls, reads);
        }
        factory.start(1).await.expect("started");
        (controller, factory, cluster)
    });
    let run = || {
        for _ in 0..RUNS {
            runtime.block_on(async {
                let before = calls.count.load(Ordering::Relaxed);
                controller.enqueue(&key);
                calls.reach(before + handlers).await;
            });
        }
    };
    // Other objects of the cluster are handled, and buffers grow.
    run();
    let measured = allocation_counter::measure(run);
    measured.count_total.div_ceil(RUNS)
}

#[test]
fn a_run_allocates_little() {
    let typed = |factory: &SharedControllerFactory| factory.for_object::<ConfigMap>();
    let metadata = |factory: &SharedControllerFactory| {
        let config_maps = factory.for_object::<ConfigMap>();
        config_maps.view::<Metadata>()
    };
    let cases = [
        ("typed, not read", per_run(typed, 1, false), 7),
        ("typed", per_run(typed, 1, true), 18),
        ("metadata", per_run(metadata, 1, true), 8),
        ("ten handlers, not read", per_run(typed, 10, false), 18),
        ("ten handlers", per_run(typed, 10, true), 29),
    ];
    for (case, found, most) in cases {
        assert!(
            found <= most,
            "{case}: {found} allocations, {most} at most; all: {cases:?}"
        );
    }
}
