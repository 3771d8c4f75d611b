//! A program that has every series, and a scrape of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Config;
use kube::api::{Api, DeleteParams, PostParams};
use lariat_client::{Http2, from_config};
use lariat_cluster::Cluster;
use lariat_console::{Console, ConsoleServer};
use lariat_controller::{Context, HandlerOptions, HandlerResult, Outcome, SharedControllerFactory};
use lariat_lease::{Lease, Sharding};
use lariat_operator::{Budget, Guard, Operator, Reconcile};
use lariat_testing::http::Client;
use serde_json::json;
use tokio::time;

const MINUTE: Duration = Duration::from_secs(60);

/// A program with a leader election, another factory in a ring, an operator, and handlers of which one fails.
pub(crate) struct Program {
    pub(crate) cluster: Cluster,
    pub(crate) operator: Operator,
    pub(crate) member: SharedControllerFactory,
    pub(crate) server: ConsoleServer,
    pub(crate) client: Client,
}

impl Program {
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::builder().listen().start().await.expect("a port");
        let url = cluster.url().expect("it listens");
        let config = Config::new(url.parse().expect("a URL"));
        let client = from_config(config, Http2::default()).await.expect("HTTP");
        let builder = SharedControllerFactory::builder(client.clone());
        let factory = builder
            .leader_election(Lease::new("shop").identity("one"))
            .build();
        let operator = Operator::new("shop", &factory);
        register(&operator);
        let ring = Sharding::new(Lease::new("ring").identity("one"));
        let member = SharedControllerFactory::builder(client)
            .sharding(ring)
            .build();
        let secrets = member.for_object::<Secret>();
        let idle = |_: Context<Secret>| async { HandlerResult::Ok(Outcome::done()) };
        secrets.register_handler("idle", idle).expect("registered");
        let console = Console::on("127.0.0.1:0")
            .with("", &operator)
            .with("ring", &member);
        let server = console.start().expect("a free port");
        let program = Self {
            client: Client::new(server.address()),
            cluster,
            operator,
            member,
            server,
        };
        program.run().await;
        program
    }

    async fn run(&self) {
        self.operator.start(2).await.expect("started");
        self.member.start(2).await.expect("started");
        let api = Api::<ConfigMap>::namespaced(self.cluster.client(), "default");
        for name in ["a", "b", "c"] {
            let map = serde_json::from_value(json!({"metadata": {"name": name}}));
            let map = map.expect("a ConfigMap");
            api.create(&PostParams::default(), &map)
                .await
                .expect("created");
        }
        let mut seen = None;
        let all = async {
            while seen != Some((true, Some(1.0), Some(1.0))) {
                time::sleep(Duration::from_millis(20)).await;
                let scrape = self.scrape().await;
                let failed = scrape.sum("lariat_handler_calls_total", &[("result", "failed")]);
                let tripped = scrape.sum("lariat_guard_tripped", &[]);
                let joined = scrape.sum("lariat_shard_joined", &[]);
                seen = Some((failed > Some(0.0), tripped, joined));
            }
        };
        let in_time = time::timeout(MINUTE, all).await;
        assert!(in_time.is_ok(), "failed, tripped, joined: {seen:?}");
    }

    pub(crate) async fn scrape(&self) -> Scrape {
        let client = self.client.with("accept", "application/openmetrics-text");
        let answer = client.get("/metrics").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        Scrape::of(&answer.text)
    }

    pub(crate) async fn stop(self) {
        self.operator.stop().await.expect("stopped");
        self.member.stop().await.expect("stopped");
        self.server.ended().await;
    }
}

/// Registers a handler that always fails, and a reconciler whose guard trips.
fn register(operator: &Operator) {
    let maps = operator.factory().for_object::<ConfigMap>();
    let fails = |_: Context<ConfigMap>| async { HandlerResult::Err("on purpose".into()) };
    let options = HandlerOptions::default().max_retries(2);
    maps.register_handler("fails", options.handler(fails))
        .expect("registered");
    let reap = |cx: Reconcile<ConfigMap>| async move {
        let api = Api::<ConfigMap>::namespaced(cx.client(), "default");
        api.delete("missing", &DeleteParams::default()).await?;
        Ok(Outcome::done())
    };
    let guard = Guard::new().deletes(Budget::rate(0, MINUTE));
    let reconciler = operator.reconciler("reap", &maps).guard(guard);
    reconciler.register(reap).expect("registered");
}

/// The families and series of a scrape in the format OpenMetrics.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    /// The type of each family; counters are named with `_total`.
    pub(crate) types: BTreeMap<String, String>,
    pub(crate) samples: Vec<Sample>,
}

#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    value: f64,
}

impl Scrape {
    fn of(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("# TYPE ") {
                let (name, of) = head.split_once(' ').expect("a type");
                let suffix = if of == "counter" { "_total" } else { "" };
                scrape
                    .types
                    .insert(format!("{name}{suffix}"), of.to_owned());
            } else if !line.starts_with('#') {
                scrape.samples.push(Sample::of(line));
            }
        }
        scrape
    }

    /// Returns the labels of a family's series, without the bounds of buckets.
    pub(crate) fn labels_of(&self, family: &str) -> BTreeSet<&str> {
        let of_family = |sample: &&Sample| {
            let suffix = sample.name.strip_prefix(family);
            suffix.is_some_and(|suffix| ["", "_bucket", "_sum", "_count"].contains(&suffix))
        };
        let samples = self.samples.iter().filter(of_family);
        let labels = samples.flat_map(|sample| sample.labels.keys().map(String::as_str));
        labels.filter(|label| *label != "le").collect()
    }

    /// Sums the series of a name that have these labels; none if there are none.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |sample: &Sample, (label, value): &(&str, &str)| {
            sample.labels.get(*label).is_some_and(|own| own == value)
        };
        let samples = self.samples.iter().filter(|sample| sample.name == name);
        let wanted = samples.filter(|sample| labels.iter().all(|label| has(sample, label)));
        wanted.map(|sample| sample.value).reduce(|a, b| a + b)
    }
}

impl Sample {
    fn of(line: &str) -> Self {
        let (name, rest) = line.split_once('{').expect("every series has labels");
        let (labels, value) = rest.rsplit_once("} ").expect("a value");
        // No label of the program contains a quote or a comma.
        let pairs = labels.split(',').map(|pair| {
            let (label, value) = pair.split_once('=').expect("a label");
            (label.to_owned(), value.trim_matches('"').to_owned())
        });
        Self {
            name: name.to_owned(),
            labels: pairs.collect(),
            value: value.parse().expect("a number"),
        }
    }
}
