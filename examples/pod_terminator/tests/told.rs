//! What is told, and what is asked for.

use http::HeaderValue;
use http::header::AUTHORIZATION;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat::cluster::testing::TestCluster;
use lariat::cluster::{Cluster, User};
use lariat::kube::api::{Api, ListParams, PostParams};
use lariat::kube::{self, Client};
use serde_json::json;
use tokio::time::sleep;
use tower::util::MapRequest;

use super::bench::{Bench, Program, SECOND, define, settle};

/// What `kubectl describe` shows of a PodTerminator; it is in no namespace, so its Events are in `default`.
#[tokio::test(start_paused = true)]
async fn events_tell_who_was_killed_and_who_was_not() {
    let bench = Bench::new().await.with_pods(4).await;
    let refusal = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let once = Rule::new(refusal).verb("delete").resource("pods").times(1);
    bench.cluster.faults().add(once);
    bench.terminate("chaos", json!({})).await;
    sleep(11 * SECOND).await;
    let events: Api<Event> = Api::namespaced(bench.cluster.client(), "default");
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let about_us = |event: &&Event| event.involved_object.kind.as_deref() == Some("PodTerminator");
    let mut told: Vec<String> = events
        .iter()
        .filter(about_us)
        .map(|event| {
            assert_eq!(event.involved_object.name.as_deref(), Some("chaos"));
            let related = event.related.as_ref().and_then(|pod| pod.kind.as_deref());
            assert_eq!(related, Some("Pod"));
            event.reason.clone().unwrap_or_default()
        })
        .collect();
    told.sort();
    assert_eq!(told, ["PodNotTerminated", "PodTerminated"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_has_no_events() {
    let bench = Bench::new().await.with_pods(4).await;
    bench.terminate("chaos", json!({"dryRun": true})).await;
    sleep(30 * SECOND).await;
    assert_eq!(bench.cluster.journal().count("create", "events"), 0);
}

/// Returns a client of whoever has the token.
fn client_with(cluster: &TestCluster, token: &str) -> Client {
    let bearer = format!("Bearer {token}").parse::<HeaderValue>();
    let bearer = bearer.expect("it is a header");
    let signed = move |mut request: http::Request<kube::client::Body>| {
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, bearer.clone());
        request
    };
    Client::new(MapRequest::new(cluster.service(), signed), "default")
}

#[tokio::test(start_paused = true)]
async fn the_role_it_says_it_needs_is_enough() {
    let account = User::new("system:serviceaccount:default:killer").group("system:serviceaccounts");
    let builder = Cluster::builder().rbac().token_of("sesame", account);
    let cluster = builder.for_test().await;
    define(&cluster).await;
    let program = Program::new(client_with(&cluster, "sesame"));
    let role = program.operator.cluster_role("killer").await.unwrap();
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    roles.create(&PostParams::default(), &role).await.unwrap();
    let binding = json!({
        "metadata": {"name": "killer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "killer"},
        "subjects": [{"kind": "ServiceAccount", "name": "killer", "namespace": "default"}],
    });
    let binding = serde_json::from_value(binding).unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client());
    bindings
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
    program.operator.checks_access();
    program.operator.start(2).await.unwrap();
    let bench = Bench::of(cluster, program).with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(11 * SECOND).await;
    assert_eq!(bench.kills(), 5);
    assert_eq!(bench.program.operator.events().status().sent, 5);
    bench.delete("chaos").await;
    settle().await;
    assert!(bench.terminators.get_opt("chaos").await.unwrap().is_none());
}
