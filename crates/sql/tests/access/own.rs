//! What the program itself may see, by the rules of its namespaces.

use std::time::Duration;

use lariat_core::ObjectKey;
use lariat_sql::{Access, Verb};
use serde_json::json;
use tokio::time::advance;

use crate::bench::{Bench, list_pods, nodes, pods};

#[tokio::test(start_paused = true)]
async fn an_administrator_sees_everything() {
    let bench = Bench::new().await;
    let access = bench
        .reviews
        .own(Verb::Watch, &pods(), ["default"])
        .await
        .unwrap();
    assert!(access.is_everything());
    assert_eq!(bench.count("selfsubjectaccessreviews"), 1);
    assert_eq!(bench.count("selfsubjectrulesreviews"), 0);
}

#[tokio::test(start_paused = true)]
async fn namespaces_and_names_are_found() {
    let bench = Bench::new().await;
    bench.namespaces(&["shop", "bank", "full"]).await;
    bench
        .grant("pods", "robot", Some("shop"), list_pods(&[]))
        .await;
    bench
        .grant("some", "robot", Some("bank"), list_pods(&["till", "door"]))
        .await;
    bench
        .grant("more", "robot", Some("bank"), list_pods(&["vault", "door"]))
        .await;
    bench
        .grant("some", "robot", Some("full"), list_pods(&["one"]))
        .await;
    bench.bind("view", "robot", "full").await;
    let reviews = bench.robots_reviews();
    let namespaces = ["shop", "bank", "full", "default"];
    let access = reviews.own(Verb::List, &pods(), namespaces).await.unwrap();
    let names = Access::of_names(Some("bank"), ["till", "door", "vault"]);
    assert_eq!(
        access,
        Access::of_namespaces(["shop", "full"]).union(&names)
    );
    assert_eq!(bench.count("selfsubjectrulesreviews"), 4);
    assert_eq!(bench.count("selfsubjectaccessreviews"), 1);

    let access = reviews.own(Verb::Get, &pods(), namespaces).await.unwrap();
    assert_eq!(access, Access::of_namespaces(["full"]));
}

#[tokio::test(start_paused = true)]
async fn names_are_hidden_after_they_are_revoked() {
    let bench = Bench::new().await;
    bench
        .grant("some", "robot", Some("default"), list_pods(&["a"]))
        .await;
    let reviews = bench.robots_reviews().with_ttl(Duration::from_secs(5));
    let ask = async || reviews.own(Verb::List, &pods(), ["default"]).await.unwrap();
    let one = Access::of_names(Some("default"), ["a"]);
    assert_eq!(ask().await, one);
    bench.revoke("some", Some("default")).await;
    assert_eq!(ask().await, one);
    advance(Duration::from_secs(5)).await;
    assert!(ask().await.is_nothing());
}

#[tokio::test(start_paused = true)]
async fn names_anywhere_are_names_in_each_namespace() {
    let bench = Bench::new().await;
    bench.grant("some", "robot", None, list_pods(&["a"])).await;
    let access = bench
        .robots_reviews()
        .own(Verb::List, &pods(), ["x", "y"])
        .await
        .unwrap();
    let names = |namespace| Access::of_names(Some(namespace), ["a"]);
    assert_eq!(access, names("x").union(&names("y")));
}

#[tokio::test(start_paused = true)]
async fn names_of_cluster_scoped_objects_are_asked_about_one_by_one() {
    let bench = Bench::new().await;
    let rule = |names: &[&str]| json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"], "resourceNames": names});
    bench
        .grant("some", "robot", None, rule(&["n1", "n2"]))
        .await;
    // A role of a namespace may name nodes, but it does not allow them.
    bench
        .grant("other", "robot", Some("default"), rule(&["n3"]))
        .await;
    bench
        .grant("all", "robot", Some("default"), rule(&[]))
        .await;
    let access = bench
        .robots_reviews()
        .own(Verb::Get, &nodes(), ["ignored"])
        .await
        .unwrap();
    assert_eq!(access, Access::of_names(None, ["n1", "n2"]));
    assert!(!access.allows(&ObjectKey::cluster("n3")));
}

#[tokio::test(start_paused = true)]
async fn a_star_as_a_name_is_what_the_server_says_it_is() {
    let bench = Bench::new().await;
    bench
        .grant("star", "robot", Some("default"), list_pods(&["*", "a"]))
        .await;
    let reviews = bench.robots_reviews();
    let access = reviews.own(Verb::List, &pods(), ["default"]).await.unwrap();
    assert_eq!(
        access,
        Access::of_names(Some("default"), ["a"]),
        "RBAC knows no star for names"
    );

    bench.namespaces(&["shop"]).await;
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    bench.grant("stars", "robot", Some("shop"), all).await;
    let access = reviews.own(Verb::List, &pods(), ["shop"]).await.unwrap();
    assert_eq!(access, Access::of_namespaces(["shop"]));
}
