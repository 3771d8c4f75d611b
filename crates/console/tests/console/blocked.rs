//! A handler that blocks a thread of the program's runtime, in real time.
//!
//! The API server and the test have a runtime of their own. A handler blocks until the test has seen everything that
//! must go on meanwhile.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use lariat_cluster::{Cluster, ClusterBuilder};
use lariat_console::{Console, ConsoleServer, Serve};
use lariat_controller::{Context, HandlerResult, Outcome, SharedControllerFactory};
use lariat_lease::Lease;
use lariat_testing::Logs;
use lariat_testing::http::Client;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tracing::dispatcher;

use crate::bench::until;

const SECOND: Duration = Duration::from_secs(1);

/// How long a handler waits for the test; longer than the test waits for anything.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program on a runtime of its own, with a handler that blocks for some keys.
struct Program {
    /// Ends the blocked call. Dropped before the runtime, whose drop waits for the call.
    release: Sender<()>,
    runtime: Runtime,
    factory: SharedControllerFactory,
    server: ConsoleServer,
    console: Client,
    /// Receives the names of the objects whose calls begin.
    calls: Receiver<String>,
}

impl Program {
    /// Starts a program that leads.
    fn start(cluster: &Cluster, threads: usize, lease: Lease) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .expect("a runtime");
        let (release, released) = mpsc::channel();
        let (called, calls) = mpsc::channel();
        let started = async {
            let factory = factory(cluster, lease, called, released).await;
            let server = factory.serve(Console::on("127.0.0.1:0")).expect("a port");
            factory.start(2).await.expect("started");
            let leadership = factory.leadership().expect("an election");
            assert!(leadership.acquired().await);
            (factory, server)
        };
        let (factory, server) = runtime.block_on(started);
        Self {
            console: Client::new(server.address()),
            runtime,
            factory,
            server,
            release,
            calls,
        }
    }

    /// Waits until the handler is called for an object.
    fn until_called(&self, name: &str) {
        while self.calls.recv_timeout(PATIENCE).expect("it is called") != name {}
    }

    fn stop(self) {
        let stopped = self.runtime.block_on(self.factory.stop());
        stopped.expect("everything is processed");
        self.runtime.block_on(self.server.ended());
    }
}

/// Makes a factory whose handler blocks its thread for keys that begin with `block` until it is released.
async fn factory(
    cluster: &Cluster,
    lease: Lease,
    called: Sender<String>,
    released: Receiver<()>,
) -> SharedControllerFactory {
    let released = Arc::new(Mutex::new(released));
    let handler = move |cx: Context<ConfigMap>| {
        let (called, released) = (called.clone(), Arc::clone(&released));
        async move {
            let _ = called.send(cx.key().name().to_owned());
            if cx.key().name().starts_with("block") {
                let released = released.lock().expect("no panic");
                // An error means that the test has failed, and ends.
                let _ = released.recv_timeout(PATIENCE);
            }
            HandlerResult::Ok(Outcome::done())
        }
    };
    let kubeconfig = cluster.kubeconfig().expect("it listens");
    let client = lariat_client::from_kubeconfig_text(kubeconfig.as_bytes()).await;
    let factory = SharedControllerFactory::builder(client.expect("a client"))
        .leader_election(lease)
        .blocked_after(SECOND / 5)
        .build();
    let maps = factory.for_object::<ConfigMap>();
    maps.register_handler("copy", handler).expect("registered");
    factory
}

async fn create(cluster: &Cluster, name: &str) {
    let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
    let map = json!({"metadata": {"name": name}});
    let map = serde_json::from_value(map).expect("a ConfigMap");
    api.create(&PostParams::default(), &map)
        .await
        .expect("created");
}

/// Returns when the lease was renewed, and its holder.
async fn renewed(cluster: &Cluster) -> (String, String) {
    let api = Api::<Object>::namespaced(cluster.client(), "default");
    let spec = api.get("shop").await.expect("a lease").spec;
    let spec = serde_json::to_value(spec).expect("JSON");
    (
        spec["renewTime"].to_string(),
        spec["holderIdentity"].to_string(),
    )
}

/// Waits until the lease was renewed some more times by the same holder.
async fn until_renewed(cluster: &Cluster, times: usize) {
    let (mut last, holder) = renewed(cluster).await;
    for _ in 0..times {
        last = until(async || {
            let (at, by) = renewed(cluster).await;
            assert_eq!(by, holder);
            (at != last).then_some(at)
        })
        .await;
    }
}

async fn until_logged(logs: &Logs, parts: &[&str]) {
    let line = async || {
        let text = logs.text();
        let mut lines = text.lines();
        let found = lines.any(|line| parts.iter().all(|part| line.contains(part)));
        found.then_some(())
    };
    until(line).await;
}

fn outside() -> Runtime {
    let mut outside = Builder::new_multi_thread();
    let outside = outside.worker_threads(1).enable_all().build();
    outside.expect("a runtime")
}

