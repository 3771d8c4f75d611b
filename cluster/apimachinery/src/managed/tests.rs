//! Sequences of writes, and the owners of fields after each.

use serde_json::{Value, json};

use super::write::BEFORE;
use super::*;
use crate::object::Object;
use crate::schema::{Schema, builtin, custom};

struct World {
    schema: Schema,
    api_version: String,
    object: Option<Object>,
}

fn object(json: &Value) -> Object {
    json.as_object().unwrap().clone()
}

impl World {
    fn write<'a>(&'a self, name: &'a str, ignored: &'a Set) -> Write<'a> {
        Write {
            schema: &self.schema,
            api_version: &self.api_version,
            manager: name,
            subresource: "",
            ignored,
            now: "2026-01-01T00:00:00Z",
            served: &[],
        }
    }

    fn apply(&mut self, name: &str, force: bool, applied: &Value) -> Result<(), String> {
        let ignored = Set::default();
        let write = self.write(name, &ignored);
        match write.apply(self.object.as_ref(), &object(applied), force) {
            Ok(new) => {
                self.object = Some(new);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn update(&mut self, name: &str, new: &Value) {
        let mut new = object(new);
        let ignored = Set::default();
        self.write(name, &ignored)
            .update(self.object.as_ref(), &mut new);
        self.object = Some(new);
    }

    fn owned(&self, manager: &str) -> Value {
        let object = self.object.as_ref().unwrap();
        let entries = object["metadata"]["managedFields"].as_array();
        let entry = entries.and_then(|e| e.iter().find(|entry| entry["manager"] == manager));
        entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    }

    fn get(&self, pointer: &str) -> Value {
        let object = Value::Object(self.object.clone().unwrap());
        object.pointer(pointer).cloned().unwrap_or(Value::Null)
    }
}

fn config_map() -> World {
    World {
        schema: builtin("v1", "ConfigMap").unwrap(),
        api_version: "v1".to_owned(),
        object: None,
    }
}

#[test]
fn an_applier_that_drops_a_field_removes_it_unless_it_is_shared() {
    let mut world = config_map();
    world
        .apply("a", false, &json!({"data": {"x": "1", "y": "1"}}))
        .unwrap();
    world
        .apply("b", false, &json!({"data": {"y": "1"}}))
        .unwrap();
    world.apply("a", false, &json!({"data": {}})).unwrap();
    assert_eq!(world.get("/data"), json!({"y": "1"}));
    assert_eq!(world.owned("b"), json!({"f:data": {"f:y": {}}}));
}

#[test]
fn a_conflict_names_the_manager_and_the_field() {
    let mut world = config_map();
    world
        .apply("a", false, &json!({"data": {"x": "1"}}))
        .unwrap();
    let error = world
        .apply("b", false, &json!({"data": {"x": "2"}}))
        .unwrap_err();
    assert_eq!(
        error,
        r#"Apply failed with 1 conflict: conflict with "a": .data.x"#
    );
    world
        .apply("b", true, &json!({"data": {"x": "2"}}))
        .unwrap();
    assert_eq!(world.get("/data/x"), "2");
    assert_eq!(world.owned("a"), Value::Null);
}

#[test]
fn an_update_takes_over_and_what_was_there_before_any_apply_has_an_owner() {
    let mut world = config_map();
    world.object = Some(object(
        &json!({"metadata": {"name": "a"}, "data": {"x": "1"}}),
    ));
    world
        .apply("a", false, &json!({"data": {"y": "1"}}))
        .unwrap();
    assert_eq!(world.owned(BEFORE), json!({"f:data": {".": {}, "f:x": {}}}));
    let entries = world.get("/metadata/managedFields");
    world.update(
        "u",
        &json!({"metadata": {"name": "a", "managedFields": entries}, "data": {"x": "2", "y": "1"}}),
    );
    assert_eq!(world.owned("u"), json!({"f:data": {"f:x": {}}}));
    assert_eq!(world.owned(BEFORE), json!({"f:data": {}}));
}

#[test]
fn list_items_are_merged_by_their_keys_and_keep_the_applied_order() {
    let schema = custom(Some(
        &json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"], "items": {"type": "object", "properties":
        {"n": {"type": "string"}, "v": {"type": "integer"}}}}}}}}),
    ));
    let mut world = World {
        schema,
        api_version: "e/v1".to_owned(),
        object: None,
    };
    world
        .apply(
            "a",
            false,
            &json!({"spec": {"l": [{"n": "1", "v": 1}, {"n": "2", "v": 2}]}}),
        )
        .unwrap();
    world
        .apply(
            "b",
            false,
            &json!({"spec": {"l": [{"n": "3"}, {"n": "1"}]}}),
        )
        .unwrap();
    let names = |world: &World| -> Vec<Value> {
        let list = world.get("/spec/l");
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| item["n"].clone())
            .collect()
    };
    assert_eq!(names(&world), ["3", "1", "2"]);
    world
        .apply("a", false, &json!({"spec": {"l": [{"n": "2", "v": 2}]}}))
        .unwrap();
    assert_eq!(names(&world), ["3", "1", "2"].map(Value::from)[..]);
    assert_eq!(world.get("/spec/l/1"), json!({"n": "1"}));
    let error = world
        .apply(
            "a",
            false,
            &json!({"spec": {"l": [{"n": "2"}, {"n": "2"}]}}),
        )
        .unwrap_err();
    assert!(
        error.contains("duplicate entries for key [n=\"2\"]"),
        "{error}"
    );
}

