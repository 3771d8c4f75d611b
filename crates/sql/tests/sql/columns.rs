//! Printer columns of CustomResourceDefinitions as fields.

use http::StatusCode;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use lariat_cache::SharedCacheFactory;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_core::Gvk;
use lariat_sql::{Field, FieldType, Query, Schema, SqlCache, SqlError, field};
use serde_json::{Value as Json, json};
use tokio::time::{self, Duration};

use crate::bench::{Bench, names};

fn widget() -> Gvk {
    Gvk::new("example.com", "v1", "Widget")
}

fn crd() -> Json {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "additionalPrinterColumns": [
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                    {"name": "Shade", "type": "string", "jsonPath": ".spec.color"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    {"name": "Last", "type": "string", "jsonPath": ".spec.list[-1:]"},
                ],
            }],
        },
    })
}

/// Makes the kind and some objects; returns the version of the last.
async fn widgets(bench: &Bench) -> String {
    widgets_of(bench, crd()).await
}

/// Makes the kind of a definition and some objects; returns the version of the last.
async fn widgets_of(bench: &Bench, definition: Json) -> String {
    let client = bench.cluster.client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = serde_json::from_value(definition).expect("a CRD");
    let params = PostParams::default();
    let created = definitions.create(&params, &definition).await;
    drop(created.expect("created"));
    while !is_established(&definitions).await {
        time::sleep(Duration::from_millis(1)).await;
    }
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let resource = ApiResource::from_gvk_with_plural(&kind, "widgets");
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let mut version = String::new();
    for (name, replicas, color) in [("a", 10, "red"), ("b", 9, "blue"), ("c", 11, "red")] {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
            "spec": {"replicas": replicas, "color": color},
        });
        let object = serde_json::from_value(object).expect("an object");
        let created = api.create(&params, &object).await.expect("created");
        version = created.metadata.resource_version.expect("a version");
    }
    version
}

async fn is_established(definitions: &Api<CustomResourceDefinition>) -> bool {
    let definition = definitions.get("widgets.example.com").await;
    let status = definition.expect("it is there").status.unwrap_or_default();
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}

async fn start(bench: &Bench, schema: Schema) -> Result<(SharedCacheFactory, SqlCache), SqlError> {
    let factory = SharedCacheFactory::new(bench.cluster.client());
    let builder = SqlCache::builder(&factory).kind(schema);
    let sql = builder.start().await?;
    factory.start();
    Ok((factory, sql))
}

#[tokio::test]
async fn columns_are_fields_of_their_types() {
    let bench = Bench::new().await;
    let version = widgets(&bench).await;
    let searchable = Field::path("spec.color", FieldType::Text).expect("a path");
    let schema = Schema::new(widget(), [searchable.searchable()]).expect("a schema");
    let (_factory, sql) = start(&bench, schema).await.expect("started");
    let kind = sql.kind(&widget()).expect("it is there");
    let fields: Vec<&str> = kind.schema().fields().iter().map(Field::name).collect();
    assert_eq!(fields[4..], ["spec.color", "spec.replicas"]);
    let query = || Query::new().at_least(version.parse().expect("a version"));
    let by_replicas = query().sort(field("spec.replicas"));
    let answer = kind.query(&by_replicas).await.expect("answered");
    assert_eq!(names(&answer), ["b", "a", "c"], "by number, not by text");
    let reds = query()
        .search("red")
        .filter(field("spec.replicas").greater_than(10));
    let answer = kind.query(&reds).await.expect("answered");
    assert_eq!(
        names(&answer),
        ["c"],
        "the field of the schema is the one that is searchable"
    );
    assert_eq!(kind.status().skipped_columns, 1);
    let schema = Schema::new(widget(), []).expect("a schema");
    let (_factory, sql) = start(&bench, schema.without_columns())
        .await
        .expect("started");
    let kind = sql.kind(&widget()).expect("it is there");
    assert_eq!(kind.schema().fields().len(), 4);
}

#[tokio::test]
async fn cache_starts_without_columns_beyond_the_most_fields() {
    let bench = Bench::new().await;
    let mut definition = crd();
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = (0..3000)
        .map(|number| {
            let path = format!(".spec.c{number}");
            json!({"name": format!("C{number}"), "type": "string", "jsonPath": path})
        })
        .collect();
    let version = widgets_of(&bench, definition).await;
    let schema = Schema::new(widget(), []).expect("a schema");
    let (_factory, sql) = start(&bench, schema).await.expect("started");
    let kind = sql.kind(&widget()).expect("it is there");
    let query = Query::new().at_least(version.parse().expect("a version"));
    let query = query.sort(field("spec.c251"));
    let answer = kind.query(&query).await.expect("answered");
    assert_eq!(answer.objects.len(), 3);
    assert_eq!(kind.schema().fields().len(), 256);
    assert_eq!(kind.status().skipped_columns, 3000 - 252);
}

#[test]
fn schema_of_too_many_fields_is_refused() {
    let fields = |count| {
        (0..count)
            .map(|number| Field::path(&format!("spec.f{number}"), FieldType::Text).expect("a path"))
    };
    Schema::new(widget(), fields(252)).expect("the most");
    let error = Schema::new(widget(), fields(253)).expect_err("too many");
    assert!(
        error
            .to_string()
            .contains("it has 257 fields, and 256 are the most"),
        "{error}"
    );
}

#[tokio::test]
async fn built_in_kinds_have_no_columns() {
    let bench = Bench::new().await;
    for kind in [
        Gvk::new("", "v1", "Pod"),
        Gvk::new("apps", "v1", "Deployment"),
    ] {
        let schema = Schema::new(kind.clone(), []).expect("a schema");
        let (_factory, sql) = start(&bench, schema).await.expect("started");
        assert_eq!(
            sql.kind(&kind)
                .expect("it is there")
                .schema()
                .fields()
                .len(),
            4
        );
    }
}

#[tokio::test(start_paused = true)]
async fn columns_are_left_out_that_are_not_there_or_forbidden_and_no_answer_is_an_error() {
    let bench = Bench::new().await;
    let schema = || Schema::new(widget(), []).expect("a schema");
    let fields = async || {
        let (_factory, sql) = start(&bench, schema()).await.expect("started");
        let kind = sql.kind(&widget()).expect("it is there");
        kind.schema().fields().len()
    };
    assert_eq!(fields().await, 4, "it is not served");
    widgets(&bench).await;
    let forbidden = Rule::new(Action::Refuse(Refusal::new(StatusCode::FORBIDDEN)));
    let forbidden = forbidden.resource("customresourcedefinitions").verb("get");
    bench.cluster.faults().add(forbidden);
    assert_eq!(fields().await, 4, "the CRD may not be read");
    bench.cluster.faults().clear();
    assert_eq!(fields().await, 6);
    bench.cluster.faults().blackhole("");
    let error = start(&bench, schema()).await.expect_err("no answer");
    assert!(matches!(error, SqlError::Columns { .. }), "{error}");
    assert!(
        error.to_string().contains("no answer within 10s"),
        "{error}"
    );
}

#[test]
fn columns_of_another_kind_or_version_are_refused() {
    let definition = serde_json::from_value(crd()).expect("a CRD");
    for kind in [
        Gvk::new("example.com", "v2", "Widget"),
        Gvk::new("example.com", "v1", "Gadget"),
        Gvk::new("example.org", "v1", "Widget"),
    ] {
        let schema = Schema::new(kind, []).expect("a schema");
        let error = schema.with_columns(&definition).expect_err("another");
        assert!(
            error.to_string().contains("Widget of example.com in v1"),
            "{error}"
        );
    }
}
