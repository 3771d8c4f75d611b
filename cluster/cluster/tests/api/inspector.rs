//! What a cluster shows of itself, beside all requests.

use std::time::Duration;

use http::{Method, StatusCode};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_cluster::{Cluster, ResourceCount, User};
use serde_json::json;
use tokio::time::sleep;

use crate::bench::{Bench, CONFIG_MAPS};

fn count(bench: &Bench, resource: &str) -> Option<ResourceCount> {
    let resources = bench.cluster.inspector().resources();
    resources
        .into_iter()
        .find(|count| count.resource == resource)
}

#[tokio::test(start_paused = true)]
async fn objects_are_counted_by_kind_and_namespace() {
    let bench = Bench::with_history(3).await;
    assert_eq!(
        count(&bench, "configmaps"),
        None,
        "it has neither objects nor a history"
    );
    for name in ["a", "b"] {
        bench.config_map(name, json!({})).await;
    }
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
    bench
        .post(elsewhere, &json!({"metadata": {"name": "c"}}))
        .await;
    let counted = count(&bench, "configmaps").expect("there are some");
    assert_eq!(
        (&*counted.group, &*counted.kind, counted.objects),
        ("", "ConfigMap", 3)
    );
    let namespaces: Vec<(&str, usize)> = counted
        .namespaces
        .iter()
        .map(|(name, count)| (&**name, *count))
        .collect();
    assert_eq!(namespaces, [("default", 2), ("kube-system", 1)]);
    assert!(counted.bytes > 300, "{counted:?}");
    assert_eq!(counted.changes, 3);
    for name in ["a", "b"] {
        bench.delete(&format!("{CONFIG_MAPS}/{name}")).await;
    }
    let counted = count(&bench, "configmaps").expect("one is left");
    assert_eq!((counted.objects, counted.changes), (1, 3));
    assert_eq!(bench.cluster.inspector().history(), 3);
    assert!(counted.oldest < bench.cluster.inspector().revision());
    bench.cluster.faults().expire_history();
    let counted = count(&bench, "configmaps").expect("one is left");
    assert_eq!(
        (counted.changes, counted.oldest),
        (0, bench.cluster.revision())
    );
    let cluster_wide = count(&bench, "namespaces").expect("there are some");
    assert_eq!(
        cluster_wide.namespaces.keys().collect::<Vec<_>>(),
        [""],
        "they are in no namespace"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_shown_while_it_is_open() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let inspector = bench.cluster.inspector();
    let path = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true");
    let mut watch = bench.watch_with(&path, &[("user-agent", "shop/1")]).await;
    let _all = bench.watch("/apis/apps/v1/deployments?watch=1").await;
    watch.event().await;
    sleep(Duration::from_secs(5)).await;
    bench.config_map("b", json!({})).await;
    // A bookmark comes before it, which does not count.
    assert_eq!(watch.shorts(2).await, ["BOOKMARK -", "ADDED b"]);
    let watches = inspector.watches();
    let [first, second] = &watches[..] else {
        panic!("{watches:?}");
    };
    assert_eq!(
        (&*first.kind, &*first.client, &*first.user, first.sent),
        ("ConfigMap", "shop/1", "kubernetes-admin", 2)
    );
    assert_eq!(first.namespace.as_deref(), Some("default"));
    assert_eq!(first.age, Duration::from_secs(5));
    assert_eq!(
        (&*second.group, &*second.resource, second.sent),
        ("apps", "deployments", 0)
    );
    assert_eq!(second.namespace, None);
    assert!(first.id < second.id);
    bench.cluster.faults().cut_watches();
    while let Ok(Some(_)) = watch.line().await {}
    drop(watch);
    let open = inspector.watches();
    let ids: Vec<u64> = open.iter().map(|watch| watch.id).collect();
    assert_eq!(ids, [second.id]);
}

#[tokio::test(start_paused = true)]
async fn the_journal_knows_who_asked_and_how_long_it_took() {
    let cluster = Cluster::builder()
        .token_of("t", User::new("jane"))
        .rbac()
        .journal(3)
        .start();
    let bench = Bench {
        cluster: cluster.await.expect("a cluster without a socket starts"),
    };
    bench.get(CONFIG_MAPS).await;
    let delay = Action::Delay(Duration::from_secs(2));
    bench.cluster.faults().add(Rule::new(delay).verb("get"));
    let ask = |path: String, token: &'static str| {
        let bench = &bench;
        async move {
            let headers = [("authorization", token)];
            bench.ask(Method::GET, &path, &headers, "").await.code
        }
    };
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(
        ask(path.clone(), "Bearer t").await,
        StatusCode::FORBIDDEN,
        "its user may do nothing, and is known"
    );
    assert_eq!(ask(path, "Bearer x").await, StatusCode::UNAUTHORIZED);
    bench
        .cluster
        .faults()
        .add(Rule::new(Action::Disconnect).verb("list"));
    assert!(
        bench
            .try_ask(Method::GET, CONFIG_MAPS, &[], "")
            .await
            .is_err()
    );
    let journal = bench.cluster.journal();
    let two = Some(Duration::from_secs(2));
    let expected = [("jane", two), ("", two), ("", None)];
    let last = journal.last(10);
    let known: Vec<_> = last
        .iter()
        .map(|request| (&*request.user, request.took))
        .collect();
    assert_eq!(known, expected, "the first is forgotten");
    assert_eq!((journal.total(), journal.capacity()), (4, 3));
    assert_eq!(journal.last(1), last[2..]);
    let numbers: Vec<u64> = last.iter().map(|request| request.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(journal.now(), Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn rules_are_listed_as_sentences() {
    let bench = Bench::new().await;
    let faults = bench.cluster.faults();
    let refusal = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let refused = faults.add(Rule::new(refusal).resource("configmaps").times(1));
    faults.partition("shop/");
    bench.get(CONFIG_MAPS).await.fails(500, "InternalError");
    let rules = faults.rules();
    let shown: Vec<(String, u64, bool)> = rules
        .iter()
        .map(|rule| (rule.to_string(), rule.hits(), rule.is_over()))
        .collect();
    let expected = [
        (
            "All requests for configmaps are answered 500 Internal Server Error, once",
            1,
            true,
        ),
        (
            "All requests of clients shop/* have their connection closed instead of being handled; the \
             watches that were open were broken",
            0,
            false,
        ),
    ];
    assert_eq!(
        shown,
        expected.map(|(text, hits, is_over)| (text.to_owned(), hits, is_over))
    );
    let id = refused.to_string().parse().expect("it is a number");
    assert!(faults.remove(id));
    let rule = json!({"action": {"delay": {"seconds": 0.5}}, "kind": "Pod", "times": 3});
    faults.add(serde_json::from_value(rule).expect("it is a rule"));
    let rules = faults.rules();
    assert_eq!(
        rules[1].to_string(),
        "All requests for the kind Pod wait 500ms before they are handled, 3 times at most"
    );
    let error =
        serde_json::from_value::<Rule>(json!({"action": {"delay": {"seconds": -1}}})).unwrap_err();
    assert!(error.to_string().contains("from 0 on"), "{error}");
}
