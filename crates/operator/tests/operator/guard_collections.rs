//! Tests of guards with deletions of collections.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams};
use lariat_cache::Selection;
use lariat_core::Gvk;
use lariat_operator::{Budget, Guard};
use serde_json::json;

use crate::bench::{Bench, Widget};
use crate::guard::{Errors, MINUTE, left, run_once, with_widgets};

#[tokio::test(start_paused = true)]
async fn a_collection_counts_as_what_is_in_it() {
    let bench = with_widgets(10).await;
    for name in ["w00", "w01", "w02"] {
        bench
            .merge(name, json!({"metadata": {"labels": {"old": "yes"}}}))
            .await;
    }
    let guard = Guard::new().deletes(Budget::rate(5, MINUTE));
    let errors = Errors::default();
    let (noted, held) = (errors.clone(), guard.clone());
    run_once(&bench, &guard, move |cx| {
        let (noted, held) = (noted.clone(), held.clone());
        async move {
            if cx.key().name() != "a" {
                return;
            }
            let widgets: Api<Widget> = Api::namespaced(cx.client(), "default");
            let config_maps: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
            let (params, all) = (DeleteParams::default(), ListParams::default());
            let unknown = config_maps.delete_collection(&params, &all).await;
            assert!(noted.note(unknown.map(drop)));
            assert!(!held.state().is_tripped());
            let old = ListParams::default().labels("old=yes");
            let three = widgets.delete_collection(&params, &old).await;
            assert!(!noted.note(three.map(drop)));
            let eight = widgets.delete_collection(&params, &all).await;
            assert!(noted.note(eight.map(drop)));
        }
    })
    .await;
    let errors = errors.take();
    assert!(
        errors[0].contains("deletecollection v1 configmaps in default: the number of objects"),
        "{errors:?}"
    );
    assert!(errors[1].contains("3 of 5"), "{errors:?}");
    assert_eq!(left(&bench).await, 8);
    assert_eq!(
        bench
            .cluster
            .journal()
            .count("deletecollection", "configmaps"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_none_allows_no_collection_of_none() {
    let bench = Bench::new().await;
    let guard = Guard::new().deletes(Budget::rate(0, MINUTE));
    let errors = Errors::default();
    let noted = errors.clone();
    run_once(&bench, &guard, move |cx| {
        let noted = noted.clone();
        async move {
            let widgets: Api<Widget> = Api::namespaced(cx.client(), "default");
            let (params, old) = (
                DeleteParams::default(),
                ListParams::default().labels("old=yes"),
            );
            let none = widgets.delete_collection(&params, &old);
            noted.note(none.await.map(drop));
        }
    })
    .await;
    assert_eq!(errors.take().len(), 1);
    let journal = bench.cluster.journal();
    assert_eq!(journal.count("deletecollection", "widgets"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_collection_of_which_a_part_is_cached_is_refused() {
    let bench = Bench::new().await;
    let config_maps = bench
        .factory
        .caches()
        .for_kind(Gvk::new("", "v1", "ConfigMap"));
    config_maps.select(Selection::all().with_labels("app=other".parse().unwrap()));
    let (errors, guard) = (
        Errors::default(),
        Guard::new().deletes(Budget::rate(5, MINUTE)),
    );
    let noted = errors.clone();
    run_once(&bench, &guard, move |cx| {
        let noted = noted.clone();
        async move {
            let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
            let (params, all) = (DeleteParams::default(), ListParams::default());
            noted.note(api.delete_collection(&params, &all).await.map(drop));
        }
    })
    .await;
    assert!(config_maps.synced().await);
    let errors = errors.take();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].contains("no synced cache has all of them"),
        "{errors:?}"
    );
    let journal = bench.cluster.journal();
    assert_eq!(journal.count("deletecollection", "configmaps"), 0);
    assert!(!guard.state().is_tripped());
}