/// Blocks one thread of a program, and checks that probes, metrics and lease go on.
fn check(threads: usize, listening: impl FnOnce(ClusterBuilder) -> ClusterBuilder) {
    let (outside, logs) = (outside(), Logs::begin());
    let cluster = outside.block_on(listening(Cluster::builder()).start());
    let cluster = cluster.expect("a cluster");
    let lease = Lease::new("shop")
        .duration(20 * SECOND)
        .renew_deadline(15 * SECOND)
        .retry_period(SECOND / 4);
    let program = Program::start(&cluster, threads, lease);
    outside.block_on(create(&cluster, "block"));
    program.until_called("block");
    outside.block_on(async {
        let blocked = [
            "handler blocks its thread",
            "ConfigMap",
            "default/block",
            "copy",
        ];
        until_logged(&logs, &blocked).await;
        until_renewed(&cluster, 5).await;
        for path in ["/livez", "/readyz"] {
            assert_eq!(program.console.get(path).await.status, 200, "{path}");
        }
        until(async || {
            let metrics = program.console.get("/metrics").await.text;
            let blocked = "lariat_blocked_threads{ctx=\"\",kind=\"v1 ConfigMap\"} 1";
            metrics.contains(blocked).then_some(())
        })
        .await;
        assert!(program.factory.status().to_string().contains("1 blocked"));
        if threads > 1 {
            // The other thread takes over the driver, so the watch goes on.
            create(&cluster, "free").await;
        } else {
            until_logged(&logs, &["the runtime polls no tasks"]).await;
        }
    });
    if threads > 1 {
        program.until_called("free");
    }
    program.release.send(()).expect("the handler waits");
    outside.block_on(until_logged(
        &logs,
        &["no longer blocks its thread", "copy"],
    ));
    program.stop();
    outside.block_on(cluster.shutdown());
}

#[test]
fn blocked_thread_of_one_delays_neither_probes_nor_lease() {
    check(1, ClusterBuilder::listen);
}

#[test]
fn blocked_thread_of_two_delays_neither_probes_nor_watches() {
    check(2, ClusterBuilder::listen);
}

#[test]
fn blocked_call_is_named_after_a_restart_of_the_factory() {
    let (outside, logs) = (outside(), Logs::begin());
    let cluster = outside.block_on(Cluster::builder().listen().start());
    let cluster = cluster.expect("a cluster");
    let program = Program::start(&cluster, 2, Lease::new("shop"));
    let restarted = async {
        program.factory.stop().await.expect("nothing is left");
        program.factory.start(2).await.expect("started again");
        let leadership = program.factory.leadership().expect("an election");
        assert!(leadership.acquired().await);
    };
    program.runtime.block_on(restarted);
    outside.block_on(create(&cluster, "block-again"));
    program.until_called("block-again");
    let named = ["handler blocks its thread", "default/block-again"];
    outside.block_on(until_logged(&logs, &named));
    program.release.send(()).expect("the handler waits");
    program.stop();
    outside.block_on(cluster.shutdown());
}

#[test]
fn blocked_thread_delays_no_lease_over_http2() {
    check(1, |cluster| cluster.listen().tls_generated());
}

#[test]
fn lost_lease_names_the_handler_that_blocked_the_only_thread() {
    let (outside, logs) = (outside(), Logs::begin());
    let cluster = outside.block_on(Cluster::builder().listen().start());
    let cluster = cluster.expect("a cluster");
    let lease = Lease::new("shop")
        .duration(3 * SECOND)
        .renew_deadline(2 * SECOND)
        .retry_period(SECOND / 4);
    let (release, released) = mpsc::channel();
    let (called, calls) = mpsc::channel();
    // A runtime with one thread has no other for the election.
    let program = Builder::new_current_thread().enable_all().build();
    let program = program.expect("a runtime");
    let factory = program.block_on(factory(&cluster, lease, called, released));
    let leadership = factory.leadership().expect("an election");
    let subscriber = dispatcher::get_default(Clone::clone);
    let running = thread::spawn(move || {
        dispatcher::with_default(&subscriber, || {
            program.block_on(factory.run(2, std::future::pending::<()>()))
        })
    });
    outside.block_on(create(&cluster, "block"));
    while calls.recv_timeout(PATIENCE).expect("it is called") != "block" {}
    outside.block_on(async {
        until_logged(&logs, &["handler blocks its thread", "default/block"]).await;
        until(async || (!leadership.leads()).then_some(())).await;
        // The next renewal is later than its retry period by then.
        until_logged(&logs, &["handler blocks its thread", "lasts=1.6s"]).await;
    });
    release.send(()).expect("the handler waits");
    let error = running.join().expect("no panic").expect_err("it is lost");
    let text = lariat_core::describe(&error);
    assert!(text.contains("no renewal was attempted for"), "{text}");
    let named = "ConfigMap default/block (copy) block";
    assert!(text.contains(named), "{text}");
    outside.block_on(cluster.shutdown());
}
