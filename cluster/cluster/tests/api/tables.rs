//! Tables, and answers in YAML.

use crate::bench::{Bench, CONFIG_MAPS, text};
use crate::kinds::{WIDGETS, definition, widget};
use http::{Method, StatusCode};
use serde_json::{Value, json};
#[cfg(feature = "printers")]
use tokio::time::{Duration, advance};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn table(bench: &Bench, path: &str) -> Value {
    let answer = bench.ask(Method::GET, path, &[("accept", TABLE)], "").await;
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.headers["content-type"], "application/json");
    answer.json()
}

fn names(table: &Value) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array();
    let columns = columns.expect("a table has columns");
    columns.iter().map(|column| text(column, "/name")).collect()
}

#[cfg(feature = "printers")]
#[tokio::test(start_paused = true)]
async fn a_list_becomes_a_table_with_the_columns_of_its_kind() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    bench.config_map("b", json!({})).await;
    advance(Duration::from_secs(130)).await;
    let all = table(&bench, CONFIG_MAPS).await;
    assert_eq!(
        (text(&all, "/kind"), text(&all, "/apiVersion")),
        ("Table", "meta.k8s.io/v1")
    );
    assert_eq!(names(&all), ["Name", "Data", "Age"]);
    assert_eq!(all["rows"][1]["cells"], json!(["b", 1, "2m10s"]));
    let object = &all["rows"][0]["object"];
    assert_eq!(text(object, "/kind"), "PartialObjectMetadata");
    assert_eq!(object["data"], Value::Null);

    let page = table(
        &bench,
        &format!("{CONFIG_MAPS}?limit=1&includeObject=Object"),
    )
    .await;
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    assert_eq!(page["rows"][0]["object"]["data"], json!({"a": "1"}));
    let one = table(&bench, &format!("{CONFIG_MAPS}/a?includeObject=None")).await;
    assert_eq!(one["rows"][0]["object"], Value::Null);
    assert_eq!(
        table(&bench, "/api/v1/namespaces/none/pods").await["rows"],
        json!([])
    );
}

#[cfg(not(feature = "printers"))]
#[tokio::test(start_paused = true)]
async fn built_in_kinds_have_name_and_age_without_printers() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let all = table(&bench, CONFIG_MAPS).await;
    assert_eq!(names(&all), ["Name", "Age"]);
    assert_eq!(all["columnDefinitions"][1]["type"], "date");
    assert_eq!(all["rows"][0]["cells"], json!(["a", "0s"]));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_table_is_refused() {
    let bench = Bench::new().await;
    let path = format!("{CONFIG_MAPS}?includeObject=Some");
    let answer = bench
        .ask(Method::GET, &path, &[("accept", TABLE)], "")
        .await;
    let status = answer.fails(400, "BadRequest");
    let expected = "Unable to convert to Table as requested: includeObject: Invalid value: \
        \"Some\": must be 'Metadata', 'Object', 'None', or empty";
    assert_eq!(text(&status, "/message"), expected);
    let answer = bench
        .ask(Method::GET, "/apis/apps/v1", &[("accept", TABLE)], "")
        .await;
    answer.fails(406, "NotAcceptable");
    // What is missing is reported as it always is.
    let path = format!("{CONFIG_MAPS}/none");
    let answer = bench
        .ask(Method::GET, &path, &[("accept", TABLE)], "")
        .await;
    answer.fails(404, "NotFound");
}

#[cfg(feature = "printers")]
#[tokio::test(start_paused = true)]
async fn a_watch_of_tables_defines_the_columns_once() {
    let bench = Bench::new().await;
    let query = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let path = format!("{CONFIG_MAPS}{query}&allowWatchBookmarks=true");
    bench.config_map("a", json!({})).await;
    let mut watch = bench.watch_with(&path, &[("accept", TABLE)]).await;
    let (kind, first) = watch.event().await;
    assert_eq!((kind.as_str(), names(&first).len()), ("ADDED", 3));
    let (kind, end) = watch.event().await;
    assert_eq!((kind.as_str(), text(&end, "/kind")), ("BOOKMARK", "Table"));
    let marker = "/rows/0/object/metadata/annotations/k8s.io~1initial-events-end";
    assert_eq!(text(&end, marker), "true");
    let metadata = end["rows"][0]["object"]["metadata"].as_object();
    assert!(!metadata.unwrap().contains_key("creationTimestamp"));
    assert_eq!(end["columnDefinitions"], Value::Null);
    bench.delete(&format!("{CONFIG_MAPS}/a")).await;
    let (kind, gone) = watch.event().await;
    assert_eq!(
        (kind.as_str(), &gone["columnDefinitions"]),
        ("DELETED", &Value::Null)
    );
    assert_eq!(text(&gone, "/rows/0/cells/0"), "a");
}

