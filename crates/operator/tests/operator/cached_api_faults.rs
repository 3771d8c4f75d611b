//! Tests of reads from an unsynced cache, and of names that would change a URL.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::{HandlerError, Outcome, SharedControllerFactory};
use lariat_core::ObjectKey;
use lariat_operator::{ApiError, CachedApi, Reconcile};
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, key, settle};
use crate::reconciling::Log;

#[tokio::test(start_paused = true)]
async fn a_read_that_waits_for_a_list_that_is_forbidden_fails_and_says_so() {
    let bench = Bench::new().await;
    let refused = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    bench
        .cluster
        .faults()
        .add(Rule::new(refused).resource("secrets"));
    let secrets = bench.factory.for_object::<Secret>();
    let log = Log::default();
    let seen = log.clone();
    bench
        .operator
        .reconciler("reads", &bench.widgets)
        .register(move |cx: Reconcile<Widget>| {
            let (seen, secrets) = (seen.clone(), secrets.clone());
            async move {
                let name = cx.key().name().to_owned();
                if name != "c" {
                    let read = CachedApi::new(&secrets).get_opt(cx.key()).await;
                    let error = read.unwrap_err();
                    assert!(matches!(error, ApiError::NotSynced { .. }));
                    seen.add(format!("{name}: {error}"));
                    let error = HandlerError::from(error);
                    assert!(error.is_retryable());
                    return Err(error);
                }
                seen.add(name);
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    // As many as there are workers.
    for name in ["a", "b", "c"] {
        bench.create(name, 1).await;
        settle().await;
    }
    assert_eq!(log.take(), [""; 0]);
    time::sleep(31 * SECOND).await;
    let lines = log.take();
    assert_eq!(
        lines.iter().filter(|line| *line == "c").count(),
        1,
        "{lines:?}"
    );
    for part in [
        "a: cannot read v1 Secret: its cache did not sync within 30s (",
        "403",
    ] {
        assert!(lines.iter().any(|line| line.contains(part)), "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_read_a_forbidden_list_wait_for_it_together_and_not_in_turns() {
    let bench = Bench::new().await;
    let refused = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    let rule = Rule::new(refused).resource("secrets");
    bench.cluster.faults().add(rule);
    let secrets = bench.factory.for_object::<Secret>();
    let log = Log::default();
    let seen = log.clone();
    bench
        .operator
        .reconciler("reads", &bench.widgets)
        .register(move |cx: Reconcile<Widget>| {
            let (seen, secrets) = (seen.clone(), secrets.clone());
            async move {
                if cx.object().spec.size > 0 {
                    CachedApi::new(&secrets).get_opt(cx.key()).await?;
                }
                seen.add(cx.key().name());
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    // Many more than there are workers.
    for number in 0..40 {
        bench.create(&format!("w{number}"), 1).await;
    }
    settle().await;
    bench.create("needs-none", 0).await;
    time::sleep(31 * SECOND).await;
    assert_eq!(log.take(), ["needs-none"]);
    bench.cluster.faults().clear();
    time::sleep(300 * SECOND).await;
    assert_eq!(log.take().len(), 40, "each once the list is allowed");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_started_again_gets_the_whole_patience() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    // It is not started.
    assert!(api.get_opt(&key("a")).await.is_err());
    let begun = time::Instant::now();
    assert!(api.get_opt(&key("a")).await.is_err());
    assert_eq!(
        begun.elapsed(),
        time::Duration::ZERO,
        "the patience is over"
    );
    let slow = Rule::new(Action::Delay(20 * SECOND)).resource("configmaps");
    bench.cluster.faults().add(slow);
    let read = async {
        settle().await;
        api.get_opt(&key("a")).await
    };
    let (read, ()) = tokio::join!(read, bench.start());
    assert!(read.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn patience_is_as_long_as_it_is_wanted_and_ends_when_the_cache_is_filled() {
    let bench = Bench::new().await;
    let slow = Rule::new(Action::Delay(20 * SECOND)).resource("configmaps");
    bench.cluster.faults().add(slow);
    bench.start().await;
    let api = bench.operator.api::<ConfigMap>();
    let short = api.clone().with_sync_timeout(5 * SECOND);
    let error = short.get_opt(&key("a")).await.unwrap_err().to_string();
    assert!(error.contains("did not sync within 5s"), "{error}");
    let at_once = api.clone().with_sync_timeout(time::Duration::ZERO);
    assert!(at_once.list(&lariat_cache::Query::all()).await.is_err());
    assert!(api.get_opt(&key("a")).await.unwrap().is_none());
    assert!(at_once.list(&lariat_cache::Query::all()).await.is_ok());
}

/// Creates ClusterRoles, not through the factory.
async fn roles(bench: &Bench, names: &[&str]) -> Api<ClusterRole> {
    let roles: Api<ClusterRole> = Api::all(bench.cluster.client());
    for name in names {
        let role = json!({"metadata": {"name": name}, "rules": []});
        let role: ClusterRole = serde_json::from_value(role).expect("it is one");
        let created = roles.create(&PostParams::default(), &role).await;
        created.expect("created");
    }
    roles
}

async fn left(roles: &Api<ClusterRole>) -> Vec<String> {
    let listed = roles.list(&ListParams::default()).await;
    let roles = listed.expect("listed").items;
    let names = roles.into_iter().filter_map(|role| role.metadata.name);
    names.filter(|name| name.starts_with("victim")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_name_is_never_cut_short_by_the_url_it_is_in() {
    let bench = Bench::new().await;
    let odd = [
        "victim?x",
        "victim#x",
        "victim x",
        "victim&dryRun=All",
        "victimä",
    ];
    let api = bench.operator.api::<ClusterRole>();
    bench.start().await;
    let roles = roles(&bench, &["victim"]).await;
    let label = |value: &str| Patch::Merge(json!({"metadata": {"labels": {"a": value}}}));
    for name in odd {
        let key = ObjectKey::cluster(name);
        assert!(api.get_live(&key).await.unwrap().is_none(), "{name}");
        let error = api.delete(&key, &DeleteParams::default()).await;
        assert!(error.unwrap_err().is_not_found(), "{name}");
        let role = json!({"metadata": {"name": name}, "rules": []});
        let role: ClusterRole = serde_json::from_value(role).unwrap();
        api.create(&role).await.unwrap();
        let found = api.get_live(&key).await.unwrap().unwrap();
        assert_eq!(found.metadata.name.as_deref(), Some(name));
        api.patch(&key, &PatchParams::default(), &label("1"))
            .await
            .unwrap();
        // The written state is read: the cache knows whose write it was.
        let cached = api.get(&key).await.unwrap();
        assert_eq!(cached.metadata.labels.as_ref().unwrap()["a"], "1");
        api.delete(&key, &DeleteParams::default()).await.unwrap();
        assert!(api.get_opt(&key).await.unwrap().is_none(), "{name}");
        assert_eq!(left(&roles).await, ["victim"], "{name}");
    }
    let victim = roles.get("victim").await.unwrap();
    assert_eq!(victim.metadata.labels, None);
}

#[tokio::test(start_paused = true)]
async fn names_no_object_can_have_are_not_sent() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    bench.start().await;
    bench.cluster.journal().clear();
    for (namespace, name, wrong) in [
        ("default", "a/status", "its name contains '/'"),
        ("default", "..", "its name is a path"),
        ("default", "", "its name is empty"),
        ("default", "a%2Fstatus", "its name contains '%'"),
        ("..", "a", "its namespace is a path"),
    ] {
        let key = ObjectKey::namespaced(namespace, name);
        let error = api
            .delete(&key, &DeleteParams::default())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.ends_with(wrong), "{error}");
        assert!(api.get_live(&key).await.is_err());
    }
    assert_eq!(bench.cluster.journal().count("delete", "configmaps"), 0);
    assert_eq!(bench.cluster.journal().count("get", "configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_another_object_is_an_error() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<Widget>();
    bench.start().await;
    bench.create("a", 1).await;
    let other = json!({"apiVersion": "demo.dev/v1", "kind": "Widget",
        "metadata": {"name": "b", "namespace": "default"}, "spec": {"size": 1}});
    let client = answering(StatusCode::OK, &other);
    let factory = SharedControllerFactory::builder(client).build();
    let fooled: CachedApi<Widget> = CachedApi::new(&factory.for_object());
    let error = fooled.get_live(&key("a")).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the answer to get demo.dev/v1 Widget default/a is another object: default/b"
    );
    assert!(fooled.get_live(&key("b")).await.unwrap().is_some());
    assert!(api.get_live(&key("a")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_says_of_a_secret_stays_out_of_the_error() {
    let words = "Secret \"a\" is invalid: data: Invalid value: \"hunter2\"";
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422,
        "reason": "Invalid", "message": words});
    let client = answering(StatusCode::UNPROCESSABLE_ENTITY, &refusal);
    let factory = SharedControllerFactory::builder(client).build();
    let patch = Patch::Merge(json!({"stringData": {"password": "hunter2"}}));
    let params = PatchParams::default();
    let secrets: CachedApi<Secret> = CachedApi::new(&factory.for_object());
    let refused = secrets.patch(&key("a"), &params, &patch).await.unwrap_err();
    let text = lariat_core::describe(&refused);
    assert!(
        text.starts_with("cannot patch v1 Secret default/a: "),
        "{text}"
    );
    assert!(
        !text.contains("hunter2") && text.contains("left out"),
        "{text}"
    );
    // For other kinds the message helps.
    let maps: CachedApi<ConfigMap> = CachedApi::new(&factory.for_object());
    let refused = maps.patch(&key("a"), &params, &patch).await.unwrap_err();
    assert!(lariat_core::describe(&refused).contains(words));
}

/// Returns a client that gets the same answer to every request.
fn answering(code: StatusCode, answer: &Value) -> kube::Client {
    let answer = answer.to_string();
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let body = kube::client::Body::from(answer.clone().into_bytes());
        async move {
            http::Response::builder()
                .status(code.as_u16())
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(body)
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn an_object_is_not_missing_because_its_kind_is_not_served_for_a_while() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let (widgets, faults) = (bench.operator.api::<Widget>(), bench.cluster.faults());
    let not_served = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    let not_served = faults.add(Rule::new(not_served).resource("widgets"));
    let read = widgets.get_live(&key("a")).await;
    let deleted = widgets.delete(&key("a"), &DeleteParams::default()).await;
    for error in [read.map(drop).unwrap_err(), deleted.map(drop).unwrap_err()] {
        assert!(!error.is_not_found(), "{error}");
    }
    faults.remove(not_served);
    assert!(widgets.get_live(&key("a")).await.unwrap().is_some());
    assert!(widgets.get_live(&key("none")).await.unwrap().is_none());
}
