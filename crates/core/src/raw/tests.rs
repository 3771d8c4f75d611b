use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ResourceVersion;
use crate::{Gvk, ObjectKey};

fn pod() -> Gvk {
    Gvk::new("", "v1", "Pod")
}

fn parse(json: &Value) -> RawObject {
    RawObject::parse(json.to_string().as_bytes(), &pod()).unwrap()
}

fn content(object: &RawObject) -> Value {
    serde_json::from_slice(object.json()).unwrap()
}

#[test]
fn the_metadata_pass_reads_what_a_controller_needs() {
    let object = parse(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-0", "namespace": "shop", "resourceVersion": "42", "generation": 3,
            "uid": "0a1b2c3d-0000-4000-8000-0123456789ab",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "quoted": "a\"b"},
            "finalizers": ["demo.dev/hold"],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                "uid": "u-1", "controller": true}],
        },
        "spec": {"nodeName": "n1"},
    }));
    assert_eq!(object.key(), &ObjectKey::namespaced("shop", "web-0"));
    assert_eq!(object.version(), &ResourceVersion::from(42));
    assert_eq!(
        object.uid().to_string(),
        "0a1b2c3d-0000-4000-8000-0123456789ab"
    );
    assert_eq!(object.generation(), Some(3));
    assert!(object.is_deleting());
    assert_eq!(object.labels().get("quoted"), Some("a\"b"));
    assert_eq!(object.finalizers().collect::<Vec<_>>(), ["demo.dev/hold"]);
    assert_eq!(object.owners()[0].name(), "web");
    assert!(object.owners()[0].is_controller());
}

#[test]
fn managed_fields_are_cut_wherever_they_stand() {
    for metadata in [
        r#"{"managedFields":[{"a":1}],"name":"a"}"#,
        r#"{"name":"a","managedFields":[{"a":"]}"}]}"#,
        r#"{"name":"a","managedFields":[],"uid":"u"}"#,
        r#"{ "name" : "a" , "managedFields" : [ ] , "uid" : "u" }"#,
        r#"{"managedFields":null,"name":"a"}"#,
    ] {
        let json = format!(r#" {{"apiVersion":"v1","kind":"Pod","metadata":{metadata}}} "#);
        let object = RawObject::parse(json.as_bytes(), &pod()).unwrap();
        let mut expected: Value = serde_json::from_str(&json).unwrap();
        expected["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        let mut actual = content(&object);
        // A null is no list to cut; it is as good as absent.
        if actual["metadata"]["managedFields"].is_null() {
            actual["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("managedFields");
        }
        assert_eq!(actual, expected, "{metadata}");
    }
}

#[test]
fn a_list_item_without_type_gets_it_back() {
    let object = parse(&json!({"metadata": {"name": "a"}, "spec": {}}));
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}
    });
    assert_eq!(content(&object), expected);
}

#[test]
fn a_type_of_which_half_is_missing_gets_that_half() {
    for (given, expected) in [
        (r#""kind":"Pod","#, r#"{"apiVersion":"v1","kind":"Pod","#),
        (
            r#""apiVersion":"v1","#,
            r#"{"kind":"Pod","apiVersion":"v1","#,
        ),
        // A null is there; a second member of the name would make the object unreadable.
        (r#""kind":null,"#, r#"{"apiVersion":"v1","kind":null,"#),
    ] {
        let json = format!(r#"{{{given}"metadata":{{"name":"a"}}}}"#);
        let object = RawObject::parse(json.as_bytes(), &pod()).unwrap();
        let kept = String::from_utf8_lossy(object.json()).into_owned();
        assert_eq!(kept, format!(r#"{expected}"metadata":{{"name":"a"}}}}"#));
    }
}

#[test]
fn an_array_is_no_object() {
    for json in [
        r#"[null,null,{"name":"a"}]"#,
        r#"{"metadata":["a"]}"#,
        r#"{"metadata":{"name":"a","ownerReferences":[["v1","Pod","b","u"]]}}"#,
    ] {
        assert!(RawObject::parse(json.as_bytes(), &pod()).is_err(), "{json}");
    }
    for json in [r#"[{"name":"a"}]"#, r#"{"metadata":["a"]}"#] {
        assert_eq!(RawObject::key_of(json.as_bytes()), None, "{json}");
    }
}

#[test]
fn nulls_stand_for_nothing() {
    let object = parse(&json!({"metadata": {
        "name": "a", "labels": null, "finalizers": null, "ownerReferences": null,
        "deletionTimestamp": null, "generation": null,
    }}));
    assert!(object.labels().is_empty() && object.owners().is_empty() && !object.is_deleting());
}

#[test]
fn what_is_no_object_is_refused_with_kind_and_reason() {
    for (json, reason) in [
        ("", "EOF"),
        ("[]", "expected a JSON object"),
        ("{}", "missing field `metadata`"),
        (r#"{"metadata":{}}"#, "missing field `name`"),
        (r#"{"metadata":{"name":""}}"#, "metadata.name is empty"),
        (r#"{"metadata":{"name":"a"},"spec":{"#, "EOF"),
        (
            r#"{"metadata":{"name":"a","labels":{"x":1}}}"#,
            "invalid type",
        ),
    ] {
        let error = RawObject::parse(json.as_bytes(), &pod())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("not a v1 Pod: ") && error.contains(reason),
            "{json}: {error}"
        );
    }
}

#[test]
fn debug_output_holds_no_content() {
    let object = parse(&json!({"metadata": {"name": "a"}, "data": {"password": "hunter2"}}));
    assert!(!format!("{object:?}").contains("hunter2"));
}

#[test]
fn uids_keep_their_text() {
    for text in [
        "0a1b2c3d-0000-4000-8000-0123456789ab",
        "0A1B2C3D-0000-4000-8000-0123456789AB",
        "0a1b2c3d0000400080000123456789abcdef",
        "0a1b2c3d-0000-4000-8000-0123456789a-",
        "",
        "not-a-uuid",
    ] {
        assert_eq!(Uid::new(text).to_string(), text);
    }
    assert_ne!(Uid::new("a"), Uid::new("b"));
}

/// Any JSON value up to a few levels deep.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn everything_but_managed_fields_survives(
        managed in any_value(), spec in any_value(), pretty in any::<bool>(),
    ) {
        let mut object = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "a", "managedFields": managed, "annotations": {"k": "v"}},
            "spec": spec,
        });
        let text = if pretty { format!("{object:#}") } else { object.to_string() };
        let parsed = RawObject::parse(text.as_bytes(), &pod()).unwrap();
        if !object["metadata"]["managedFields"].is_null() {
            object["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        prop_assert_eq!(content(&parsed), object);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = RawObject::parse(&bytes, &pod());
    }
}

/// Go's encoder leaves empty fields out; others write `null`.
#[test]
fn null_is_the_empty_text() {
    let metadata = json!({
        "name": "a", "namespace": null, "uid": null, "resourceVersion": null,
        "ownerReferences": [{"apiVersion": null, "kind": null, "name": "o", "uid": null}],
    });
    let json = json!({"metadata": metadata}).to_string();
    let object = RawObject::parse(json.as_bytes(), &pod()).unwrap();
    assert_eq!(object.key(), &ObjectKey::cluster("a"));
    assert!(object.version().is_empty() && object.uid().to_string().is_empty());
    assert_eq!(object.owners()[0].name(), "o");
    assert_eq!(
        RawObject::key_of(json.as_bytes()).as_ref(),
        Some(object.key())
    );
    assert!(RawObject::parse(br#"{"metadata":{"name":null}}"#, &pod()).is_err());
}
