//! Tests of installing CRDs with failing requests.

use std::time::Duration;

use kube::CustomResourceExt;
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::SharedControllerFactory;
use lariat_operator::{CrdChange, CrdMismatch, CrdOptions, Operator};
use serde_json::json;
use tokio::time;

use crate::bench::{SECOND, Widget, settle};
use crate::crds::{NAME, definitions, ensure, ensure_with, widgets, writes};

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again() {
    let conflict = || Rule::new(Action::Conflict).verb("patch");
    let refuse = |code| Rule::new(Action::Refuse(Refusal::new(code)));
    let too_many = Action::Refuse(Refusal::too_many_requests());
    let faults = [
        conflict(),
        Rule::new(too_many),
        refuse(StatusCode::INTERNAL_SERVER_ERROR),
        refuse(StatusCode::SERVICE_UNAVAILABLE).verb("patch"),
        // A CRD that is established and not served yet.
        refuse(StatusCode::NOT_FOUND).resource("widgets"),
        // One that another client deletes and creates again in the meantime.
        refuse(StatusCode::NOT_FOUND).verb("patch"),
        Rule::new(Action::LoseReply).verb("patch"),
        Rule::new(Action::LoseReply).verb("create"),
        Rule::new(Action::Disconnect),
        Rule::new(Action::NoAnswer),
        Rule::new(Action::Garble),
        Rule::new(Action::Truncate(20)),
        Rule::new(Action::Html),
    ];
    for fault in faults {
        let cluster = Cluster::for_test().await;
        let client = cluster.client();
        let rule = cluster.faults().add(fault.clone().times(3));
        ensure(&client, &Widget::crd()).await.unwrap();
        let other = widgets(&json!({"spec": {"names": {"shortNames": ["w"]}}}));
        ensure(&client, &other)
            .await
            .unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(cluster.faults().hits(rule) > 0, "{fault:?}");
        cluster.faults().clear();
        let installed = definitions(&cluster).get(NAME).await.unwrap();
        assert_eq!(
            installed.spec.names.short_names.unwrap(),
            ["w"],
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_ends_with_what_was_missing() {
    let check = async |fault: Rule, expected: &str| {
        let cluster = Cluster::for_test().await;
        cluster.faults().add(fault);
        let options = CrdOptions::default().timeout(Duration::from_secs(20));
        let began = time::Instant::now();
        let error = ensure_with(&cluster.client(), &Widget::crd(), &options)
            .await
            .unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 20);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(
            cluster.journal().requests().len() < 100,
            "it asks in a hot loop"
        );
    };
    let not_found = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    let not_found = Rule::new(not_found).resource("widgets");
    check(
        not_found,
        "widgets are not served yet under /apis/demo.dev/v1",
    )
    .await;
    check(
        Rule::new(Action::NoAnswer),
        "no answer from the API server within 15s",
    )
    .await;
    let overloaded = Action::Refuse(Refusal::too_many_requests());
    check(Rule::new(overloaded), "cannot get it").await;
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_does_not_keep_is_reported() {
    let cluster = Cluster::for_test().await;
    ensure(&cluster.client(), &Widget::crd()).await.unwrap();
    // The server drops a label of a patch.
    let forget = |request: http::Request<kube::client::Body>| {
        let (parts, body) = request.into_parts();
        let body = match parts.method {
            http::Method::PATCH => br#"{"metadata": {"labels": {"x": "y"}}}"#.to_vec().into(),
            _ => body,
        };
        http::Request::from_parts(parts, body)
    };
    let service = tower::util::MapRequest::new(cluster.service(), forget);
    let client = kube::Client::new(service, "default");
    let ours = widgets(&json!({"spec": {"names": {"shortNames": ["w"]}}}));
    let report = ensure(&client, &ours).await.unwrap();
    let paths = vec!["spec.names.shortNames".to_owned()];
    assert_eq!(
        report.mismatches,
        [CrdMismatch::NotKept { paths }],
        "{report}"
    );
    assert_eq!(writes(&cluster), 2, "it does not fight");
    // A server that keeps what it is sent has no mismatch.
    let report = ensure(&cluster.client(), &ours).await.unwrap();
    assert!(report.mismatches.is_empty(), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_start_can_be_begun_again() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let definition = Widget::crd();
    let slow = Rule::new(Action::Delay(5 * SECOND)).resource("widgets");
    cluster.faults().add(slow);
    let cut = time::timeout(SECOND, ensure(&client, &definition)).await;
    assert!(cut.is_err());
    let report = ensure(&client, &definition).await.unwrap();
    assert_eq!(report.change, CrdChange::Unchanged);
    assert_eq!(writes(&cluster), 1);
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_a_start_that_waits_for_definitions() {
    let cluster = Cluster::for_test().await;
    let not_found = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    cluster
        .faults()
        .add(Rule::new(not_found).resource("widgets"));
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new("widgeteer", &factory);
    operator.installs(Widget::crd());
    operator.run(1, settle()).await.unwrap();
}
