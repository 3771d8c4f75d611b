//! Webhooks that convert custom resources between versions.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::server::{Hook, MUTATING, Reply, patching, register};
use crate::bench::{Bench, text};

const FIRST: &str = "/apis/conv.example.com/v1/namespaces/default/foos";
const SECOND: &str = "/apis/conv.example.com/v2/namespaces/default/foos";

/// Something wrong that a webhook does.
type Fault = Arc<Mutex<Option<Value>>>;

/// Renames `spec.a` of the first version to `spec.b` of the second, and back.
fn convert(fault: &Fault, review: &Value) -> Reply {
    if let Some(response) = fault.lock().clone() {
        return Reply::Response(response);
    }
    let request = &review["request"];
    let objects = request["objects"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|object| {
            let mut object = object.clone();
            object["apiVersion"] = request["desiredAPIVersion"].clone();
            let second = text(request, "/desiredAPIVersion").ends_with("v2");
            let (from, to) = if second { ("a", "b") } else { ("b", "a") };
            if let Some(spec) = object["spec"].as_object_mut()
                && let Some(value) = spec.remove(from)
            {
                spec.insert(to.to_owned(), value);
            }
            object["metadata"]["annotations"] = json!({"converted": to});
            // What a webhook says of other metadata does not count.
            object["metadata"]["finalizers"] = json!(["x/y"]);
            object
        });
    let objects: Value = objects.collect();
    Reply::Response(json!({"result": {"status": "Success"}, "convertedObjects": objects}))
}

