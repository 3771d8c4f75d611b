//! Series begin and end with their handlers, kinds, caches and factories.

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use lariat_controller::metrics::Collector;
use lariat_controller::metrics::prometheus_client::encoding::text;
use lariat_controller::metrics::prometheus_client::registry::Registry;
use lariat_controller::{HandlerOptions, Outcome, Relation};
use serde_json::json;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, SECOND, recorder, settle};
use crate::exposition::{KIND, SHAPE, registry_of, scrape, shape};

#[tokio::test(start_paused = true)]
async fn a_removed_handler_has_no_series_but_still_counts_for_its_kind() {
    let bench = Bench::new().await;
    let registry = registry_of(&bench);
    let (_, handler) = recorder(|_| async {
        time::sleep(10 * SECOND).await;
        Err("never".into())
    });
    let goes = bench.config_maps.register_handler("goes", handler).unwrap();
    bench.record("stays");
    bench.start().await;
    bench.create("a").await;
    bench.create("b").await;
    time::sleep(5 * SECOND).await;
    let exposition = scrape(&registry);
    let handlers = exposition.values_of("handler");
    assert_eq!(Vec::from_iter(handlers), ["goes", "stays"]);
    // Both calls are under way, and are counted when they end.
    goes.deregister().await;
    settle().await;
    let exposition = scrape(&registry);
    assert_eq!(Vec::from_iter(exposition.values_of("handler")), ["stays"]);
    assert_eq!(
        Vec::from_iter(exposition.values_of("handler_name")),
        ["stays"]
    );
    let results = |result| {
        let labels = [("result", result)];
        exposition.sum("controller_runtime_reconcile_total", &labels)
    };
    assert_eq!(
        (results("error"), results("success")),
        (Some(2.0), Some(2.0))
    );
    let times = exposition.sum("controller_runtime_reconcile_time_seconds_sum", &[]);
    assert_eq!(times.map(f64::round), Some(20.0));
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_token_is_cancelled_has_no_series() {
    let bench = Bench::new().await;
    let registry = registry_of(&bench);
    let scope = CancellationToken::new();
    bench.record_with("scoped", HandlerOptions::default().until(scope.clone()));
    bench.record("others");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    scope.cancel();
    settle().await;
    let exposition = scrape(&registry);
    assert_eq!(Vec::from_iter(exposition.values_of("handler")), ["others"]);
    assert_eq!(
        exposition.sum("controller_runtime_reconcile_total", &[]),
        Some(2.0)
    );
}

#[tokio::test(start_paused = true)]
async fn cached_objects_are_counted_until_the_cache_is_given_up() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(5 * SECOND))).await;
    let registry = registry_of(&bench);
    let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let only = bench.config_maps.register_handler("only", handler).unwrap();
    let objects = || {
        let labels = [("group", ""), ("version", "v1"), ("kind", "ConfigMap")];
        scrape(&registry).sum("lasso_controller_total_cached_object", &labels)
    };
    let adds = || scrape(&registry).sum("workqueue_adds_total", &[]);
    bench.start().await;
    assert_eq!(objects(), Some(0.0));
    bench.create("a").await;
    settle().await;
    assert_eq!((objects(), adds()), (Some(1.0), Some(1.0)));
    bench.delete("a").await;
    settle().await;
    assert_eq!((objects(), adds()), (Some(0.0), Some(2.0)));
    only.deregister().await;
    assert_eq!(adds(), None, "the kind has no handler");
    assert_eq!(objects(), Some(0.0), "it is cached for some time yet");
    time::sleep(10 * SECOND).await;
    assert_eq!(objects(), None);
    let exposition = scrape(&registry);
    let mut left = exposition.families.iter().map(|family| &family.name);
    assert!(left.all(|name| name.starts_with("rest_client_")));
    bench.record("again");
    settle().await;
    assert_eq!(scrape(&registry).values_of("handler").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_only_watched_for_another_has_a_cache_and_no_queue() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let reads = Relation::map(|_: &Secret| Vec::new());
    bench.config_maps.watch_related(&secrets, reads);
    bench.record("log");
    bench.start().await;
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret = serde_json::from_value(json!({"metadata": {"name": "s"}}));
    api.create(&Default::default(), &secret.unwrap())
        .await
        .unwrap();
    settle().await;
    let exposition = scrape(&registry_of(&bench));
    let of = |name, kind| exposition.sum(name, &[("kind", kind)]);
    assert_eq!(of("lariat_cache_objects", "v1 Secret"), Some(1.0));
    assert_eq!(of("lariat_cache_decodes_total", "v1 Secret"), Some(1.0));
    assert_eq!(of("lariat_reflector_synced", "v1 Secret"), Some(1.0));
    assert_eq!(
        Vec::from_iter(exposition.values_of("name")),
        ["v1 ConfigMap"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_factory_leaves_nothing_and_is_not_kept() {
    let bench = Bench::new().await;
    bench.record("log");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let registry = registry_of(&bench);
    let Bench {
        factory,
        config_maps,
        ..
    } = bench;
    drop(factory);
    let mut body = String::new();
    text::encode(&mut body, &registry).unwrap();
    assert_eq!(
        body, "# EOF\n",
        "a handle of a controller is not its factory"
    );
    drop(config_maps);
}

#[tokio::test(start_paused = true)]
async fn factories_in_one_registry_have_their_own_series_and_the_newest_of_a_name_counts() {
    let (local, remote, newer) = (Bench::new().await, Bench::new().await, Bench::new().await);
    let collector = Collector::new();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector.clone()));
    for (bench, context, objects) in [(&local, "local", 1), (&remote, "remote", 2)] {
        bench.record("log");
        bench.start().await;
        for number in 0..objects {
            bench.create(&format!("o{number}")).await;
        }
        collector.add(context, &bench.factory);
    }
    settle().await;
    let objects = |context| {
        let labels = [("ctx", context), KIND];
        scrape(&registry).sum("lariat_cache_objects", &labels)
    };
    assert_eq!(
        (objects("local"), objects("remote")),
        (Some(1.0), Some(2.0))
    );
    let exposition = scrape(&registry);
    assert_eq!(shape(&exposition), SHAPE, "each family is there once");

    newer.record("log");
    newer.start().await;
    collector.add("remote", &newer.factory);
    assert_eq!(
        (objects("local"), objects("remote")),
        (Some(1.0), Some(0.0))
    );
    drop(local);
    assert_eq!((objects("local"), objects("remote")), (None, Some(0.0)));
    assert_eq!(
        format!("{collector:?}"),
        r#"Collector { contexts: ["remote"] }"#
    );
}
