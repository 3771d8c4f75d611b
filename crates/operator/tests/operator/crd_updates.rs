//! Tests of updates of CRDs on an API server that applies schemas later than it stores them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, Request, Response};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, PostParams};
use kube::client::Body;
use kube::{Client, CustomResourceExt, Resource};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_cluster::testing::TestCluster;
use lariat_cluster::{Cluster, User};
use lariat_operator::{CrdChange, CrdOptions};
use serde_json::{Value, json};
use tokio::time::{self, Instant};
use tower::BoxError;

use crate::bench::{SECOND, Widget};
use crate::crds::{NAME, ensure, ensure_with, widgets, writes};

/// Returns the CRD of Widgets with a field that [`Widget`] does not have.
fn widgets_with_tls() -> CustomResourceDefinition {
    let mut version = serde_json::to_value(&Widget::crd().spec.versions[0]).expect("JSON");
    let schema = &mut version["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["tls"] = json!({"type": "boolean"});
    widgets(&json!({"spec": {"versions": [version]}}))
}

/// A client of an API server that applies the field `tls` later than it stores the CRD.
fn client_of_late_server(cluster: &TestCluster, late: Duration) -> Client {
    let (inner, updated) = (cluster.client(), Arc::new(OnceLock::<Instant>::new()));
    let send = move |request: Request<Body>| {
        let (inner, updated) = (inner.clone(), Arc::clone(&updated));
        async move {
            let path = request.uri().path();
            if request.method() == Method::PATCH && path.ends_with(NAME) {
                updated.get_or_init(Instant::now);
            }
            let is_old = updated.get().is_some_and(|at| at.elapsed() < late);
            if is_old && path.starts_with("/openapi/v3/") {
                let request = Request::get(path).body(Vec::new())?;
                let text = inner.request_text(request).await?;
                return Ok(Response::new(without_tls(&text)));
            }
            if is_old && path.ends_with("/widgets") {
                let (parts, body) = request.into_parts();
                let text = String::from_utf8(body.collect_bytes().await?.to_vec())?;
                let request = Request::from_parts(parts, without_tls(&text));
                return Ok::<_, BoxError>(inner.send(request).await?);
            }
            Ok(inner.send(request).await?)
        }
    };
    Client::new(tower::service_fn(send), "default")
}

/// Returns a text in which the field has a name that no schema has.
fn without_tls(text: &str) -> Body {
    text.replace("\"tls\"", "\"old\"").into_bytes().into()
}

/// Creates a Widget with the field, and returns the specification that is stored.
async fn stored_spec(client: &Client) -> Value {
    let resource = kube::api::ApiResource::erase::<Widget>(&());
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let widget = json!({
        "apiVersion": Widget::api_version(&()), "kind": Widget::kind(&()),
        "metadata": {"name": "a"}, "spec": {"size": 1, "tls": true},
    });
    let widget = serde_json::from_value(widget).expect("an object");
    let made = api.create(&PostParams::default(), &widget).await;
    made.expect("it is created").data["spec"].clone()
}

fn schema_requests(cluster: &TestCluster) -> usize {
    let requests = cluster.journal().requests();
    let of_schemas = requests.iter().filter(|each| each.path.contains("openapi"));
    of_schemas.count()
}

#[tokio::test(start_paused = true)]
async fn new_field_is_stored_whole_once_the_update_has_returned() {
    let cluster = Cluster::for_test().await;
    let client = client_of_late_server(&cluster, 3 * SECOND);
    ensure(&client, &Widget::crd()).await.unwrap();
    let report = ensure(&client, &widgets_with_tls()).await.unwrap();
    assert!(matches!(report.change, CrdChange::Updated(_)), "{report}");
    assert_eq!(stored_spec(&client).await, json!({"size": 1, "tls": true}));
    assert_eq!(writes(&cluster), 2);
}

#[tokio::test(start_paused = true)]
async fn schema_is_read_once_per_update_that_adds_fields() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    for (crd, requests) in [
        (Widget::crd(), 0),
        (widgets_with_tls(), 1),
        (widgets_with_tls(), 1),
        (
            widgets(&json!({"spec": {"names": {"shortNames": ["w"]}}})),
            1,
        ),
    ] {
        ensure(&client, &crd).await.unwrap();
        // The embedded API server applies a schema when its controller runs next.
        time::sleep(SECOND).await;
        assert_eq!(schema_requests(&cluster), requests, "{crd:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn schema_that_is_not_published_in_time_is_an_error() {
    let cluster = Cluster::for_test().await;
    let client = client_of_late_server(&cluster, 60 * SECOND);
    ensure(&client, &Widget::crd()).await.unwrap();
    let options = CrdOptions::default().timeout(20 * SECOND);
    let error = ensure_with(&client, &widgets_with_tls(), &options)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the CRD widgets.demo.dev was not ready within 20s: /openapi/v3/apis/demo.dev/v1 does not have spec.tls yet"
    );
    assert!(schema_requests(&cluster) < 30, "it asks in a hot loop");
}

#[tokio::test(start_paused = true)]
async fn update_waits_for_its_field_after_a_conflict_and_a_lost_reply() {
    for action in [Action::Conflict, Action::LoseReply] {
        let cluster = Cluster::for_test().await;
        let client = client_of_late_server(&cluster, 3 * SECOND);
        ensure(&client, &Widget::crd()).await.unwrap();
        let rule = cluster
            .faults()
            .add(Rule::new(action).verb("patch").times(1));
        ensure(&client, &widgets_with_tls()).await.unwrap();
        assert_eq!(cluster.faults().hits(rule), 1);
        assert_eq!(stored_spec(&client).await, json!({"size": 1, "tls": true}));
    }
}

#[tokio::test(start_paused = true)]
async fn update_does_not_wait_for_a_schema_that_cannot_be_read() {
    for (code, requests) in [(StatusCode::FORBIDDEN, 1), (StatusCode::NOT_FOUND, 2)] {
        let cluster = Cluster::for_test().await;
        let client = cluster.client();
        ensure(&client, &Widget::crd()).await.unwrap();
        let refused = Rule::new(Action::Refuse(Refusal::new(code)));
        let refused = refused.when(|request| request.path.starts_with("/openapi/v3"));
        let rule = cluster.faults().add(refused);
        ensure(&client, &widgets_with_tls()).await.unwrap();
        assert_eq!(cluster.faults().hits(rule), requests, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn schema_is_readable_without_further_permissions() {
    let cluster = Cluster::builder()
        .rbac()
        .token_of("jane", User::new("jane"))
        .for_test()
        .await;
    let request = Request::get("/openapi/v3/apis/apiextensions.k8s.io/v1");
    let request = request.body(Vec::new()).unwrap();
    let client = crate::program::client_of(&cluster, "jane");
    client.request_text(request).await.unwrap();
}
