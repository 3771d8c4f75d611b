//! Objects of which only the metadata is asked for.

use crate::bench::{Answer, Bench, CONFIG_MAPS, text, version};
use crate::kinds::{WIDGETS, definition, widget};
use http::{Method, StatusCode};
use serde_json::{Value, json};

const ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn get(bench: &Bench, path: &str, accept: &str) -> Answer {
    bench
        .ask(Method::GET, path, &[("accept", accept)], "")
        .await
}

/// Checks that this is bare metadata, and returns the name.
fn name_of(object: &Value) -> &str {
    let members: Vec<&String> = object.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["apiVersion", "kind", "metadata"], "{object:#}");
    let type_of = (&object["kind"], &object["apiVersion"]);
    assert_eq!(
        type_of,
        (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1"))
    );
    text(object, "/metadata/name")
}

#[tokio::test(start_paused = true)]
async fn an_object_is_answered_without_anything_but_its_metadata() {
    let bench = Bench::new().await;
    let whole = bench.config_map("a", json!({"x": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = get(&bench, &path, ONE).await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(name_of(&answer.json()), "a");
    assert_eq!(answer.json()["metadata"], whole["metadata"]);

    let media = ("content-type", "application/merge-patch+json");
    let patch = json!({"metadata": {"labels": {"y": "2"}}}).to_string();
    let patched = bench
        .ask(Method::PATCH, &path, &[media, ("accept", ONE)], patch)
        .await;
    assert_eq!(name_of(&patched.json()), "a");
    let media = ("content-type", "application/json");
    let other = json!({"metadata": {"name": "b"}, "data": {}}).to_string();
    for path in [CONFIG_MAPS, &format!("{CONFIG_MAPS}?dryRun=All")] {
        let other = other.replace('b', if path == CONFIG_MAPS { "b" } else { "c" });
        let created = bench
            .ask(Method::POST, path, &[media, ("accept", ONE)], other)
            .await;
        assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
        name_of(&created.json());
    }
    let deleted = bench
        .ask(Method::DELETE, &path, &[("accept", ONE)], "")
        .await;
    assert_eq!(deleted.json()["kind"], "Status");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_one_of_metadata_with_selectors_and_pages() {
    let bench = Bench::new().await;
    for name in ["a", "b", "c"] {
        bench.config_map(name, json!({"name": name})).await;
    }
    let list = get(&bench, &format!("{CONFIG_MAPS}?limit=2"), LIST).await;
    let list = list.json();
    let kind = (&list["kind"], &list["apiVersion"]);
    assert_eq!(
        kind,
        (
            &json!("PartialObjectMetadataList"),
            &json!("meta.k8s.io/v1")
        )
    );
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|each| name_of(each).to_owned()).collect()
    };
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!(list["metadata"]["remainingItemCount"], 1);
    let next = text(&list, "/metadata/continue");
    let next = get(&bench, &format!("{CONFIG_MAPS}?continue={next}"), LIST).await;
    assert_eq!(names(&next.json()), ["c"]);
    let selected = format!("{CONFIG_MAPS}?labelSelector=name%3Db");
    assert_eq!(names(&get(&bench, &selected, LIST).await.json()), ["b"]);
    // Go appends to a nil slice here, so an empty list is null.
    let none = format!("{CONFIG_MAPS}?labelSelector=name%3Dz");
    let none = get(&bench, &none, LIST).await;
    assert!(none.text.contains(r#""items":null"#), "{}", none.text);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_the_same_bare_form() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench.post(WIDGETS, &widget("a")).await;
    let list = get(&bench, WIDGETS, LIST).await.json();
    assert_eq!(name_of(&list["items"][0]), "a");
    assert!(list["metadata"]["continue"].is_null());
    let one = get(&bench, &format!("{WIDGETS}/a"), ONE).await.json();
    assert_eq!(name_of(&one), "a");
    let as_list = get(&bench, &format!("{WIDGETS}/a"), LIST).await;
    assert_eq!(as_list.code, 500);
    assert_eq!(as_list.json()["message"], "content is not a list");
    assert!(as_list.json().get("reason").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_metadata_has_bare_objects_and_bookmarks() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({"app": "x"})).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
        &allowWatchBookmarks=true&labelSelector=app%3Dx";
    let path = format!("{CONFIG_MAPS}?{query}");
    let mut watch = bench.watch_with(&path, &[("accept", ONE)]).await;
    let (event, object) = watch.event().await;
    assert_eq!((&*event, name_of(&object)), ("ADDED", "a"));
    let marker = json!({"k8s.io/initial-events-end": "true"});
    for annotations in [marker, Value::Null] {
        let (event, bookmark) = watch.event().await;
        assert_eq!(
            (&*event, &bookmark["metadata"]["annotations"]),
            ("BOOKMARK", &annotations)
        );
        assert_eq!(bookmark["kind"], "PartialObjectMetadata");
        assert_eq!(bookmark["apiVersion"], "meta.k8s.io/v1");
    }
    let path = format!("{CONFIG_MAPS}/a");
    bench.merge(&path, json!({"data": {"a": "2"}})).await;
    let left = json!({"metadata": {"labels": {"app": "y"}}});
    let left = version(&bench.merge(&path, left).await.json());
    for expected in ["MODIFIED", "DELETED"] {
        let (event, object) = watch.event().await;
        assert_eq!((&*event, name_of(&object)), (expected, "a"));
        assert_eq!(version(&object) == left, expected == "DELETED");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_a_watch_of_metadata_is_a_status() {
    let bench = Bench::with_history(1).await;
    for name in ["a", "b", "c"] {
        bench.config_map(name, json!({})).await;
    }
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=1");
    let mut watch = bench.watch_with(&path, &[("accept", ONE)]).await;
    let (event, status) = watch.event().await;
    assert_eq!(
        (&*event, &status["kind"], &status["code"]),
        ("ERROR", &json!("Status"), &json!(410))
    );
}

#[tokio::test(start_paused = true)]
async fn watchers_of_metadata_share_the_bytes_of_an_event() {
    let bench = Bench::new().await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let mut first = bench.watch_with(&path, &[("accept", ONE)]).await;
    let mut second = bench.watch_with(&path, &[("accept", ONE)]).await;
    bench.config_map("a", json!({})).await;
    let (first, second) = (first.frame().await, second.frame().await);
    assert_eq!(first, second);
    assert_eq!(first.as_ptr(), second.as_ptr());
}

#[tokio::test(start_paused = true)]
async fn the_shape_of_something_else_is_not_acceptable() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let watch = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1");
    let alternative = format!("{LIST},application/json");
    for (path, accept) in [
        (CONFIG_MAPS, ONE),
        (&*path, LIST),
        (&*path, &*alternative),
        ("/apis", ONE),
    ] {
        let answer = get(&bench, path, accept).await;
        answer.fails(406, "NotAcceptable");
    }
    // An event has no list, so nothing comes.
    let answer = get(&bench, &watch, LIST).await;
    assert_eq!((answer.code.as_u16(), answer.text.as_str()), (200, ""));
    let first = format!("{ONE},application/json");
    assert_eq!(name_of(&get(&bench, &path, &first).await.json()), "a");
    let unknown = format!("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata,{ONE}");
    assert_eq!(name_of(&get(&bench, &path, &unknown).await.json()), "a");
}

#[tokio::test(start_paused = true)]
async fn annotations_are_checked_and_owners_are_there_once() {
    let bench = Bench::new().await;
    let with = |metadata: Value| json!({"metadata": metadata});
    let wrong = with(json!({"name": "a", "annotations": {"not a key": ""}}));
    let status = bench.post(CONFIG_MAPS, &wrong).await.fails(422, "Invalid");
    assert_eq!(
        status["details"]["causes"][0]["field"],
        "metadata.annotations"
    );
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-1"});
    let twice = with(json!({"name": "a", "ownerReferences": [owner, owner]}));
    let answer = bench.post(CONFIG_MAPS, &twice).await;
    assert_eq!(answer.json()["metadata"]["ownerReferences"], json!([owner]));
    let warning = answer.headers["warning"].to_str().unwrap();
    assert!(
        warning.contains("duplicate UID(s) observed: u-1"),
        "{warning}"
    );
}

#[tokio::test(start_paused = true)]
async fn warnings_are_given_once_an_object_is_valid() {
    let bench = Bench::new().await;
    let path = "/api/v1/namespaces/default/services";
    let service = |port: i64| {
        json!({"metadata": {"name": "a"},
            "spec": {"ports": [{"port": port}], "externalIPs": ["1.2.3.4"]}})
    };
    let warned = |answer: &Answer| {
        let warnings = answer.headers.get_all("warning").iter();
        let mut texts = warnings.filter_map(|text| text.to_str().ok());
        texts.any(|text| text.contains("spec.externalIPs is deprecated"))
    };
    let invalid = bench.post(path, &service(0)).await;
    assert!(invalid.code == 422 && !warned(&invalid));
    let created = bench.post(path, &service(80)).await;
    assert!(created.code == 201 && warned(&created));
    let exists = bench.post(path, &service(80)).await;
    assert!(exists.code == 409 && warned(&exists));
    let unchanged = bench.put(&format!("{path}/a"), &created.json()).await;
    assert!(unchanged.code == 200 && warned(&unchanged));
}

#[tokio::test(start_paused = true)]
async fn what_a_patch_removes_is_put_back() {
    let bench = Bench::new().await;
    let created = bench.config_map("a", json!({})).await;
    let patch = json!({"metadata": {"uid": null, "namespace": null, "resourceVersion": null}, "data": {"a": "2"}});
    let patched = bench.merge(&format!("{CONFIG_MAPS}/a"), patch).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
    assert_eq!(
        patched.json()["metadata"]["uid"],
        created["metadata"]["uid"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_manager_s_name_is_printed_and_not_too_long() {
    let bench = Bench::new().await;
    let long = "a".repeat(127);
    let too_long = "Too long: may not be more than 128 bytes".to_owned();
    let odd = |shown: &str, code: &str, at: usize| {
        format!("Invalid value: \"{shown}\": invalid character U+{code} (at position {at})")
    };
    let long_shown = format!("{long}\\x01\\u00a0");
    for (name, expected) in [
        (
            "a%C2%A0b%E2%80%8Bc".to_owned(),
            vec![
                odd("a\\u00a0b\\u200bc", "00A0", 1),
                odd("a\\u00a0b\\u200bc", "200B", 4),
            ],
        ),
        (
            "a%01b%02".to_owned(),
            vec![
                odd("a\\x01b\\x02", "0001", 1),
                odd("a\\x01b\\x02", "0002", 3),
            ],
        ),
        ("a%C2%ADb".to_owned(), vec![odd("a\\u00adb", "00AD", 1)]),
        (
            "a%F4%8F%BF%BFz".to_owned(),
            vec![odd("a\\U0010ffffz", "10FFFF", 1)],
        ),
        (
            format!("{long}%01%C2%A0"),
            vec![
                too_long,
                odd(&long_shown, "0001", 127),
                odd(&long_shown, "00A0", 128),
            ],
        ),
        ("a%C3%A9%20%F0%9F%98%80%22%5C".to_owned(), vec![]),
    ] {
        let path = format!("{CONFIG_MAPS}?dryRun=All&fieldManager={name}");
        let object = json!({"metadata": {"name": "a"}});
        let answer = bench.post(&path, &object).await;
        if expected.is_empty() {
            assert_eq!(answer.code, StatusCode::CREATED, "{name}: {}", answer.text);
            continue;
        }
        let status = answer.fails(422, "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        let messages: Vec<&str> = causes.iter().map(|cause| text(cause, "/message")).collect();
        assert_eq!(messages, expected, "{name}");
    }
}
