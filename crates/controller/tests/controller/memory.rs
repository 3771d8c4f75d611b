//! The sizes and bounds of a factory's structures.

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_controller::{Context, HandlerError, HandlerResult};
use lariat_core::{Gvk, TableSize};

use crate::bench::{Bench, SECOND, key, settle};

/// Returns the report of a structure, of all kinds together.
fn of(bench: &Bench, what: &str) -> (usize, usize) {
    let all = bench.factory.table_sizes().into_iter();
    let chosen = all.filter(|each| each.name == what);
    chosen.fold((0, 0), |(entries, bound), each| {
        (entries + each.entries, bound + each.bound)
    })
}

fn exceeded(bench: &Bench) -> Vec<TableSize> {
    let mut all = bench.factory.table_sizes();
    all.retain(TableSize::is_exceeded);
    all
}

#[tokio::test(start_paused = true)]
async fn kinds_that_were_asked_for_and_never_used_are_forgotten() {
    let bench = Bench::new().await;
    let kind = |number: u32| Gvk::new("demo.dev", "v1", &format!("Kind{number}"));
    let handle = bench.factory.for_kind(kind(0));
    let calls = bench.record("log");
    for number in 1..10_000 {
        drop(bench.factory.for_kind(kind(number)));
    }
    let (entries, bound) = of(&bench, "controllers");
    assert!(entries <= 64 && entries <= bound, "{entries} of {bound}");
    // The one with a handle is the same controller still.
    handle.enqueue(&key("a"));
    assert!(bench.factory.for_kind(kind(0)).status().is_some());
    assert_eq!(calls.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_is_forgotten_with_its_keys_when_it_leaves() {
    let bench = Bench::new().await;
    let _calls = bench.record("log");
    let fail = |_: Context<ConfigMap>| async { HandlerResult::Err(HandlerError::from("not now")) };
    let failing = bench.config_maps.register_handler("fails", fail).unwrap();
    bench.start().await;
    for name in ["a", "b", "c"] {
        bench.config_maps.enqueue(&key(name));
    }
    settle().await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(of(&bench, "failing keys").0, 3);
    assert!(of(&bench, "runs").0 >= 3);
    assert_eq!(exceeded(&bench), []);
    failing.deregister().await;
    assert_eq!(of(&bench, "failing keys"), (0, 4096));
    assert_eq!(exceeded(&bench), []);
}
