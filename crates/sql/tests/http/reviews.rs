//! How many reviews requests cause.

use std::time::Duration;

use hyper::HeaderMap;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use lariat_sql::http::{SqlService, TokenReviews};
use lariat_sql::{AccessReviews, User};
use lariat_testing::http::Client;
use serde_json::json;

use crate::bench::{Bench, MAPS};

const NAMESPACES: usize = 40;

/// Starts a cluster with RBAC and a ServiceAccount without permissions.
///
/// It sends a new token with each request.
async fn robot(
    bench: &mut Bench,
    configure: impl FnOnce(AccessReviews) -> AccessReviews,
) -> Client {
    bench.fill();
    let all = Api::<Namespace>::all(bench.cluster.client());
    let mut version = String::new();
    for number in 0..NAMESPACES {
        let namespace = json!({"metadata": {"name": format!("n{number}")}});
        let namespace = serde_json::from_value(namespace).expect("a Namespace");
        let created = all.create(&PostParams::default(), &namespace).await;
        version = bench
            .create_in(
                &created.expect("created").metadata.name.expect("a name"),
                "a",
                json!({}),
            )
            .await;
    }
    let kind = bench
        .sql
        .kind(&lariat_core::Gvk::new("", "v1", "ConfigMap"));
    let query = lariat_sql::Query::new().at_least(version.parse().expect("a version"));
    let read = kind.expect("it is there").query(&query).await;
    read.expect("the cache has all");
    let reviews = configure(AccessReviews::new(bench.cluster.client()));
    let serve = |it: SqlService| {
        it.authenticate_with(|headers: &HeaderMap| {
            let user = headers.get("user").and_then(|user| user.to_str().ok());
            let credential = format!("JTI={}", fastrand::u64(..));
            let user = User::new(user.unwrap_or("system:serviceaccount:n1:robot"))
                .extra("authentication.kubernetes.io/credential-id", [credential])
                .extra("authentication.kubernetes.io/pod-name", ["robot-0"]);
            async move { Ok(user) }
        })
        .authorize(reviews)
    };
    bench.serve(serve).await
}

fn reviews(bench: &Bench) -> usize {
    bench
        .cluster
        .journal()
        .count("create", "subjectaccessreviews")
}

async fn with_rbac() -> Bench {
    Bench::with(lariat_cluster::ClusterBuilder::rbac, |sql| sql).await
}

#[tokio::test]
async fn a_new_token_of_a_user_causes_no_new_reviews() {
    let mut bench = with_rbac().await;
    let robot = robot(&mut bench, |reviews| reviews).await;
    robot.get(MAPS).await.refused(403);
    let first = reviews(&bench);
    // One about all namespaces, and one about each with a ConfigMap.
    assert!((NAMESPACES + 1..NAMESPACES + 6).contains(&first), "{first}");
    for _ in 0..10 {
        robot.get(MAPS).await.refused(403);
    }
    assert_eq!(reviews(&bench), first);
    // Those that are known are not asked again for another query.
    robot
        .get(&format!("{MAPS}?namespaces=n1,n2"))
        .await
        .refused(403);
    assert_eq!(reviews(&bench), first);
}

#[tokio::test]
async fn one_more_namespace_causes_one_more_review() {
    let mut bench = with_rbac().await;
    let robot = robot(&mut bench, |reviews| reviews).await;
    robot.get(MAPS).await.refused(403);
    let first = reviews(&bench);
    robot
        .get(&format!("{MAPS}?namespaces=n1,n2,other"))
        .await
        .refused(403);
    assert_eq!(reviews(&bench), first + 1);
}

#[tokio::test]
async fn a_user_whose_budget_of_reviews_is_spent_is_refused_and_others_are_not() {
    let mut bench = with_rbac().await;
    let budget = |reviews: AccessReviews| reviews.with_budget(60, Duration::from_secs(3_600));
    let robot = robot(&mut bench, budget).await;
    let before = reviews(&bench);
    let mut refused = 0;
    for number in 0..100 {
        let url = format!("{MAPS}?namespaces=x{number},y{number}");
        let answer = robot.get(&url).await;
        if answer.status == 403 {
            continue;
        }
        refused += 1;
        let message = answer.refused(429);
        assert!(
            message.contains("your budget of 60 reviews in 3600s is spent"),
            "{message}"
        );
        let after: u64 = answer.header("retry-after").parse().expect("seconds");
        assert!((1..=3_600).contains(&after), "{after}");
    }
    assert_eq!(reviews(&bench) - before, 59);
    assert_eq!(refused, 71);
    // Cached answers are still used, and other users are not affected.
    robot
        .get(&format!("{MAPS}?namespaces=x1"))
        .await
        .refused(403);
    let jane = robot.with("user", "jane");
    jane.get(&format!("{MAPS}?namespaces=x1"))
        .await
        .refused(403);
}

#[tokio::test]
async fn a_flood_of_unknown_tokens_is_bounded_and_known_tokens_are_served() {
    let users = |cluster: lariat_cluster::ClusterBuilder| {
        let admin = lariat_cluster::User::new("admin").group("system:masters");
        cluster.token_of("admin-token", admin)
    };
    let mut bench = Bench::with(users, |sql| sql).await;
    bench.fill();
    let tokens = TokenReviews::new(bench.cluster.client())
        .with_ttl(Duration::ZERO)
        .with_unknown_tokens(10, Duration::from_secs(3_600));
    let access = AccessReviews::new(bench.cluster.client());
    let serve = |it: SqlService| it.authenticate(tokens).authorize(access);
    let client = bench.serve(serve).await;
    let admin = client.token("admin-token");
    assert_eq!(admin.get(MAPS).await.status, 200);
    let mut refused = 0;
    for number in 0..50 {
        let answer = client.token(&format!("bad-{number}")).get(MAPS).await;
        if answer.status == 429 {
            refused += 1;
            assert!(answer.refused(429).contains("too many unknown tokens"));
            let after: u64 = answer.header("retry-after").parse().expect("seconds");
            assert!((1..=361).contains(&after), "{after}");
        }
    }
    assert_eq!(refused, 41);
    assert_eq!(bench.cluster.journal().count("create", "tokenreviews"), 10);
    assert_eq!(admin.get(MAPS).await.status, 200);
}
