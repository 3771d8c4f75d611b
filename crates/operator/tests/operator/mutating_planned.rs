//! Mutations in plans and under guards.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, PostParams};
use lariat_controller::Outcome;
use lariat_operator::{Budget, CachedApi, Guard, GuardError, Reconcile};
use serde_json::json;

use crate::bench::{Bench, Widget, settle};
use crate::mutating::{empty, set};
use crate::planning::{lines, plan};
use crate::reconciling::Log;

#[tokio::test(start_paused = true)]
async fn a_plan_shows_what_would_be_done() {
    let bench = Bench::new().await;
    let api = CachedApi::new(&bench.factory.for_object::<ConfigMap>());
    let log = Log::default();
    let seen = log.clone();
    let there: Api<ConfigMap> = Api::default_namespaced(bench.cluster.client());
    there
        .create(&PostParams::default(), &empty("b"))
        .await
        .unwrap();
    bench.create("a", 1).await;
    let operator = plan(&bench, move |cx: Reconcile<Widget>| {
        let (seen, api) = (seen.clone(), api.clone());
        async move {
            for name in ["a", "b"] {
                let config = empty(name);
                let done = api.create_or_patch(&config, |config| {
                    cx.set_controller(&mut config.metadata)?;
                    set("x", "1")(config)
                });
                seen.add(format!("{name} {}", done.await?.mutation));
            }
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    settle().await;
    assert_eq!(log.take(), ["a created", "b updated"]);
    let planned = lines(&operator.planned());
    let begins = |text: &str| planned.iter().any(|line| line.contains(text));
    assert!(begins("would create v1 ConfigMap default/a"), "{planned:?}");
    assert!(begins("would patch v1 ConfigMap default/b"), "{planned:?}");
    assert!(there.get_opt("a").await.unwrap().is_none());
    assert_eq!(there.get("b").await.unwrap().data, None);
}

#[tokio::test(start_paused = true)]
async fn a_guard_counts_what_is_sent_and_nothing_else() {
    let bench = Bench::new().await;
    let guard = Guard::new().creates(Budget::rate(1, crate::guard::MINUTE));
    let api = bench.operator.api::<Secret>();
    let log = Log::default();
    let seen = log.clone();
    bench.create("a", 1).await;
    let reconciler = bench
        .operator
        .reconciler("makes", &bench.widgets)
        .guard(guard);
    reconciler
        .register(move |cx: Reconcile<Widget>| {
            let (seen, api) = (seen.clone(), api.clone());
            async move {
                for name in ["one", "one", "two"] {
                    let secret: Secret = serde_json::from_value(
                        json!({"metadata": {"name": name, "namespace": cx.key().namespace()}}),
                    )?;
                    match api.create_or_update(&secret, |_| Ok(())).await {
                        Ok(done) => seen.add(format!("{name} {}", done.mutation)),
                        Err(error) => {
                            assert!(GuardError::find(&error).is_some(), "{error}");
                            seen.add(format!("{name} refused"));
                        }
                    }
                }
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    settle().await;
    assert_eq!(log.take(), ["one created", "one unchanged", "two refused"]);
}
