//! Events and permissions.

use k8s_openapi::api::core::v1::Event;
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat::kube::api::{Api, ListParams};
use serde_json::json;
use tokio::time::sleep;

use super::bench::{Bench, Program, SECOND, define, settle};
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};

/// What `kubectl describe` shows; a PodTerminator is cluster-scoped, so its Events are in `default`.
#[tokio::test(start_paused = true)]
async fn events_name_the_pods_that_were_killed_and_those_that_were_not() {
    let bench = Bench::new().await.with_pods(4).await;
    let refusal = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let once = Rule::new(refusal).verb("delete").resource("pods").times(1);
    bench.cluster.faults().add(once);
    bench.terminate("chaos", json!({})).await;
    sleep(11 * SECOND).await;
    let events: Api<Event> = Api::namespaced(bench.cluster.client(), "default");
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let about_us = |event: &&Event| event.involved_object.kind.as_deref() == Some("PodTerminator");
    let mut reasons: Vec<String> = events
        .iter()
        .filter(about_us)
        .map(|event| {
            assert_eq!(event.involved_object.name.as_deref(), Some("chaos"));
            let related = event.related.as_ref().and_then(|pod| pod.kind.as_deref());
            assert_eq!(related, Some("Pod"));
            event.reason.clone().unwrap_or_default()
        })
        .collect();
    reasons.sort();
    assert_eq!(reasons, ["PodNotTerminated", "PodTerminated"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_has_no_events() {
    let bench = Bench::new().await.with_pods(4).await;
    bench.terminate("chaos", json!({"dryRun": true})).await;
    sleep(30 * SECOND).await;
    assert_eq!(bench.cluster.journal().count("create", "events"), 0);
}

#[tokio::test(start_paused = true)]
async fn its_cluster_role_is_sufficient() {
    let (cluster, operator) = with_roles().await;
    define(&cluster).await;
    let program = Program::of(operator);
    grant(&cluster, &program.operator).await;
    program.operator.start(2).await.unwrap();
    let bench = Bench::of(cluster, program).with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(11 * SECOND).await;
    assert_eq!(bench.kills(), 5);
    assert_eq!(bench.program.operator.events().status().sent, 5);
    bench.delete("chaos").await;
    settle().await;
    assert!(bench.terminators.get_opt("chaos").await.unwrap().is_none());
    assert_nothing_was_forbidden(&bench.cluster);
}
