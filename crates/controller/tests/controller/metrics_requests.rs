//! Series about requests, leases and rings.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::metrics;
use lariat_controller::metrics::prometheus_client::registry::Registry;
use lariat_controller::{Outcome, SharedControllerFactory};
use serde_json::json;
use tokio::time::sleep;

use crate::bench::{Bench, SECOND, settle};
use crate::electing_bench::Replica;
use crate::exposition::{Exposition, KIND, registry_of, scrape};
use crate::sharding_bench::Program;

/// Sends requests through the client of a factory: answered, missing, refused and without an answer.
async fn send_requests(bench: &Bench) {
    let api: Api<ConfigMap> = Api::namespaced(bench.factory.client(), "default");
    let object = serde_json::from_value(json!({"metadata": {"name": "a"}})).expect("it is one");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created");
    assert!(api.get_opt("missing").await.expect("answered").is_none());
    let refused = Refusal::new(StatusCode::TOO_MANY_REQUESTS).retry_after(SECOND);
    let rule = Rule::new(Action::Refuse(refused)).verb("create");
    bench.cluster.faults().add(rule.times(1));
    let object = serde_json::from_value(json!({"metadata": {"name": "b"}})).expect("it is one");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created");
    let cut = Rule::new(Action::Disconnect).verb("get").times(1);
    bench.cluster.faults().add(cut);
    assert!(api.get("a").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn requests_count_by_result_each_attempt_for_itself() {
    let bench = Bench::new().await;
    bench.record("log");
    bench.start().await;
    send_requests(&bench).await;
    settle().await;
    let exposition = scrape(&registry_of(&bench));
    let of = |method, code| {
        let labels = [("method", method), ("code", code), ("host", "")];
        exposition.sum("rest_client_requests_total", &labels)
    };
    assert_eq!(
        (of("POST", "201"), of("POST", "429")),
        (Some(2.0), Some(1.0)),
        "the refused creation was sent again"
    );
    assert_eq!(of("GET", "404"), Some(1.0));
    assert_eq!(of("GET", "<error>"), Some(1.0));
    assert_eq!(of("GET", "200"), Some(1.0), "the watch list");
    assert_eq!(of("DELETE", "200"), None);
    let all = exposition.sum("rest_client_requests_total", &[]);
    let timed = exposition.sum("rest_client_request_duration_seconds_count", &[]);
    assert_eq!(timed, all);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_timed_to_the_head_of_its_answer_alone() {
    let bench = Bench::new().await;
    bench.record("log");
    bench.start().await;
    sleep(30 * SECOND).await;
    let exposition = scrape(&registry_of(&bench));
    let seconds = exposition.sum("rest_client_request_duration_seconds_sum", &[]);
    assert!(seconds.is_some_and(|seconds| seconds < 1.0), "{seconds:?}");
    let labels = [("verb", "GET"), ("le", "60.0")];
    let name = "rest_client_request_duration_seconds_bucket";
    let within = exposition.sum(name, &labels);
    let count = exposition.sum("rest_client_request_duration_seconds_count", &[]);
    assert_eq!(within, count);
}

#[tokio::test(start_paused = true)]
async fn a_cache_counts_received_bytes_and_reads_without_a_decode() {
    let bench = Bench::new().await;
    bench.on("log", |_| async { Ok(Outcome::done()) });
    bench.start().await;
    let registry = registry_of(&bench);
    let of = |name: &str| scrape(&registry).sum(name, &[KIND]).expect("exported");
    let before = of("lariat_reflector_received_bytes_total");
    let text = "x".repeat(10_000);
    bench
        .apply(json!({"metadata": {"name": "a"}, "data": {"text": text}}))
        .await;
    settle().await;
    let received = of("lariat_reflector_received_bytes_total") - before;
    assert!((10_000.0..12_000.0).contains(&received), "{received}");
    let (decodes, hits) = (
        of("lariat_cache_decodes_total"),
        of("lariat_cache_hits_total"),
    );
    let key = crate::bench::key("a");
    let first = bench.config_maps.cache().get(&key).expect("it decodes");
    let again = bench.config_maps.cache().get(&key).expect("it decodes");
    assert_eq!(first, again);
    let decoded = of("lariat_cache_decodes_total") - decodes;
    let hit = of("lariat_cache_hits_total") - hits;
    assert_eq!((decoded + hit, hit >= 1.0), (2.0, true));
}

fn of_factory(factory: &SharedControllerFactory) -> Exposition {
    let mut registry = Registry::default();
    metrics::register(&mut registry, factory);
    scrape(&registry)
}

#[tokio::test(start_paused = true)]
async fn one_of_two_replicas_leads_and_its_lease_is_renewed() {
    let bench = Bench::new().await;
    let mut one = Replica::start(&bench.cluster, "one");
    sleep(SECOND).await;
    let two = Replica::start(&bench.cluster, "two");
    sleep(60 * SECOND).await;
    let of = |replica: &Replica, name| {
        let exposition = of_factory(&replica.factory);
        exposition.sum(name, &[("name", "shop"), ("ctx", "")])
    };
    let leads = "leader_election_master_status";
    assert_eq!((of(&one, leads), of(&two, leads)), (Some(1.0), Some(0.0)));
    let renewals = "lariat_lease_renewals_total";
    let counts = (of(&one, renewals), of(&two, renewals));
    assert!(counts.0 > Some(20.0), "{counts:?}");
    assert_eq!(counts.1, Some(0.0));
    let slow = "leader_election_slowpath_total";
    assert_eq!((of(&one, slow), of(&two, slow)), (Some(0.0), Some(0.0)));
    assert_eq!(of(&one, "lariat_shard_members"), None);
    let puts = of_factory(&one.factory).sum("rest_client_requests_total", &[("method", "PUT")]);
    assert_eq!(puts, counts.0, "requests about the lease are counted too");
    one.stop().await.expect("stopped");
    sleep(SECOND).await;
    assert_eq!((of(&one, leads), of(&two, leads)), (Some(0.0), Some(1.0)));
    let acquired = "lariat_lease_acquired_total";
    assert_eq!(
        (of(&one, acquired), of(&two, acquired)),
        (Some(1.0), Some(1.0))
    );
}

#[tokio::test(start_paused = true)]
async fn members_of_a_ring_say_that_they_have_joined_and_see_each_other() {
    let bench = Bench::new().await;
    let program = Program::new(&bench.cluster);
    let one = program.start("one");
    let two = program.start("two");
    sleep(60 * SECOND).await;
    for replica in [&one, &two] {
        let exposition = of_factory(&replica.factory);
        let of = |name| exposition.sum(name, &[("name", "shop")]);
        assert_eq!(of("lariat_shard_joined"), Some(1.0));
        assert_eq!(of("lariat_shard_members"), Some(2.0));
        assert_eq!(of("leader_election_master_status"), None);
    }
    bench.cluster.faults().blackhole("two");
    sleep(Duration::from_secs(60)).await;
    let of = |name| of_factory(&two.factory).sum(name, &[]);
    assert_eq!(of("lariat_shard_joined"), Some(0.0));
    assert_eq!(of("lariat_shard_members"), Some(0.0));
}
