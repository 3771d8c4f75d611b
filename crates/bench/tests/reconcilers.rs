//! The two programs of `docs/migrating-from-kube-rs.md`, in requests. `--no-capture` prints the table in that page.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::{Client, CustomResourceExt};
use lariat_cache::{ClientIdentity, SharedClientFactory};
use lariat_cluster::faults::{Action, Rule};
use lariat_cluster::testing::{TestCluster, deployment, wait_for, wait_for_condition};
use lariat_cluster::{Cluster, Workloads};
use tokio::task::JoinSet;
use tokio::time::sleep;

#[path = "../../../docs/reconciler/kube_rs.rs"]
#[allow(unreachable_pub, reason = "it reads as a program does")]
#[expect(
    clippy::disallowed_methods,
    reason = "it has no part of Lariat, and no clock of it"
)]
mod kube_rs;
#[path = "../../../docs/reconciler/lariat.rs"]
#[allow(unreachable_pub, reason = "it reads as a program does")]
mod lariat_rs;

use lariat_rs::{Foo, FooSpec, FooStatus};

/// How many Foos there are.
const FOOS: usize = 50;
const MINUTE: Duration = Duration::from_secs(60);

/// What a program asked for, to its Foos, Deployments and Events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Requests {
    writes: usize,
    /// Single objects, and lists that are no part of a watch.
    reads: usize,
}

struct Bench {
    cluster: TestCluster,
    foos: Api<Foo>,
    _program: JoinSet<()>,
}

impl Bench {
    /// Runs a program on a cluster of its own, which runs Deployments.
    async fn new<F>(program: impl FnOnce(Client) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let builder = Cluster::builder().simulate_workloads(Workloads::default());
        let cluster = builder.for_test().await;
        let crds: Api<CustomResourceDefinition> = Api::all(cluster.client());
        let defined = crds.create(&PostParams::default(), &Foo::crd()).await;
        defined.expect("defined");
        let established = wait_for_condition(&crds, "foos.demo.dev", "Established").await;
        established.expect("established");
        // Distinguished from the test's own requests by its name.
        let clients = SharedClientFactory::new(cluster.client());
        let client = clients.client_as(ClientIdentity::default().user_agent("program"));
        let mut running = JoinSet::new();
        running.spawn(program(client.expect("the name is a header")));
        Self {
            foos: Api::default_namespaced(cluster.client()),
            _program: running,
            cluster,
        }
    }

    async fn create(&self, name: &str, deployment: &str) {
        let spec = FooSpec {
            deployment_name: deployment.to_owned(),
            replicas: 1,
        };
        let created = self
            .foos
            .create(&PostParams::default(), &Foo::new(name, spec))
            .await;
        created.expect("created");
    }

    /// Creates all Foos, and waits until each says that its Deployment is available.
    async fn fill(&self) {
        for n in 0..FOOS {
            self.create(&format!("foo-{n}"), &format!("web-{n}")).await;
        }
        for n in 0..FOOS {
            self.ready(&format!("foo-{n}"), "True").await;
        }
        sleep(MINUTE).await;
    }

    async fn ready(&self, name: &str, status: &str) {
        let is_reported = |reported: &FooStatus| {
            let ready = reported
                .conditions
                .iter()
                .find(|condition| condition.type_ == "Ready");
            ready.is_some_and(|ready| ready.status == status)
                && (status != "True" || reported.available_replicas == 1)
        };
        let reported = |foo: &Foo| foo.status.as_ref().is_some_and(is_reported);
        wait_for(&self.foos, name, reported)
            .await
            .expect("it says so");
    }

    /// Counts what the program asks for while something happens.
    async fn during(&self, what: impl Future<Output = ()>) -> Requests {
        let mark = self.cluster.journal().mark();
        what.await;
        let journal = self.cluster.journal();
        let asked = journal.select().since(mark).client("program").requests();
        let count = |verbs: &[&str]| {
            let is_one = |verb: &str| verbs.contains(&verb);
            asked.iter().filter(|request| is_one(&request.verb)).count()
        };
        Requests {
            writes: count(&["create", "update", "patch", "delete"]),
            reads: count(&["get", "list"]),
        }
    }

    /// Cuts all watches, and answers the next of each kind that its version is too old, so that everything is listed
    /// again.
    async fn relist(&self) {
        for resource in ["foos", "deployments"] {
            let expired = Rule::new(Action::Expire).verb("watch").resource(resource);
            self.cluster.faults().add(expired.times(1));
        }
        self.cluster.cut_watches();
        sleep(MINUTE).await;
    }

    /// A Foo whose Deployment has another owner, for ten minutes.
    async fn stand_in_the_way(&self) {
        let other = deployment("taken", 1);
        other.create(&self.cluster.client()).await.expect("created");
        self.create("late", "taken").await;
        self.ready("late", "False").await;
        sleep(10 * MINUTE).await;
    }
}

/// What is counted of a program.
struct Counted {
    watches: usize,
    filling: Requests,
    relisting: Requests,
    in_the_way: Requests,
}

async fn count<F>(program: impl FnOnce(Client) -> F) -> Counted
where
    F: Future<Output = ()> + Send + 'static,
{
    let bench = Bench::new(program).await;
    let filling = bench.during(bench.fill()).await;
    let relisting = bench.during(bench.relist()).await;
    let in_the_way = bench.during(bench.stand_in_the_way()).await;
    let watches = bench.cluster.journal();
    Counted {
        watches: watches.count("watch", "deployments"),
        filling,
        relisting,
        in_the_way,
    }
}

#[tokio::test(start_paused = true)]
async fn reconcilers_ask_for_nothing_after_their_watches_are_cut() {
    let ours = count(|client| async { lariat_rs::run(client).await.expect("it runs") }).await;
    let theirs = count(kube_rs::run).await;
    for (name, counted) in [("lariat", &ours), ("kube-rs", &theirs)] {
        println!("{name}: {} watches of Deployments", counted.watches);
        println!("  {FOOS} Foos: {:?}", counted.filling);
        println!("  everything is listed again: {:?}", counted.relisting);
        println!(
            "  a Foo that cannot be, for ten minutes: {:?}",
            counted.in_the_way
        );
    }
    // A note of the kinds, the Deployment, an Event, and the status as it goes.
    assert!(ours.filling.writes <= 6 * FOOS, "{:?}", ours.filling);
    // Watches list everything again; nothing else is read.
    let none = Requests {
        writes: 0,
        reads: 0,
    };
    assert_eq!(ours.relisting, none);
}
