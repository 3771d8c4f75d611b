//! The fence of the lease: who is stopped by it, and where.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, PostParams};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{Context, HandlerError, Outcome, RunError, SharedControllerFactory};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{advance, sleep};

use crate::bench::{Bench, SECOND};
use crate::electing_bench::{Replica, elected};

async fn create(client: Client, name: &str) -> Result<(), String> {
    let api: Api<Secret> = Api::default_namespaced(client);
    let secret = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a Secret");
    let created = api.create(&PostParams::default(), &secret).await;
    created.map(drop).map_err(|error| error.to_string())
}

async fn exists(cluster: &Cluster, name: &str) -> bool {
    let api: Api<Secret> = Api::default_namespaced(cluster.client());
    api.get_opt(name).await.expect("read").is_some()
}

fn is_fenced(written: &Result<(), String>) -> bool {
    let fenced = |error: &String| error.contains("this process") && error.contains("default/shop");
    written.as_ref().is_err_and(fenced)
}

/// A leader whose handler passes each call's client to the test.
struct Leader {
    bench: Bench,
    factory: SharedControllerFactory,
    clients: mpsc::UnboundedReceiver<Client>,
    run: JoinSet<Result<(), RunError>>,
}

impl Leader {
    async fn start() -> Self {
        let bench = Bench::new().await;
        let factory = elected(&bench.cluster, "one").build();
        let (sender, clients) = mpsc::unbounded_channel();
        let passes = move |cx: Context<ConfigMap>| {
            let sender = sender.clone();
            async move {
                let _ = sender.send(cx.client());
                Ok::<_, HandlerError>(Outcome::done())
            }
        };
        let config_maps = factory.for_object::<ConfigMap>();
        config_maps
            .register_handler("passes", passes)
            .expect("registered");
        bench.create("a").await;
        let mut leader = Self {
            bench,
            factory,
            clients,
            run: JoinSet::new(),
        };
        leader.run();
        leader
    }

    fn run(&mut self) {
        let factory = self.factory.clone();
        self.run
            .spawn(async move { factory.run(1, std::future::pending::<()>()).await });
    }

    /// Returns the client of the next call.
    async fn client(&mut self) -> Client {
        self.clients.recv().await.expect("the handler exists")
    }

