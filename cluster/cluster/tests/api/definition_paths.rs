//! Paths of CRDs: what they may be, and what becomes of a stored one that cannot be served.

use crate::bench::{Bench, DEFINITIONS, text};
use crate::kinds::{WIDGETS, definition, widget};
use crate::persistence::{Directory, open};
use http::{Method, StatusCode};
use serde_json::{Value, json};

const WIDGETS_DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.demo.dev";

/// The CRD of Widgets, with a column in each version.
fn with_column(path: &str) -> Value {
    let mut widgets = definition("widgets", "Widget", "Namespaced");
    for version in 0..2 {
        widgets["spec"]["versions"][version]["additionalPrinterColumns"] =
            json!([{"name": "Size", "type": "integer", "jsonPath": path}]);
    }
    widgets
}

fn nested(levels: usize) -> String {
    format!(".spec{}@.x{}", "[?(@".repeat(levels), ")]".repeat(levels))
}

async fn table(bench: &Bench) -> Value {
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let answer = bench
        .ask(Method::GET, WIDGETS, &[("accept", accept)], "")
        .await;
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
    answer.json()
}

async fn condition(bench: &Bench, kind: &str) -> (String, String) {
    let stored = bench.get(WIDGETS_DEFINITION).await.json();
    let conditions = stored["status"]["conditions"].as_array();
    let condition = conditions
        .into_iter()
        .flatten()
        .find(|each| each["type"] == kind);
    let condition = condition.unwrap_or_else(|| panic!("no {kind} in {stored:#}"));
    let of = |member: &str| text(condition, member).to_owned();
    (
        format!("{} {}", of("/status"), of("/reason")),
        of("/message"),
    )
}

#[tokio::test(start_paused = true)]
async fn a_path_that_nests_too_deep_is_refused_and_nothing_else_happens() {
    let bench = Bench::new().await;
    for levels in [33, 2000, 20_000] {
        let status = bench
            .post(DEFINITIONS, &with_column(&nested(levels)))
            .await
            .fails(422, "Invalid");
        let message = text(&status, "/details/causes/0/message");
        let expected = "is an invalid path: filters nest deeper than 32 levels";
        assert!(message.ends_with(expected), "{levels}");
    }
    let steps = ".a".repeat(257);
    let mut scaled = with_column(&format!(".spec{steps}"));
    let status = bench.post(DEFINITIONS, &scaled).await.fails(422, "Invalid");
    assert!(text(&status, "/details/causes/0/message").ends_with("more than 256 steps"));
    scaled = with_column(".spec.size");
    scaled["spec"]["versions"][0]["subresources"]["scale"] = json!({"specReplicasPath": format!(".spec{steps}"), "statusReplicasPath": ".status.replicas"});
    let status = bench.post(DEFINITIONS, &scaled).await.fails(422, "Invalid");
    assert!(text(&status, "/details/causes/0/message").ends_with("more than 256 steps"));
    bench.define(&with_column(".spec.size")).await;
    assert_eq!(
        bench.post(WIDGETS, &widget("a")).await.code,
        StatusCode::CREATED
    );
    assert_eq!(table(&bench).await["rows"][0]["cells"], json!(["a", 1]));
}

#[tokio::test(start_paused = true)]
async fn a_path_whose_search_multiplies_leaves_its_cell_empty() {
    let bench = Bench::new().await;
    let doubled = format!(".spec.list{}.missing", "[0,0]".repeat(60));
    bench.define(&with_column(&doubled)).await;
    let mut object = widget("a");
    object["spec"]["list"] = (0..70).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(bench.post(WIDGETS, &object).await.code, StatusCode::CREATED);
    assert_eq!(table(&bench).await["rows"][0]["cells"], json!(["a", null]));
}

#[tokio::test(start_paused = true)]
async fn what_is_accepted_is_served_after_a_restart_too() {
    let directory = Directory::new("deep-path");
    let bench = open(&directory.file()).await;
    bench.define(&with_column(&nested(32))).await;
    bench.post(WIDGETS, &widget("a")).await;
    bench.cluster.shutdown().await;
    let bench = open(&directory.file()).await;
    assert_eq!(table(&bench).await["rows"][0]["cells"], json!(["a", null]));
}

/// Changes how the CRD of Widgets is stored, as a version without a check may have stored it.
fn store(directory: &Directory, old: &str, new: &str) {
    let file = rusqlite::Connection::open(directory.file());
    let file = file.expect("it is a data file");
    let sql = "UPDATE log SET value = CAST(replace(CAST(value AS TEXT), ?1, ?2) AS BLOB)
        WHERE name = 'widgets.demo.dev'";
    let changed = file.execute(sql, [old, new]);
    assert!(changed.expect("it can be changed") > 0);
}

#[tokio::test(start_paused = true)]
async fn a_stored_definition_that_cannot_be_served_is_not_established_until_it_is_mended() {
    for (old, new, reason) in [
        (
            r#"".spec.size""#,
            format!(r#""{}""#, nested(20_000)),
            "additionalPrinterColumns[0].jsonPath of version v1 is an invalid path: filters nest \
                deeper than 32 levels",
        ),
        (
            r#""scope":"Namespaced""#,
            r#""scope":["Namespaced"]"#.to_owned(),
            "invalid type: sequence, expected a string",
        ),
    ] {
        let directory = Directory::new("unservable");
        let bench = open(&directory.file()).await;
        bench.define(&with_column(".spec.size")).await;
        bench
            .define(&definition("zebras", "Zebra", "Cluster"))
            .await;
        bench.post(WIDGETS, &widget("a")).await;
        bench.cluster.shutdown().await;
        store(&directory, old, &new);

        let bench = open(&directory.file()).await;
        let (established, message) = condition(&bench, "Established").await;
        assert_eq!(established, "False CannotBeServed");
        assert!(message.ends_with(reason), "{message}");
        assert_eq!(bench.get(WIDGETS).await.code, StatusCode::NOT_FOUND);
        let zebras = bench.get("/apis/demo.dev/v1/zebras").await;
        assert_eq!(zebras.code, StatusCode::OK, "{}", zebras.text);

        let spec = with_column(".spec.size")["spec"].clone();
        let answer = bench.merge(WIDGETS_DEFINITION, json!({"spec": spec})).await;
        assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
        let mut watch = bench
            .watch(&format!(
                "{DEFINITIONS}?watch=1&fieldSelector=metadata.name=widgets.demo.dev"
            ))
            .await;
        while condition(&bench, "Established").await.0 != "True InitialNamesAccepted" {
            watch.event().await;
        }
        assert_eq!(bench.names(WIDGETS).await, ["a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_definition_that_cannot_be_served_can_be_deleted_with_its_objects() {
    let directory = Directory::new("unservable-deleted");
    let bench = open(&directory.file()).await;
    bench.define(&with_column(".spec.size")).await;
    bench.post(WIDGETS, &widget("a")).await;
    bench.cluster.shutdown().await;
    store(
        &directory,
        r#"".spec.size""#,
        &format!(r#""{}""#, nested(20_000)),
    );

    let bench = open(&directory.file()).await;
    let mut watch = bench.watch(&format!("{DEFINITIONS}?watch=1")).await;
    assert_eq!(bench.delete(WIDGETS_DEFINITION).await.code, StatusCode::OK);
    while watch.short().await != "DELETED widgets.demo.dev" {}
    bench.define(&with_column(".spec.size")).await;
    assert_eq!(bench.names(WIDGETS).await, Vec::<String>::new());
}
