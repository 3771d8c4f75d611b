//! Answers that the embedded cluster does not give: other authorizers, and API servers that fail.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use lariat_sql::{Access, AccessError, AccessReviews, Verb};
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::service_fn;

use crate::bench::{jane, pods};

/// Returns reviews whose answers a function makes: the status, given the kind and spec of the review.
fn reviews(status: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> AccessReviews {
    let status = Arc::new(status);
    let service = service_fn(move |request: Request<Body>| {
        let status = Arc::clone(&status);
        async move {
            let body = request
                .into_body()
                .collect_bytes()
                .await
                .expect("it is whole");
            let mut review: Value = serde_json::from_slice(&body).expect("it is JSON");
            let kind = review["kind"].as_str().expect("it has a kind").to_owned();
            let status = status(&kind, &review["spec"]);
            review["status"] = status;
            let response = Response::builder().status(201);
            let body = Body::from(review.to_string().into_bytes());
            Ok::<_, Infallible>(response.body(body).expect("it is a response"))
        }
    });
    AccessReviews::new(Client::new(service, "default"))
}

/// Answers access reviews by namespace and name, as in `shop/web-0`, `shop/` and `/`.
fn access_review(spec: &Value, allowed: &[&str]) -> Value {
    let attributes = &spec["resourceAttributes"];
    let text = |member: &str| attributes[member].as_str().unwrap_or_default();
    let asked = format!("{}/{}", text("namespace"), text("name"));
    json!({"allowed": allowed.contains(&asked.as_str())})
}

fn rules(names: &[&str]) -> Value {
    json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": names}])
}

async fn own(reviews: AccessReviews) -> Result<Access, AccessError> {
    reviews.own(Verb::List, &pods(), ["shop"]).await
}

/// Answers with incomplete rules, and what is allowed when it is asked about.
async fn incomplete(more: Value, names: &'static [&str], allowed: &'static [&str]) -> Access {
    let reviews = reviews(move |kind, spec| match kind {
        "SelfSubjectRulesReview" => {
            let mut status =
                json!({"resourceRules": rules(names), "nonResourceRules": [], "incomplete": false});
            for (member, value) in more.as_object().expect("it is an object") {
                status[member] = value.clone();
            }
            status
        }
        _ => access_review(spec, allowed),
    });
    own(reviews).await.expect("all reviews are answered")
}

#[tokio::test(start_paused = true)]
async fn incomplete_rules_show_no_more_than_what_is_confirmed() {
    let web = || Access::of_names(Some("shop"), ["web-0"]);
    for more in [
        json!({"incomplete": true}),
        json!({"incomplete": true, "evaluationError": "webhook authorizer does not support user rule resolution"}),
        json!({"evaluationError": "role not found"}),
    ] {
        // What rules allow, another authorizer may deny.
        assert!(incomplete(more.clone(), &[], &[]).await.is_nothing());
        assert!(incomplete(more.clone(), &["web-0"], &[]).await.is_nothing());
        assert_eq!(
            incomplete(more.clone(), &["web-0", "web-1"], &["shop/web-0"]).await,
            web()
        );
        // What rules do not mention, another authorizer may allow.
        assert_eq!(
            incomplete(more.clone(), &["web-0"], &["shop/"]).await,
            Access::of_namespaces(["shop"])
        );
    }
    let complete = json!({"incomplete": false, "evaluationError": ""});
    assert_eq!(incomplete(complete.clone(), &["web-0"], &[]).await, web());
    assert_eq!(
        incomplete(complete, &[], &[]).await,
        Access::of_namespaces(["shop"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_star_that_means_all_names_is_confirmed() {
    let all = json!({"incomplete": false});
    let access = incomplete(all.clone(), &["*"], &["shop/"]).await;
    assert_eq!(access, Access::of_namespaces(["shop"]));
    assert!(incomplete(all, &["*"], &[]).await.is_nothing());
}

#[tokio::test(start_paused = true)]
async fn a_review_without_a_status_or_with_a_denial_allows_nothing() {
    for status in [
        Value::Null,
        json!({"allowed": false, "evaluationError": "role not found"}),
        json!({"allowed": true, "denied": true}),
    ] {
        let reviews = reviews(move |_, _| status.clone());
        let access = reviews
            .of_user(&jane(), Verb::List, &pods(), ["shop"])
            .await;
        assert!(access.unwrap().is_nothing());
    }
    assert!(own(reviews(|_, _| Value::Null)).await.unwrap().is_nothing());
}

#[tokio::test(start_paused = true)]
async fn the_user_and_the_kind_are_named_as_the_api_server_knows_them() {
    let user = jane().uid("7").extra("scopes", ["a", "b"]);
    let reviews = reviews(|kind, spec| {
        assert_eq!(kind, "SubjectAccessReview");
        let expected = json!({
            "user": "jane", "uid": "7", "groups": ["system:authenticated"], "extra": {"scopes": ["a", "b"]},
            "resourceAttributes": {"group": "", "version": "v1", "resource": "pods", "verb": "watch"},
        });
        assert_eq!(spec, &expected);
        json!({"allowed": true})
    });
    let access = reviews.of_user(&user, Verb::Watch, &pods(), ["shop"]).await;
    assert!(access.unwrap().is_everything());
    assert_eq!(
        format!("{user:?}"),
        "User { name: \"jane\", groups: 1, extra: 1, .. }"
    );
}

#[tokio::test(start_paused = true)]
async fn a_review_that_is_not_answered_is_an_error_in_time() {
    let service = service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
    let reviews = AccessReviews::new(Client::new(service, "default"));
    let error = reviews
        .of_user(&jane(), Verb::List, &pods(), ["shop"])
        .await
        .unwrap_err();
    assert!(error.is_retryable());
    let expected = "whether user \"jane\" may list v1 Pod is not known: a SubjectAccessReview was not answered within 10s";
    assert_eq!(error.to_string(), expected);
    let error = own(reviews).await.unwrap_err().to_string();
    assert!(
        error.starts_with("whether this program may list v1 Pod is not known"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_review_is_an_error() {
    for body in [
        "",
        "{",
        "[]",
        "<html>",
        "{\"kind\": 1}",
        "{\"status\": {\"allowed\": \"yes\"}}",
    ] {
        let service = service_fn(move |_: Request<Body>| async move {
            Ok::<_, Infallible>(Response::new(Body::from(body.as_bytes().to_vec())))
        });
        let reviews = AccessReviews::new(Client::new(service, "default"));
        let access = reviews
            .of_user(&jane(), Verb::List, &pods(), ["shop"])
            .await;
        assert!(access.is_err(), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_so_many_reviews_are_under_way() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen_now, seen_most) = (Arc::clone(&now), Arc::clone(&most));
    let service = service_fn(move |request: Request<Body>| {
        let (now, most) = (Arc::clone(&seen_now), Arc::clone(&seen_most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(Duration::from_millis(100)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            let body = request
                .into_body()
                .collect_bytes()
                .await
                .expect("it is whole");
            let mut review: Value = serde_json::from_slice(&body).expect("it is JSON");
            review["status"] = access_review(&review["spec"], &["n-7/"]);
            Ok::<_, Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
        }
    });
    let reviews = AccessReviews::new(Client::new(service, "default"));
    for concurrency in [0, 1, 5] {
        let reviews = reviews
            .clone()
            .with_ttl(Duration::ZERO)
            .with_concurrency(concurrency);
        most.store(0, Ordering::Relaxed);
        let namespaces = || (0..100).map(|n| format!("n-{n}"));
        let (user, kind) = (jane(), pods());
        let (one, other) = tokio::join!(
            reviews.of_user(&user, Verb::List, &kind, namespaces()),
            reviews.of_user(&user, Verb::Watch, &kind, namespaces()),
        );
        assert_eq!(one.unwrap(), Access::of_namespaces(["n-7"]));
        assert_eq!(other.unwrap(), Access::of_namespaces(["n-7"]));
        assert_eq!(most.load(Ordering::Relaxed), concurrency.max(1));
    }
}