/// A cluster with a CRD of two versions, of which the first is stored, and their webhook.
async fn defined() -> (Bench, Hook, Fault) {
    let fault = Fault::default();
    let seen = Arc::clone(&fault);
    let hook = Hook::start(move |_, review| convert(&seen, review)).await;
    let bench = Bench::new().await;
    let version = |name: &str, field: &str| {
        let spec = json!({"type": "object", "properties": {
            field: {"type": "string"}, "d": {"type": "string", "default": name}}});
        json!({"name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": hook.client("/conv")});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.conv.example.com"},
        "spec": {
            "group": "conv.example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [version("v1", "a"), version("v2", "b")],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    });
    bench.define(&definition).await;
    (bench, hook, fault)
}

fn foo(version: &str, name: &str, spec: Value) -> Value {
    let api_version = format!("conv.example.com/{version}");
    let mut foo = json!({"apiVersion": api_version, "kind": "Foo", "metadata": {"name": name}});
    foo["spec"] = spec;
    foo
}

#[tokio::test]
async fn objects_are_read_and_written_in_either_version() {
    let (bench, hook, _) = defined().await;
    let created = bench.post(FIRST, &foo("v1", "x", json!({"a": "1"}))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(hook.paths(), [""; 0], "the stored version needs no webhook");
    let read = bench.get(&format!("{SECOND}/x")).await.json();
    assert_eq!(read["apiVersion"], "conv.example.com/v2");
    assert_eq!(read["spec"], json!({"b": "1", "d": "v1"}));
    assert_eq!(read["metadata"]["annotations"], json!({"converted": "b"}));
    assert_eq!(read["metadata"]["finalizers"], Value::Null);
    assert_eq!(
        read["metadata"]["resourceVersion"],
        created.json()["metadata"]["resourceVersion"]
    );
    assert_eq!(hook.paths(), ["/conv?timeout=30s"]);

    let created = bench.post(SECOND, &foo("v2", "y", json!({"b": "2"}))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(created.json()["spec"], json!({"b": "2", "d": "v2"}));
    let read = bench.get(&format!("{FIRST}/y")).await.json();
    assert_eq!(read["spec"], json!({"a": "2", "d": "v2"}));

    let patched = bench
        .merge(&format!("{SECOND}/x"), json!({"spec": {"b": "3"}}))
        .await;
    assert_eq!(patched.json()["spec"]["b"], "3", "{}", patched.text);
    let read = bench.get(&format!("{FIRST}/x")).await.json();
    assert_eq!(
        (&read["spec"]["a"], &read["spec"]["b"]),
        (&json!("3"), &Value::Null)
    );
    let mut replaced = bench.get(&format!("{SECOND}/x")).await.json();
    replaced["spec"]["b"] = "4".into();
    let put = bench.put(&format!("{SECOND}/x"), &replaced).await;
    assert_eq!(put.json()["spec"]["b"], "4", "{}", put.text);
    assert_eq!(bench.delete(&format!("{SECOND}/x")).await.code, 200);
    assert_eq!(bench.get(&format!("{FIRST}/x")).await.code, 404);
}

#[tokio::test]
async fn lists_and_watches_convert_what_they_have_in_one_piece_and_once() {
    let (bench, hook, fault) = defined().await;
    for name in ["x", "y", "z"] {
        bench
            .post(FIRST, &foo("v1", name, json!({"a": name})))
            .await;
    }
    let list = bench.get(SECOND).await.json();
    let values: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| text(item, "/spec/b"))
        .collect();
    assert_eq!(values, ["x", "y", "z"]);
    assert_eq!(hook.asked().len(), 1);
    *fault.lock() = Some(json!({"result": {"status": "Failure", "message": "cannot do"}}));
    assert_eq!(
        bench.get(SECOND).await.code,
        200,
        "what is converted is kept"
    );
    *fault.lock() = None;

    let mut watch = bench.watch(&format!("{SECOND}?watch=1")).await;
    assert_eq!(watch.shorts(3).await, ["ADDED x", "ADDED y", "ADDED z"]);
    bench
        .merge(&format!("{FIRST}/x"), json!({"spec": {"a": "new"}}))
        .await;
    let (event, object) = watch.event().await;
    assert_eq!(
        (event.as_str(), text(&object, "/spec/b")),
        ("MODIFIED", "new")
    );
    assert_eq!(text(&object, "/apiVersion"), "conv.example.com/v2");
    bench.delete(&format!("{FIRST}/y")).await;
    let (event, object) = watch.event().await;
    assert_eq!((event.as_str(), text(&object, "/spec/b")), ("DELETED", "y"));
}

#[tokio::test]
async fn a_conversion_that_fails_is_an_error_of_what_needs_it() {
    let (bench, _hook, fault) = defined().await;
    bench.post(FIRST, &foo("v1", "x", json!({"a": "1"}))).await;
    let path = format!("{SECOND}/x");
    let from =
        |version: &str| format!("conversion webhook for conv.example.com/{version}, Kind=Foo");
    let object = |name: &str, version: &str| {
        json!([{"apiVersion": format!("conv.example.com/{version}"), "kind": "Foo",
            "metadata": {"name": name, "namespace": "default"}}])
    };
    for (response, expected) in [
        (
            json!({"result": {"status": "Failure", "message": "cannot do"}}),
            "failed: cannot do",
        ),
        (
            json!({"result": {"status": "Failed"}}),
            "failed: response.result.status was 'Failed', not 'Success'",
        ),
        (
            json!({"result": {"status": "Success"}}),
            "returned 0 objects, expected 1",
        ),
        (
            json!({"result": {"status": "Success"}, "convertedObjects": object("other", "v2")}),
            "returned invalid object: must have the same name: x != other",
        ),
        (
            json!({"result": {"status": "Success"}, "convertedObjects": object("x", "v9")}),
            "returned invalid object at index 0: invalid groupVersion (expected conv.example.com/v2, received \
             conv.example.com/v9)",
        ),
    ] {
        *fault.lock() = Some(response);
        let status = bench.get(&path).await.fails(500, "");
        assert_eq!(status["message"], format!("{} {expected}", from("v1")));
    }
    *fault.lock() = Some(json!({"result": {"status": "Failure", "message": "cannot do"}}));
    let failed = |version: &str| format!("{} failed: cannot do", from(version));
    let refused = bench.post(SECOND, &foo("v2", "z", json!({"b": "1"}))).await;
    assert_eq!(refused.fails(500, "")["message"], failed("v2"));
    let refused = bench.delete(&path).await;
    assert_eq!(refused.fails(500, "")["message"], failed("v1"));
    let refused = bench.get(SECOND).await;
    let message = format!(
        "storage is (re)initializing: failed to list conv.example.com/v2, Kind=Foo: {}",
        failed("v1")
    );
    assert_eq!(refused.fails(429, "TooManyRequests")["message"], message);
    let mut watch = bench.watch(&format!("{SECOND}?watch=1")).await;
    assert_eq!(watch.event().await.0, "ERROR");
    // Who reads what is stored needs no webhook.
    assert_eq!(bench.get(&format!("{FIRST}/x")).await.code, 200);
    assert_eq!(bench.delete(&format!("{FIRST}/x")).await.code, 200);
}

#[tokio::test]
async fn an_equivalent_rule_of_a_webhook_sees_the_converted_object() {
    let (bench, _hook, _) = defined().await;
    let changing = Hook::start(|_, review| {
        let value = format!("{}!", text(&review["request"]["object"], "/spec/a"));
        patching(&json!([{"op": "replace", "path": "/spec/a", "value": value}]))
    })
    .await;
    let rules = json!({"rules": [{"apiGroups": ["conv.example.com"], "apiVersions": ["v1"], "resources": ["foos"],
        "operations": ["CREATE"]}]});
    register(&bench, MUTATING, "c", json!([changing.webhook("", rules)])).await;
    let created = bench.post(SECOND, &foo("v2", "x", json!({"b": "1"}))).await;
    assert_eq!(created.json()["spec"]["b"], "1!", "{}", created.text);
    let asked = &changing.asked()[0];
    assert_eq!(
        (
            text(asked, "/kind/version"),
            text(asked, "/requestKind/version")
        ),
        ("v1", "v2")
    );
}

#[tokio::test]
async fn an_object_with_finalizers_goes_without_its_webhook() {
    let (bench, _hook, fault) = defined().await;
    let mut owner = foo("v1", "owner", json!({"a": "1"}));
    owner["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let owner = bench.post(FIRST, &owner).await.json();
    let mut dependent = foo("v1", "dependent", json!({"a": "2"}));
    dependent["metadata"]["ownerReferences"] = json!([{"apiVersion": "conv.example.com/v2", "kind": "Foo",
        "name": "owner", "uid": text(&owner, "/metadata/uid"), "blockOwnerDeletion": true}]);
    bench.post(FIRST, &dependent).await;
    *fault.lock() = Some(json!({"result": {"status": "Failure", "message": "cannot do"}}));
    let mut watch = bench
        .watch(&format!(
            "{FIRST}?watch=1&fieldSelector=metadata.name=owner"
        ))
        .await;
    let deleted = bench
        .delete(&format!("{FIRST}/owner?propagationPolicy=Orphan"))
        .await;
    assert_eq!(deleted.code, 200, "{}", deleted.text);
    let left = loop {
        let (_, object) = watch.event().await;
        if object["metadata"]["deletionTimestamp"].is_string()
            && object["metadata"]["finalizers"] == json!(["example.com/hold"])
        {
            break object;
        }
    };
    assert_eq!(
        (&left["spec"]["a"], &left["apiVersion"]),
        (&json!("1"), &json!("conv.example.com/v1"))
    );
}
