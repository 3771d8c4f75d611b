//! What a user may see, by reviews of that user.

use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use k8s_openapi::api::authentication::v1::UserInfo;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_core::ObjectKey;
use lariat_sql::{Access, User, Verb};
use serde_json::json;
use tokio::time::advance;

use crate::bench::{Bench, jane, list_pods, nodes, pod, pods};

const REVIEWS: &str = "subjectaccessreviews";

#[tokio::test(start_paused = true)]
async fn without_a_grant_nothing_is_seen() {
    let bench = Bench::new().await;
    let access = bench
        .reviews
        .of_user(&jane(), Verb::List, &pods(), ["default", "shop"])
        .await;
    assert!(access.unwrap().is_nothing());
    let access = bench
        .reviews
        .of_user(&jane(), Verb::List, &nodes(), ["default"])
        .await;
    assert!(access.unwrap().is_nothing());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_wide_grant_shows_everything_with_one_review() {
    let bench = Bench::new().await;
    let rule = json!({"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]});
    bench.grant("all", "jane", None, rule).await;
    let all = bench
        .reviews
        .of_user(&jane(), Verb::List, &pods(), ["a", "b"])
        .await
        .unwrap();
    assert_eq!(all, Access::everything());
    let all = bench
        .reviews
        .of_user(&jane(), Verb::List, &nodes(), [""; 0])
        .await
        .unwrap();
    assert!(all.allows(&ObjectKey::cluster("node-1")));
    assert_eq!(bench.count(REVIEWS), 2);
    let none = bench
        .reviews
        .of_user(&jane(), Verb::Watch, &pods(), ["a"])
        .await
        .unwrap();
    assert!(none.is_nothing(), "another verb");
}

#[tokio::test(start_paused = true)]
async fn a_grant_in_a_namespace_shows_that_namespace() {
    let bench = Bench::new().await;
    bench.namespaces(&["shop", "bank"]).await;
    bench
        .grant("pods", "jane", Some("shop"), list_pods(&[]))
        .await;
    bench.bind("view", "jane", "bank").await;
    let namespaces = ["shop", "bank", "default", "missing", "shop", ""];
    let access = bench
        .reviews
        .of_user(&jane(), Verb::List, &pods(), namespaces)
        .await
        .unwrap();
    assert_eq!(access, Access::of_namespaces(["shop", "bank"]));
    assert_eq!(
        bench.count(REVIEWS),
        5,
        "one for the cluster, and one for each namespace"
    );

    let access = bench
        .reviews
        .of_user(&jane(), Verb::Get, &pods(), ["shop", "bank"])
        .await;
    assert_eq!(access.unwrap(), Access::of_namespaces(["bank"]));
    let access = bench
        .reviews
        .of_user(&jane(), Verb::List, &pods(), ["shop"])
        .await
        .unwrap();
    assert_eq!(
        access,
        Access::of_namespaces(["shop"]),
        "only what was asked for"
    );
    let joe = User::new("joe").group("system:authenticated");
    let access = bench
        .reviews
        .of_user(&joe, Verb::List, &pods(), ["shop"])
        .await
        .unwrap();
    assert!(access.is_nothing());
}

#[tokio::test(start_paused = true)]
async fn names_are_not_found_by_a_review_of_a_user() {
    let bench = Bench::new().await;
    bench
        .grant("one", "jane", Some("default"), list_pods(&["web-0"]))
        .await;
    let access = bench
        .reviews
        .of_user(&jane(), Verb::List, &pods(), ["default"])
        .await
        .unwrap();
    assert!(
        !pod(&access, "default", "web-0"),
        "less than allowed, never more"
    );
    assert!(access.is_nothing());
}

#[tokio::test(start_paused = true)]
async fn groups_count_and_come_from_a_token_review() {
    let bench = Bench::new().await;
    let user = User::from(UserInfo {
        username: Some("root".into()),
        uid: Some("7".into()),
        groups: Some(vec!["system:masters".into(), "system:authenticated".into()]),
        extra: Some([("key".to_owned(), vec!["a".to_owned()])].into()),
    });
    let access = bench
        .reviews
        .of_user(&user, Verb::List, &pods(), [""; 0])
        .await
        .unwrap();
    assert!(access.is_everything());
    let error = bench
        .reviews
        .of_user(&User::new(""), Verb::List, &pods(), ["a"])
        .await;
    let error = error.unwrap_err();
    assert!(!error.is_retryable());
    assert!(
        error
            .to_string()
            .starts_with("whether a user without name and groups may list v1 Pod")
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_revoked_is_hidden_once_the_answer_is_too_old() {
    let bench = Bench::new().await;
    let ask = async || {
        let access = bench
            .reviews
            .of_user(&jane(), Verb::List, &pods(), ["default"])
            .await;
        pod(&access.unwrap(), "default", "web-0")
    };
    bench
        .grant("pods", "jane", Some("default"), list_pods(&[]))
        .await;
    assert!(ask().await);
    bench.revoke("pods", Some("default")).await;
    advance(Duration::from_secs(29)).await;
    assert!(ask().await, "it is still remembered");
    advance(Duration::from_secs(1)).await;
    assert!(!ask().await);
    bench.bind("view", "jane", "default").await;
    assert!(!ask().await, "that is remembered as well");
    advance(Duration::from_secs(30)).await;
    assert!(ask().await);
}

#[tokio::test(start_paused = true)]
async fn without_a_time_every_call_asks() {
    let bench = Bench::new().await;
    let reviews = bench.reviews.clone().with_ttl(Duration::ZERO);
    for expected in [2, 4] {
        let access = reviews
            .of_user(&jane(), Verb::List, &pods(), ["default"])
            .await;
        assert!(access.unwrap().is_nothing());
        assert_eq!(bench.count(REVIEWS), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_at_a_time_share_one_flight() {
    let bench = Bench::new().await;
    bench
        .grant("pods", "jane", Some("default"), list_pods(&[]))
        .await;
    let user = jane();
    let kind = pods();
    // In whatever order namespaces and groups are given.
    let other = User::new("jane")
        .group("system:authenticated")
        .group("system:authenticated");
    let asked = (0..10).map(|n| {
        let namespaces = if n % 2 == 0 {
            ["default", "shop"]
        } else {
            ["shop", "default"]
        };
        let user = if n % 3 == 0 { &user } else { &other };
        bench.reviews.of_user(user, Verb::List, &kind, namespaces)
    });
    for access in join_all(asked).await {
        assert_eq!(access.unwrap(), Access::of_namespaces(["default"]));
    }
    assert_eq!(bench.count(REVIEWS), 3);
}

#[tokio::test(start_paused = true)]
async fn an_error_shows_nothing_names_user_and_kind_and_is_not_remembered() {
    let bench = Bench::new().await;
    bench
        .grant("pods", "jane", Some("default"), list_pods(&[]))
        .await;
    let fault = Rule::new(Action::Refuse(Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
    )))
    .resource(REVIEWS);
    // The review of the whole cluster succeeds, that of the namespace does not.
    bench.cluster.faults().add(fault.nth(2));
    let ask = || async {
        bench
            .reviews
            .of_user(&jane(), Verb::List, &pods(), ["default"])
            .await
    };
    let error = ask().await.unwrap_err();
    assert!(error.is_retryable());
    let expected =
        "whether user \"jane\" may list v1 Pod is not known: a SubjectAccessReview failed";
    assert_eq!(error.to_string(), expected);
    assert!(
        format!("{error:?}").starts_with(&format!("{expected}: ")),
        "{error:?}"
    );
    assert_eq!(ask().await.unwrap(), Access::of_namespaces(["default"]));
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_program_that_may_not_review_names_the_permission() {
    let bench = Bench::new().await;
    let error = bench
        .robots_reviews()
        .of_user(&jane(), Verb::List, &pods(), ["default"])
        .await;
    let error = error.unwrap_err();
    assert!(!error.is_retryable());
    let expected = "whether user \"jane\" may list v1 Pod is not known: a SubjectAccessReview failed; \
        this program needs the verb create for subjectaccessreviews.authorization.k8s.io";
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains("robots"), "{error:?}");
}
