use proptest::prelude::*;
use serde_json::{Value, json};

use super::apply;
use crate::patch::PatchError;
use crate::schema::builtin;

/// Patches the spec of a Pod.
fn check(original: Value, patch: Value, expected: Result<Value, &str>) {
    let schema = builtin("v1", "Pod").unwrap();
    let object = |spec: Value| json!({ "spec": spec }).as_object().unwrap().clone();
    let patched = apply(schema.root(), object(original), &object(patch));
    match (patched, expected) {
        (Ok(patched), Ok(expected)) => assert_eq!(patched["spec"], expected),
        (Err(PatchError::Malformed(error) | PatchError::Unmergeable(error)), Err(part)) => {
            assert!(error.contains(part), "{error}");
        }
        (patched, expected) => panic!("{patched:?}, expected {expected:?}"),
    }
}

fn containers(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| json!({"name": name, "image": "i"}))
        .collect()
}

fn names(list: &[&str]) -> Value {
    list.iter().map(|name| json!({ "name": name })).collect()
}

#[test]
fn items_merge_by_their_key() {
    check(
        json!({"containers": containers(&["a", "b"])}),
        json!({"containers": [{"name": "b", "image": "j"}, {"name": "c", "image": "i"}]}),
        Ok(
            json!({"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}, {"name": "c", "image": "i"}]}),
        ),
    );
}

#[test]
fn items_and_lists_are_deleted_and_replaced() {
    check(
        json!({"containers": containers(&["a", "b"])}),
        json!({"containers": [{"name": "a", "$patch": "delete"}]}),
        Ok(json!({"containers": containers(&["b"])})),
    );
    check(
        json!({"containers": containers(&["a", "b"])}),
        json!({"containers": [{"name": "c"}, {"$patch": "replace"}]}),
        Ok(json!({"containers": names(&["c"])})),
    );
    check(
        json!({"nodeSelector": {"a": "1"}}),
        json!({"nodeSelector": {"b": "1", "$patch": "replace"}}),
        Ok(json!({"nodeSelector": {"b": "1"}})),
    );
}

#[test]
fn lists_take_the_order_that_is_set() {
    check(
        json!({"containers": containers(&["a", "b", "c"])}),
        json!({"$setElementOrder/containers": names(&["c", "a"])}),
        Ok(json!({"containers": containers(&["b", "c", "a"])})),
    );
    check(
        json!({"containers": containers(&["a"])}),
        json!({"$setElementOrder/containers": names(&["a"]), "containers": names(&["x"])}),
        Err(
            "The order in patch list:\n[map[name:x]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
    );
}

#[test]
fn what_belongs_to_others_is_not_reached_into() {
    let schema = builtin("apps/v1", "ControllerRevision").unwrap();
    let object = |data: Value| json!({ "data": data }).as_object().unwrap().clone();
    let merged = apply(
        schema.root(),
        object(json!({"a": 1})),
        &object(json!({"b": 2})),
    );
    assert_eq!(merged.unwrap()["data"], json!({"a": 1, "b": 2}));
    let nested = json!({"a": {"b": 1}});
    let error = apply(schema.root(), object(nested.clone()), &object(nested)).unwrap_err();
    let expected = "unable to find api field in struct RawExtension for the json field \"a\"";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn directives_about_nothing_change_nothing() {
    let original = json!({"containers": containers(&["a"])});
    for patch in [
        json!({"$deleteFromPrimitiveList/containers": "x"}),
        json!({"$deleteFromPrimitiveList/volumes": ["x"]}),
        json!({"nodeSelector": {"$patch": "delete"}}),
    ] {
        check(original.clone(), patch, Ok(original.clone()));
    }
    check(
        original,
        json!({"containers": [{"$patch": "replace", "name": "b"}, {"name": "c"}]}),
        Ok(json!({"containers": names(&["c"])})),
    );
}

#[test]
fn retained_keys_drop_the_others() {
    check(
        json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
        json!({"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}),
        Ok(json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}]})),
    );
    check(
        json!({}),
        json!({"$retainKeys": ["a"], "b": 1}),
        Err("invalid patch format of retainKeys"),
    );
}

#[test]
fn many_keys_are_retained_in_one_pass() {
    let names: Vec<String> = (0..50_000).map(|number| format!("m{number}")).collect();
    let members: Value = names.iter().map(|name| (name.clone(), json!(1))).collect();
    let patch = json!({"$retainKeys": names});
    check(members.clone(), patch, Ok(members));
}

#[test]
fn an_item_without_its_key_cannot_be_merged() {
    check(
        json!({"containers": containers(&["a"])}),
        json!({"containers": [{"image": "j"}]}),
        Err("does not contain declared merge key: name"),
    );
}

#[test]
fn what_is_new_keeps_its_nulls_in_a_list_and_its_other_directives() {
    check(
        json!({"containers": containers(&["a"])}),
        json!({"containers": [{"name": "b", "image": null}], "securityContext": {"$retainKeys": [], "runAsUser": null}}),
        Ok(json!({
            "containers": [{"name": "b", "image": null}, {"name": "a", "image": "i"}],
            "securityContext": {"$retainKeys": []},
        })),
    );
}

#[test]
fn directives_that_contradict_the_types_are_refused_in_words_of_go() {
    let present =
        json!({"containers": containers(&["a"]), "nodeSelector": {"a": "b"}, "hostname": "h"});
    for (patch, error) in [
        (
            json!({"$setElementOrder/containers": 1}),
            "expected a []interface {}, but received a int64",
        ),
        (
            json!({"$setElementOrder/hostname": []}),
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"$setElementOrder/nonsense": []}),
            "unable to find api field in struct PodSpec for the json field \"nonsense\"",
        ),
        (
            json!({"nodeSelector": {"$setElementOrder/a": []}}),
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"nodeSelector": {"$setElementOrder/b": []}}),
            "data type is not struct, instead is: map",
        ),
        (
            json!({"containers": [{"name": "a"}, 1]}),
            "list element types are not identical: [[map[image:i name:a]] [map[name:a] 1]]",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "merge"}]}),
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"$deleteFromPrimitiveList": []}),
            "invalid patch format of primitive list",
        ),
        (json!({"containers": [{"name": {}}]}), "cannot be compared"),
        (
            json!({"containers": [{"name": "a", "$patch": "some"}]}),
            "unknown patch type: some in map: map[$patch:some name:a]",
        ),
        (
            json!({"nodeSelector": {"$patch": 1}}),
            "unknown patch type: %!s(int64=1) in map: map[$patch:1]",
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"$setElementOrder/containers": ["a"]}),
            "value for key 0 is not a map",
        ),
        (
            json!({"$deleteFromPrimitiveList/containers": ["x"]}),
            "list element types are not identical",
        ),
    ] {
        check(present.clone(), patch, Err(error));
    }
}

#[test]
fn atomic_lists_are_replaced_and_null_removes() {
    check(
        json!({"tolerations": [{"key": "a"}], "hostname": "h"}),
        json!({"tolerations": [{"key": "b"}], "hostname": null, "subdomain": null}),
        Ok(json!({"tolerations": [{"key": "b"}]})),
    );
}

proptest! {
    #[test]
    fn no_patch_panics(patch in values(), original in values()) {
        let schema = builtin("v1", "Pod").unwrap();
        if let (Value::Object(original), Value::Object(patch)) = (original, patch) {
            let _ = apply(schema.root(), original, &patch);
        }
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!("delete")),
        Just(json!("replace")),
        Just(json!("a")),
        Just(json!(1)),
    ];
    leaf.prop_recursive(5, 32, 4, |inner| {
        let name = prop::sample::select(vec![
            "spec",
            "containers",
            "name",
            "volumes",
            "metadata",
            "finalizers",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$deleteFromPrimitiveList/finalizers",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4)
                .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}