#[cfg(feature = "printers")]
#[tokio::test(start_paused = true)]
async fn a_bookmark_has_the_cells_of_an_object_without_content() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let flow_schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    for (path, expected) in [
        (WIDGETS, json!(["", null])),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            json!(["", "0001-01-01T00:00:00Z"]),
        ),
        (flow_schemas, json!(["", "", 0, "<none>", "<unknown>", "?"])),
    ] {
        let query = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let path = format!("{path}{query}&allowWatchBookmarks=true");
        let mut watch = bench.watch_with(&path, &[("accept", TABLE)]).await;
        let (kind, end) = watch.event().await;
        assert_eq!(kind, "BOOKMARK", "{path}");
        assert_eq!(end["rows"][0]["cells"], expected, "{path}");
    }
}

#[cfg(feature = "printers")]
#[tokio::test(start_paused = true)]
async fn flow_schemas_are_sorted_by_precedence_and_name() {
    let bench = Bench::new().await;
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    for (name, precedence) in [("a", 900), ("b", 10), ("c", 900), ("d", 2000)] {
        let body = json!({"metadata": {"name": name}, "spec": {
            "priorityLevelConfiguration": {"name": "p"}, "matchingPrecedence": precedence,
        }});
        let answer = bench.post(path, &body).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    }
    let shown = |table: Value| -> Vec<String> {
        let rows = table["rows"].as_array().unwrap();
        rows.iter()
            .map(|row| text(row, "/cells/0").to_owned())
            .collect()
    };
    assert_eq!(shown(table(&bench, path).await), ["b", "a", "c", "d"]);
    // A page is sorted by itself.
    let page = table(&bench, &format!("{path}?limit=2")).await;
    assert_eq!(shown(page), ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_the_columns_of_their_definition() {
    let bench = Bench::new().await;
    let mut definition = definition("widgets", "Widget", "Namespaced");
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    bench.define(&definition).await;
    bench.post(WIDGETS, &widget("a")).await;
    let all = table(&bench, WIDGETS).await;
    assert_eq!(names(&all), ["Name", "Size", "Color", "Since"]);
    assert_eq!(all["columnDefinitions"][2]["priority"], 1);
    let cells = &all["rows"][0]["cells"];
    assert_eq!((&cells[0], &cells[2]), (&json!("a"), &Value::Null));
    assert!(text(cells, "/3").ends_with('s'), "{cells}");
    let other = table(&bench, &WIDGETS.replace("v1", "v2")).await;
    assert_eq!(names(&other), ["Name", "Age"]);
}

#[tokio::test(start_paused = true)]
async fn answers_and_errors_come_in_yaml_if_wanted() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let yaml = [("accept", "application/yaml")];
    let path = format!("{CONFIG_MAPS}/a");
    let answer = bench.ask(Method::GET, &path, &yaml, "").await;
    assert_eq!(answer.headers["content-type"], "application/yaml");
    let begins = "apiVersion: v1\ndata:\n  a: \"1\"\nkind: ConfigMap\nmetadata:\n";
    assert!(answer.text.starts_with(begins), "{}", answer.text);
    let answer = bench.ask(Method::GET, CONFIG_MAPS, &yaml, "").await;
    assert!(
        answer.text.contains("\nitems:\n- data:\n    a: \"1\"\n"),
        "{}",
        answer.text
    );
    let path = format!("{CONFIG_MAPS}/none");
    let answer = bench.ask(Method::GET, &path, &yaml, "").await;
    assert_eq!(answer.code, StatusCode::NOT_FOUND);
    assert!(
        answer.text.contains("reason: NotFound\n"),
        "{}",
        answer.text
    );
    let watch = format!("{CONFIG_MAPS}?watch=1");
    let answer = bench.ask(Method::GET, &watch, &yaml, "").await;
    assert_eq!(answer.code, StatusCode::NOT_ACCEPTABLE);
}

#[cfg(feature = "printers")]
#[tokio::test(start_paused = true)]
async fn an_event_of_its_own_group_fills_the_rows_of_the_core_group() {
    let bench = Bench::new().await;
    let event = json!({
        "metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "demo.dev/c", "reportingInstance": "i", "action": "Act",
        "reason": "Because", "type": "Normal", "note": "what happened",
        "regarding": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
    });
    let own = "/apis/events.k8s.io/v1/namespaces/default/events";
    let answer = bench.post(own, &event).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    let core = "/api/v1/namespaces/default/events";
    let rows = table(&bench, core).await["rows"].to_string();
    for part in ["configmap/a", "what happened"] {
        assert!(rows.contains(part), "{rows}");
    }
    let accept = [("accept", TABLE)];
    let mut watch = bench.watch_with(&format!("{core}?watch=1"), &accept).await;
    let (_, seen) = watch.event().await;
    assert!(seen.to_string().contains("what happened"), "{seen}");
}