    /// Cuts the leader off until its run has ended.
    async fn lose(&mut self) {
        let rule = self.bench.cluster.faults().block_leases("one");
        let ended = self.run.join_next().await.expect("it runs");
        ended.expect("no panic").expect_err("the lease is lost");
        self.bench.cluster.faults().remove(rule);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_of_suspended_leader_is_not_sent() {
    let mut leader = Leader::start().await;
    let client = leader.client().await;
    let cluster = &leader.bench.cluster;
    let busy = Action::Refuse(Refusal::too_many_requests());
    let rule = Rule::new(busy).resource("secrets").verb("create").times(1);
    let rule = cluster.faults().add(rule);
    let mut writing = JoinSet::new();
    writing.spawn(create(client, "late"));
    while cluster.faults().hits(rule) == 0 {
        sleep(SECOND / 1000).await;
    }
    // The retry is due before the timers of the election.
    advance(20 * SECOND).await;
    let written = writing.join_next().await.expect("one").expect("no panic");
    assert!(is_fenced(&written), "{written:?}");
    assert!(!exists(cluster, "late").await);
}

#[tokio::test(start_paused = true)]
async fn request_in_flight_is_aborted_at_deadline_of_lease() {
    let mut leader = Leader::start().await;
    let client = leader.client().await;
    let silent = Action::DelayReply(300 * SECOND);
    let silent = Rule::new(silent).resource("secrets").verb("create");
    leader.bench.cluster.faults().add(silent);
    let mut writing = JoinSet::new();
    writing.spawn(create(client, "late"));
    leader.lose().await;
    let written = writing.join_next().await.expect("one").expect("no panic");
    assert!(is_fenced(&written), "{written:?}");
    assert!(written.is_err_and(|error| error.contains("was aborted")));
}

/// The ways in which a handler may leave its task.
#[tokio::test(start_paused = true)]
async fn client_of_call_is_fenced_on_any_task() {
    let mut leader = Leader::start().await;
    let client = leader.client().await;
    create(client.clone(), "early").await.expect("it leads");
    leader.lose().await;
    let mut set = JoinSet::new();
    for name in ["spawned", "one", "two"] {
        set.spawn(create(client.clone(), name));
    }
    for written in set.join_all().await {
        assert!(is_fenced(&written));
    }
    let handle = tokio::runtime::Handle::current();
    let blocking = client.clone();
    let blocking = move || handle.block_on(create(blocking, "blocking"));
    let written = tokio::task::spawn_blocking(blocking).await;
    assert!(is_fenced(&written.expect("no panic")));
    let cluster = &leader.bench.cluster;
    assert!(exists(cluster, "early").await);
    for name in ["spawned", "one", "two", "blocking"] {
        assert!(!exists(cluster, name).await, "{name}");
    }
}

/// A task that a handler spawned goes on while another process leads.
#[tokio::test(start_paused = true)]
async fn spawned_task_does_not_write_while_successor_leads() {
    let mut leader = Leader::start().await;
    let client = leader.client().await;
    let cluster = &leader.bench.cluster;
    cluster.faults().block_leases("one");
    let successor = Replica::start(cluster, "two");
    let mut writing = JoinSet::new();
    writing.spawn(async move {
        sleep(40 * SECOND).await;
        create(client, "late").await
    });
    let written = writing.join_next().await.expect("one").expect("no panic");
    assert!(successor.leads());
    assert!(is_fenced(&written), "{written:?}");
    assert!(!exists(cluster, "late").await);
}

#[tokio::test(start_paused = true)]
async fn client_of_earlier_term_stays_fenced_in_next_term() {
    let mut leader = Leader::start().await;
    let old = leader.client().await;
    let of_factory = leader.factory.client();
    let term = leader.factory.leadership().expect("elected").term();
    leader.lose().await;
    leader.run();
    let new = {
        leader.bench.create("b").await;
        leader.client().await
    };
    assert!(leader.factory.leadership().expect("elected").leads());
    assert!(!term.leads());
    term.over().await;
    assert!(is_fenced(&create(old, "old").await));
    create(new, "new").await.expect("it is of this term");
    create(of_factory, "factory")
        .await
        .expect("it follows the terms");
    assert!(!exists(&leader.bench.cluster, "old").await);
}

#[tokio::test(start_paused = true)]
async fn signature_differs_in_each_term() {
    let mut leader = Leader::start().await;
    let leadership = leader.factory.leadership().expect("elected");
    let mut signatures = Vec::new();
    for name in ["b", "c", "d"] {
        drop(leader.client().await);
        signatures.extend(leadership.signature());
        leader.lose().await;
        leader.bench.create(name).await;
        leader.run();
    }
    let expected = ["default/shop#0", "default/shop#1", "default/shop#2"];
    assert_eq!(
        signatures.iter().map(|it| &**it).collect::<Vec<_>>(),
        expected
    );
}

#[tokio::test(start_paused = true)]
async fn client_of_factory_is_fenced_unless_process_leads() {
    let bench = Bench::new().await;
    let one = Replica::start(&bench.cluster, "one");
    sleep(SECOND).await;
    let two = Replica::start(&bench.cluster, "two");
    sleep(SECOND).await;
    assert!(one.leads() && !two.leads());
    create(one.factory.client(), "leader")
        .await
        .expect("it leads");
    let kind = two.factory.for_object::<ConfigMap>().client();
    for client in [two.factory.client(), kind.client()] {
        assert!(is_fenced(&create(client, "standby").await));
    }
    create(two.factory.unfenced_client(), "everywhere")
        .await
        .expect("no lease is needed");
}

/// The write of a handler is attributed to it on any task.
#[tokio::test(start_paused = true)]
async fn write_of_spawned_task_is_attributed_to_handler() {
    let bench = Bench::new().await;
    let causes = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&causes);
    let spawns = move |cx: Context<ConfigMap>| {
        let noted = Arc::clone(&noted);
        async move {
            noted
                .lock()
                .push(format!("{} because {}", cx.key().name(), cx.causes()));
            if cx.key().name() == "a" {
                let api: Api<ConfigMap> = Api::default_namespaced(cx.client());
                let map = serde_json::from_value(json!({"metadata": {"name": "b"}}));
                let map: ConfigMap = map.expect("a ConfigMap");
                let mut set = JoinSet::new();
                set.spawn(async move { api.create(&PostParams::default(), &map).await });
                set.join_next().await.expect("one").expect("no panic")?;
            }
            Ok::<_, HandlerError>(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("spawns", spawns)
        .expect("registered");
    bench.create("a").await;
    bench.start().await;
    crate::bench::settle().await;
    let causes = causes.lock().clone();
    let of_b = causes
        .iter()
        .find(|line| line.starts_with("b "))
        .expect("it was handled");
    assert!(of_b.contains("spawns"), "{of_b}");
}
