//! Who gets in, and what they see.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, DeleteParams, PostParams};
use lariat_cluster::User;
use lariat_sql::Access;
use lariat_sql::http::{AuthError, SqlService, TokenReviews, VisibleError};
use serde_json::json;

use crate::bench::{Bench, MAPS};

async fn with_users() -> Bench {
    let users = |cluster: lariat_cluster::ClusterBuilder| {
        let cluster = cluster.token_of("jane-token", User::new("jane").group("developers"));
        let cluster = cluster.token_of("admin-token", User::new("admin"));
        cluster.token_of("joe-token", User::new("joe"))
    };
    let bench = Bench::with(users, |sql| sql).await;
    bench.fill();
    bench
}

/// Jane sees the namespace `default`, and `admin` everything.
async fn look(user: lariat_sql::User, _: lariat_core::Gvk) -> Result<Access, VisibleError> {
    Ok(match user.name() {
        "admin" => Access::everything(),
        "jane" => Access::of_namespaces(["default"]),
        _ => Access::nothing(),
    })
}

fn reviews(bench: &Bench) -> TokenReviews {
    TokenReviews::new(bench.cluster.client())
}

#[tokio::test]
async fn a_service_without_authentication_refuses_all_requests() {
    let mut bench = with_users().await;
    let client = bench.serve(|service| service).await;
    for path in [
        "/v1/kinds",
        MAPS,
        "/openapi.json",
        "/v1/core/v1/Namespace/a",
    ] {
        for client in [client.clone(), client.token("jane-token")] {
            let answer = client.get(path).await;
            answer.refused(401);
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
    // The page is the same for all, and has nothing of the cluster.
    assert_eq!(client.get("/").await.status, 200);
}

#[tokio::test]
async fn tokens_are_judged_by_the_api_server() {
    let mut bench = with_users().await;
    let reviews = reviews(&bench);
    let client = bench
        .serve(|it| it.authenticate(reviews).visible(look))
        .await;
    for token in ["bad-token", "", "a b"] {
        let refused = client.token(token).get(MAPS).await;
        let message = refused.refused(401);
        assert!(!message.contains("bad-token"), "{message}");
    }
    client.get(MAPS).await.refused(401);
    let jane = client.token("jane-token");
    assert_eq!(jane.get(MAPS).await.status, 200);
    let map_of = async |token| {
        let kinds = client.token(token).get("/v1/kinds").await.json();
        kinds["kinds"][0].clone()
    };
    // Figures are about the objects of all namespaces.
    let map = map_of("jane-token").await;
    assert_eq!(
        (&map["kind"], map.get("unwritten")),
        (&json!("ConfigMap"), None)
    );
    assert!(map_of("admin-token").await["unwritten"].is_u64());
    let joe = client.token("joe-token").get(MAPS).await;
    assert_eq!(
        joe.refused(403),
        "user \"joe\" may not see any v1 ConfigMap"
    );
    // Each token was asked about once.
    assert_eq!(jane.get(MAPS).await.status, 200);
    assert_eq!(bench.cluster.journal().count("create", "tokenreviews"), 4);
}

#[tokio::test]
async fn users_see_their_namespaces_only() {
    let mut bench = with_users().await;
    let reviews = reviews(&bench);
    let client = bench
        .serve(|it| it.authenticate(reviews).visible(look))
        .await;
    let client = client.token("jane-token");
    let version = bench.create("mine", json!({})).await;
    let all = client
        .get(&format!("{MAPS}?revision={version}&namespaces!=nothing"))
        .await;
    assert_eq!(all.names(), ["mine"]);
    let others = client.get(&format!("{MAPS}?namespaces=kube-system")).await;
    assert_eq!(others.names(), [""; 0]);
    let counts = client
        .get(&format!("{MAPS}?summary=metadata.namespace"))
        .await;
    let counts = counts.json()["summaries"][0]["counts"].clone();
    assert_eq!(counts.as_array().map(Vec::len), Some(1), "{counts}");
    assert_eq!(counts[0]["value"], "default");
    let path = format!("{MAPS}/default/mine");
    assert_eq!(client.get(&path).await.status, 200);
    // Whether it is there makes no difference.
    for name in ["kube-root-ca.crt", "nothing"] {
        let path = format!("{MAPS}/kube-system/{name}");
        let message = client.get(&path).await.refused(403);
        assert!(
            message.starts_with("user \"jane\" may not see"),
            "{message}"
        );
    }
    let namespaces = client.get("/v1/core/v1/Namespace").await;
    assert_eq!(namespaces.names(), [""; 0]);
    client
        .get("/v1/core/v1/Namespace/default")
        .await
        .refused(403);
}

#[tokio::test]
async fn users_see_single_objects_by_name() {
    let mut bench = with_users().await;
    let reviews = reviews(&bench);
    let client = bench.serve(|it| {
        let one = || async { Ok(Access::of_names(Some("default"), ["mine"])) };
        it.authenticate(reviews).visible(move |_, _| one())
    });
    let client = client.await.token("jane-token");
    bench.create("mine", json!({})).await;
    let version = bench.create("other", json!({})).await;
    let list = client.get(&format!("{MAPS}?revision={version}")).await;
    assert_eq!(list.names(), ["mine"]);
    assert_eq!(list.json()["total"], 1);
    let mut watch = client.watch(&format!("{MAPS}?watch")).await;
    bench.patch("other", json!({"data": {"size": "1"}})).await;
    bench.patch("mine", json!({"data": {"size": "1"}})).await;
    assert_eq!(watch.change().await, "MODIFIED mine");
    let get = async |name: &str| client.get(&format!("{MAPS}/default/{name}")).await;
    assert_eq!(get("mine").await.status, 200);
    get("other").await.refused(403);
}

#[tokio::test]
async fn what_users_see_is_found_out_from_reviews() {
    let users = |cluster: lariat_cluster::ClusterBuilder| {
        cluster.token_of("jane-token", User::new("jane")).rbac()
    };
    let mut bench = Bench::with(users, |sql| sql).await;
    bench.fill();
    let (tokens, client) = (reviews(&bench), bench.cluster.client());
    let access = lariat_sql::AccessReviews::new(client.clone()).with_ttl(Duration::ZERO);
    let service = bench.serve(|it| it.authenticate(tokens).authorize(access));
    let service = service.await.token("jane-token");
    let version = bench.create("mine", json!({})).await;
    service.get(MAPS).await.refused(403);
    let (roles, bindings) = (
        Api::<Role>::namespaced(client.clone(), "default"),
        Api::<RoleBinding>::namespaced(client, "default"),
    );
    let role = json!({"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
    ]});
    let binding = json!({
        "metadata": {"name": "reader"}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
    });
    let params = PostParams::default();
    let role = serde_json::from_value(role).expect("a role");
    roles.create(&params, &role).await.expect("created");
    let binding = serde_json::from_value(binding).expect("a binding");
    bindings.create(&params, &binding).await.expect("created");
    let list = service.get(&format!("{MAPS}?revision={version}")).await;
    assert_eq!(list.names(), ["mine"]);
    bench.cluster.faults().partition("");
    let failed = service.get(MAPS).await;
    assert_eq!(failed.status, 503);
}

#[tokio::test]
async fn answers_of_one_user_are_not_taken_for_those_of_another() {
    let mut bench = with_users().await;
    let check = |headers: &hyper::HeaderMap| {
        let name = headers.get("x-user").and_then(|it| it.to_str().ok());
        let user = name.map(lariat_sql::User::new);
        let no_user = || AuthError::Unauthenticated("who are you?".to_owned());
        std::future::ready(user.ok_or_else(no_user))
    };
    let serve = |service: SqlService| service.authenticate_with(check).visible(look);
    let client = bench.serve(serve).await;
    assert_eq!(client.get(MAPS).await.refused(401), "who are you?");
    let version = bench.create("one", json!({})).await;
    let url = format!("{MAPS}?revision={version}");
    let admin = client.with("x-user", "admin");
    let tag = admin.get(&url).await.header("etag").to_owned();
    let same = admin.with("if-none-match", &tag);
    assert_eq!(same.get(&url).await.status, 304);
    // A user who may not see all objects has no tags.
    let jane = client.with("x-user", "jane").with("if-none-match", &tag);
    let answer = jane.get(&url).await;
    assert_eq!((answer.status, answer.header("etag")), (200, ""));
}

#[tokio::test]
async fn a_revoked_token_ends_its_watch_and_gets_no_other() {
    let mut bench = with_users().await;
    let token = service_account_token(&bench).await;
    let reviews = reviews(&bench).with_ttl(Duration::ZERO);
    let client = bench.serve(|it| {
        let service = it
            .authenticate(reviews)
            .longest_watch(Duration::from_millis(50));
        service.visible(|_, _| async { Ok(Access::everything()) })
    });
    let client = client.await.token(&token);
    let mut watch = client.watch(&format!("{MAPS}?watch")).await;
    assert_eq!(watch.status, 200);
    accounts(&bench)
        .delete("bot", &DeleteParams::default())
        .await
        .expect("deleted");
    while watch.next().await.is_some() {}
    let again = client.with("last-event-id", &watch.id);
    again.get(&format!("{MAPS}?watch")).await.refused(401);
    client.get(MAPS).await.refused(401);
}

#[tokio::test]
async fn without_an_answer_of_the_api_server_all_requests_are_refused() {
    let mut bench = with_users().await;
    let reviews = reviews(&bench).with_ttl(Duration::ZERO);
    let client = bench
        .serve(|it| it.authenticate(reviews).visible(look))
        .await;
    let client = client.token("jane-token");
    assert_eq!(client.get(MAPS).await.status, 200);
    let rule = bench.cluster.faults().partition("");
    let refused = client.get(MAPS).await;
    let message = refused.refused(503);
    assert!(!message.contains("jane-token"), "{message}");
    assert_eq!(refused.header("retry-after"), "1");
    bench.cluster.faults().remove(rule);
    assert_eq!(client.get(MAPS).await.status, 200);
}

#[tokio::test]
async fn a_token_for_another_audience_is_refused() {
    let mut bench = with_users().await;
    let reviews = reviews(&bench).with_audiences(["https://other.example"]);
    let client = bench
        .serve(|it| it.authenticate(reviews).visible(look))
        .await;
    client.token("jane-token").get(MAPS).await.refused(401);
}

#[tokio::test]
async fn what_a_user_sees_has_to_be_known() {
    let mut bench = with_users().await;
    let of = reviews(&bench);
    let unset = bench.serve(|it| it.authenticate(of)).await;
    unset.token("jane-token").get(MAPS).await.refused(403);
    let of = reviews(&bench);
    let failing = bench.serve(|it| {
        let service = it.authenticate(of);
        service.visible(|_, _| async { Err(VisibleError::new("the directory is down")) })
    });
    let failing = failing.await.token("jane-token");
    for path in [
        MAPS.to_owned(),
        format!("{MAPS}?watch"),
        format!("{MAPS}/default/a"),
    ] {
        let message = failing.get(&path).await.refused(503);
        assert!(message.contains("the directory is down"), "{message}");
    }
}

fn accounts(bench: &Bench) -> Api<ServiceAccount> {
    Api::namespaced(bench.cluster.client(), "default")
}

async fn service_account_token(bench: &Bench) -> String {
    let (accounts, params) = (accounts(bench), PostParams::default());
    let account = json!({"metadata": {"name": "bot"}});
    let account = serde_json::from_value(account).expect("an account");
    accounts.create(&params, &account).await.expect("created");
    let request = TokenRequest::default();
    let request = accounts.create_token_request("bot", &params, &request);
    let status = request.await.expect("a token").status;
    let token = status.and_then(|status| status.token);
    token.expect("a token")
}

#[tokio::test]
async fn associated_kinds_are_asked_by_as_far_as_the_user_sees_them() {
    let mut bench = with_users().await;
    let reviews = reviews(&bench);
    let look = |user: lariat_sql::User, kind: lariat_core::Gvk| async move {
        Ok(match (user.name(), kind.kind()) {
            ("jane", "Namespace") => Access::of_names(None, ["default"]),
            ("joe", "Namespace") => Access::nothing(),
            _ => Access::everything(),
        })
    };
    let client = bench
        .serve(|it| it.authenticate(reviews).visible(look))
        .await;
    let version = bench.create("a", json!({"color": "red"})).await;
    let asked = format!("{MAPS}?revision={version}&filter=data.color&filter=ns:metadata.name");
    for (token, found) in [("jane-token", vec!["a"]), ("joe-token", Vec::new())] {
        let answer = client.token(token).get(&asked).await;
        assert_eq!(answer.names(), found, "{token}");
        // The other kind may change while this one does not.
        assert!(!answer.headers.contains_key("etag"));
    }
    let unknown = format!("{MAPS}?sort=node:metadata.name");
    let answer = client.token("jane-token").get(&unknown).await;
    answer.refused(400);
    assert!(answer.json()["message"].to_string().contains("it has ns"));
}