mod random {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3_i64).prop_map(Value::from),
            prop::sample::select(vec!["", "a", "b"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let name = prop::sample::select(vec![
                "data",
                "metadata",
                "labels",
                "spec",
                "name",
                "x",
                "containers",
                "ports",
            ]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name, inner, 0..4)
                    .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
            ]
        })
    }

    fn small() -> impl Strategy<Value = Value> {
        let entry = (
            prop::sample::select(vec!["x", "y", "z"]),
            prop::sample::select(vec!["1", "2"]),
        );
        prop::collection::btree_map(
            entry.clone().prop_map(|e| e.0),
            entry.prop_map(|e| e.1),
            1..3,
        )
        .prop_map(|map| json!({ "data": map }))
    }

    proptest! {
        #[test]
        fn no_object_makes_an_apply_panic(values in prop::collection::vec(value(), 1..4)) {
            for schema in [builtin("apps/v1", "Deployment").unwrap(), custom(None)] {
                let mut world = World { schema, api_version: "v1".to_owned(), object: None };
                for value in &values {
                    if value.is_object() {
                        let _ = world.apply("a", false, value);
                        let _ = world.apply("b", true, value);
                        world.update("c", value);
                    }
                }
            }
        }

        #[test]
        fn what_was_applied_last_with_force_is_there(applies in prop::collection::vec((prop::sample::select(vec!["a", "b"]), small()), 1..8)) {
            let mut world = config_map();
            for (name, applied) in &applies {
                world.apply(name, true, applied).unwrap();
                for (key, value) in applied["data"].as_object().unwrap() {
                    prop_assert_eq!(&world.get("/data")[key], value);
                }
                // An apply that is repeated changes nothing.
                let before = world.object.clone();
                world.apply(name, false, applied).unwrap();
                prop_assert_eq!(&before, &world.object);
            }
            // Every key has an owner, and each manager's last value that was not overridden is present.
            for key in world.get("/data").as_object().into_iter().flat_map(|map| map.keys()) {
                let field = format!("f:{key}");
                let owners = ["a", "b"].iter().filter(|m| world.owned(m)["f:data"].get(&field).is_some());
                prop_assert!(owners.count() >= 1, "no manager owns {}", key);
            }
        }
    }
}

#[test]
fn an_applied_null_leaves_a_list_as_it_is() {
    let mut world = World {
        schema: builtin("v1", "Pod").unwrap(),
        api_version: "v1".to_owned(),
        object: None,
    };
    world.update(
        "m",
        &json!({"spec": {"containers": [{"name": "a", "image": "i"}]}}),
    );
    world
        .apply("n", false, &json!({"spec": {"containers": null}}))
        .unwrap();
    assert_eq!(world.get("/spec/containers/0/image"), "i");
}

#[test]
fn a_key_that_go_writes_in_any_case_may_be_left_out() {
    let mut world = World {
        schema: builtin("v1", "Pod").unwrap(),
        api_version: "v1".to_owned(),
        object: None,
    };
    let pod = |container: Value| json!({"spec": {"containers": [container]}});
    world
        .apply("m", false, &pod(json!({"image": "i"})))
        .unwrap();
    let containers = world.owned("m")["f:spec"]["f:containers"].clone();
    assert_eq!(containers["k:{\"name\":\"\"}"]["f:image"], json!({}));
    let error = world.apply("m", false, &pod(Value::Null)).unwrap_err();
    assert!(error.contains("may not have a null element"), "{error}");
}

#[test]
fn the_annotation_of_client_side_apply_follows_what_kubectl_applies() {
    const NAME: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let pointer = format!("/metadata/annotations/{}", NAME.replace('/', "~1"));
    let of = |text: &str, data: &str| json!({"metadata": {"annotations": {NAME: text}}, "data": {"x": data}});
    let mut world = config_map();
    // Also at a creation, and never where it is empty.
    world.apply("kubectl", false, &of("{}", "a<b")).unwrap();
    let expected = "{\"data\":{\"x\":\"a\\u003cb\"},\"metadata\":{\"annotations\":{}}}\n";
    assert_eq!(world.get(&pointer), expected);
    world.apply("kubectl", true, &of("", "b")).unwrap();
    assert_eq!(world.get(&pointer), "");
    // Too large with the rest.
    let large = "x".repeat(256 << 10);
    world.apply("kubectl", true, &of("{}", &large)).unwrap();
    assert_eq!(world.get(&pointer), Value::Null);
    let mut world = config_map();
    world.apply("other", false, &of("{}", "a")).unwrap();
    assert_eq!(world.get(&pointer), "{}");
}

#[test]
fn duplicates_of_the_live_list_stay_where_they_are() {
    let mut world = World {
        schema: builtin("v1", "Pod").unwrap(),
        api_version: "v1".to_owned(),
        object: None,
    };
    let pod = |names: &[&str]| {
        let env: Value = names.iter().map(|name| json!({"name": name})).collect();
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "env": env}]}})
    };
    let found = |world: &World| {
        let env = world.get("/spec/containers/0/env");
        let names = env.as_array().unwrap().iter();
        names
            .map(|each| each["name"].as_str().unwrap().to_owned())
            .collect::<String>()
    };
    world.update("u", &pod(&["A", "B", "A"]));
    world.apply("a", false, &pod(&["C"])).unwrap();
    assert_eq!(found(&world), "ABAC");
    // With a duplicate of its own, the applied item takes the place of both.
    world.apply("a", true, &pod(&["A", "C"])).unwrap();
    assert_eq!(found(&world), "ABC");
}
