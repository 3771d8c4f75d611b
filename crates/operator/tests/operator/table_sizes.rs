//! Tests of what an operator remembers and forgets.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, ObjectMeta};
use lariat_controller::{HandlerResult, Outcome};
use lariat_core::TableSize;
use lariat_operator::{Budget, Desired, Event, Finalizer, Guard, Reconcile};
use tokio::time;

use crate::bench::{Bench, SECOND, Widget};

/// Applies a set, and publishes an event.
async fn stock(cx: Reconcile<Widget>) -> HandlerResult {
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: Some(cx.key().name().to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    cx.apply_set("stock")
        .apply(Desired::new().with(&child))
        .await?;
    cx.event(Event::normal("Stocked", "there is one"));
    Ok(Outcome::done())
}

/// Returns the sizes of all structures; none exceeds its bound.
fn entries(bench: &Bench) -> BTreeMap<&'static str, usize> {
    let all = bench.operator.table_sizes();
    assert!(!all.iter().any(TableSize::is_exceeded), "{all:?}");
    all.iter().map(|each| (each.name, each.entries)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_objects_goes_with_them() {
    let bench = Bench::new().await;
    let budget = Budget::rate(10_000, Duration::from_secs(60));
    let registration = bench
        .operator
        .reconciler("stocks", &bench.widgets)
        .owns(&bench.factory.for_object::<ConfigMap>())
        .finalizer(Finalizer::new("demo.dev/stock"), |_| async {
            Ok(Outcome::done())
        })
        .guard(Guard::new().writes(budget))
        .register(stock)
        .unwrap();
    bench.start().await;
    for number in 0..100 {
        bench.create(&format!("w{number}"), 1).await;
    }
    time::sleep(10 * SECOND).await;
    let known = entries(&bench);
    assert_eq!((known["owners of sets"], known["applied kinds"]), (100, 1));
    assert_eq!((known["guard windows"], known["cleaned objects"]), (1, 0));
    assert!(known["events"] >= 100, "{known:?}");

    let (delete, all) = (DeleteParams::default(), ListParams::default());
    bench.api.delete_collection(&delete, &all).await.unwrap();
    time::sleep(10 * SECOND).await;
    assert!(bench.get("w1").await.is_none());
    let known = entries(&bench);
    assert_eq!((known["owners of sets"], known["cleaned objects"]), (0, 0));

    bench.create("last", 1).await;
    time::sleep(SECOND).await;
    assert_eq!(entries(&bench)["owners of sets"], 1);
    registration.deregister().await;
    let known = entries(&bench);
    for gone in ["owners of sets", "guard windows", "cleaned objects"] {
        assert!(!known.contains_key(gone), "{gone}: {known:?}");
    }
}
