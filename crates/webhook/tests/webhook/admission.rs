//! Tests of admission handlers: their arguments, and the effects of their results.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::DynamicObject;
use lariat_cluster::testing::{config_map, namespace};
use lariat_core::{Gvk, ObjectKey, ResourceKind, Scope};
use lariat_webhook::{Admission, Decision, Hook, Mutation, Operation, ReviewResult};
use serde_json::{Value, json};

use crate::support::{Program, Widget, patch, review, serve, until, widget};

async fn sized(request: Admission<Widget>) -> ReviewResult<Decision> {
    let Some(widget) = request.object()? else {
        let old = request.old()?.map(|old| old.spec.size);
        return Ok(match old {
            Some(0) => Decision::deny("an empty widget is not deleted").code(409),
            _ => Decision::allow(),
        });
    };
    Ok(match widget.spec.size {
        ..0 => Decision::deny("the widget is wrong").cause("spec.size", "must not be negative"),
        0 => Decision::allow()
            .warn("an empty widget does nothing")
            .annotate("size", "0"),
        _ => Decision::allow(),
    })
}

#[tokio::test]
async fn a_validating_handler_allows_denies_and_warns() {
    let program = Program::new().await;
    let (_server, caller) = serve(program.webhooks().validate(Hook::new("sized"), sized)).await;
    let check = async |object: Value, expected: Value| {
        let response = caller
            .review("/validate/sized", &review("CREATE", &object, &Value::Null))
            .await;
        let mut response = response;
        response.as_object_mut().unwrap().remove("uid");
        assert_eq!(response, expected, "{object}");
    };
    check(widget(&json!({"size": 1})), json!({"allowed": true})).await;
    check(
        widget(&json!({"size": 0})),
        json!({
            "allowed": true, "warnings": ["an empty widget does nothing"],
            "auditAnnotations": {"size": "0"},
        }),
    )
    .await;
    check(
        widget(&json!({"size": -1})),
        json!({
            "allowed": false,
            "status": {
                "status": "Failure", "code": 422, "reason": "Invalid",
                "message": "the widget is wrong",
                "details": {"causes": [{
                    "reason": "FieldValueInvalid", "field": "spec.size",
                    "message": "must not be negative",
                }]},
            },
        }),
    )
    .await;
}

#[tokio::test]
async fn the_key_of_a_namespace_has_no_namespace() {
    let program = Program::new().await;
    let named = |request: Admission<Namespace>| async move {
        Ok(Decision::deny(request.key().to_string()))
    };
    let (_server, caller) = serve(program.webhooks().validate(Hook::new("named"), named)).await;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let mut review = review("CREATE", &object, &Value::Null);
    let request = &mut review["request"];
    request["kind"] = json!({"group": "", "version": "v1", "kind": "Namespace"});
    request["resource"] = json!({"group": "", "version": "v1", "resource": "namespaces"});
    // As kube-apiserver sends it.
    (request["name"], request["namespace"]) = (json!("shop"), json!("shop"));
    let response = caller.review("/validate/named", &review).await;
    assert_eq!(response["status"]["message"], "shop", "{response}");
}

#[tokio::test]
async fn a_deletion_has_the_old_object_alone() {
    let program = Program::new().await;
    let (_server, caller) = serve(program.webhooks().validate(Hook::new("sized"), sized)).await;
    let old = widget(&json!({"size": 0}));
    let response = caller
        .review("/validate/sized", &review("DELETE", &Value::Null, &old))
        .await;
    assert_eq!(response["status"]["code"], 409, "{response}");
    let old = widget(&json!({"size": 1}));
    let response = caller
        .review("/validate/sized", &review("DELETE", &Value::Null, &old))
        .await;
    assert_eq!(response["allowed"], true, "{response}");
}

#[tokio::test]
async fn an_object_that_does_not_fit_its_type_is_denied_with_the_field() {
    let program = Program::new().await;
    let webhooks = program.webhooks().validate(Hook::new("sized"), sized);
    let webhooks = webhooks.defaults(Hook::new("red"), |_: &mut Widget| {});
    let (_server, caller) = serve(webhooks).await;
    let object = widget(&json!({"size": "secret"}));
    for path in ["/validate/sized", "/mutate/red"] {
        let response = caller
            .review(path, &review("CREATE", &object, &Value::Null))
            .await;
        assert_eq!(response["allowed"], false);
        let status = &response["status"];
        assert_eq!(status["code"], 422);
        assert_eq!(status["details"]["causes"][0]["field"], "spec.size");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with("the object cannot be decoded as demo.dev/v1 Widget: spec.size"),
            "{message}"
        );
        // The value is not repeated.
        assert!(!message.contains("secret"), "{message}");
    }
    // An old object need not decode, as long as the handler does not read it.
    let new = widget(&json!({"size": 1}));
    let response = caller
        .review("/validate/sized", &review("UPDATE", &new, &object))
        .await;
    assert_eq!(response["allowed"], true, "{response}");
}

#[tokio::test]
async fn a_handler_sees_the_whole_request() {
    let program = Program::new().await;
    let webhooks =
        program
            .webhooks()
            .validate(Hook::new("seen"), async |request: Admission<Widget>| {
                assert_eq!(request.operation(), Operation::Update);
                assert_eq!(request.key(), &ObjectKey::namespaced("demo", "a"));
                assert_eq!(request.gvk(), &Gvk::new("demo.dev", "v1", "Widget"));
                assert_eq!(
                    request.requested_gvk(),
                    Gvk::new("demo.dev", "v2", "Widget")
                );
                assert_eq!(
                    (request.resource(), request.subresource()),
                    ("widgets", Some("status"))
                );
                assert_eq!(request.user().username.as_deref(), Some("eve"));
                assert!(request.is_dry_run());
                assert_eq!(request.options()["fieldManager"], "kubectl");
                assert_eq!(request.uid(), "7f0b2891-916f-4ed6-b7cd-27bff1815a8c");
                assert_eq!(request.object()?.unwrap().spec.size, 2);
                assert_eq!(request.old()?.unwrap().spec.size, 1);
                assert!(request.raw_object().unwrap().contains("unknown"));
                assert!(request.time_left().as_secs() < 3);
                Ok(Decision::allow())
            });
    let (_server, caller) = serve(webhooks).await;
    let object = widget(&json!({"size": 2, "unknown": 1}));
    let mut review = review("UPDATE", &object, &widget(&json!({"size": 1})));
    review["request"]["subResource"] = "status".into();
    review["request"]["dryRun"] = true.into();
    review["request"]["options"] = json!({"fieldManager": "kubectl"});
    let response = caller.review("/validate/seen?timeout=3s", &review).await;
    assert_eq!(response["allowed"], true, "{response}");
}

#[tokio::test]
async fn a_mutation_is_the_difference_of_the_typed_values() {
    let program = Program::new().await;
    let webhooks = program
        .webhooks()
        .defaults(Hook::new("red"), |widget: &mut Widget| {
            widget.spec.color.get_or_insert_with(|| "red".to_owned());
        })
        .mutate(
            Hook::new("grow"),
            async |request: Admission<Widget>, mut widget: Widget| {
                if widget.spec.size > 10 {
                    return Ok(Mutation::deny("the widget is too large"));
                }
                assert_eq!(request.object()?.unwrap().spec, widget.spec);
                widget.spec.size += 1;
                Ok(Mutation::to(widget).warn("it has grown"))
            },
        );
    let (_server, caller) = serve(webhooks).await;
    // The size is a default of the type, which does not know the field `new`.
    let object = widget(&json!({"new": {"a": 1}}));
    let response = caller
        .review("/mutate/red", &review("CREATE", &object, &Value::Null))
        .await;
    assert_eq!(
        patch(&response),
        json!([{"op": "add", "path": "/spec/color", "value": "red"}])
    );
    let response = caller
        .review("/mutate/grow", &review("CREATE", &object, &Value::Null))
        .await;
    assert_eq!(
        patch(&response),
        json!([{"op": "add", "path": "/spec/size", "value": 1}])
    );
    assert_eq!(response["warnings"], json!(["it has grown"]));
    // Without a change there is no patch.
    let object = widget(&json!({"color": "blue"}));
    let response = caller
        .review("/mutate/red", &review("CREATE", &object, &Value::Null))
        .await;
    assert_eq!(
        (&response["patch"], &response["patchType"]),
        (&Value::Null, &Value::Null)
    );
    let object = widget(&json!({"size": 11}));
    let response = caller
        .review("/mutate/grow", &review("CREATE", &object, &Value::Null))
        .await;
    assert_eq!(response["allowed"], false);
    assert_eq!(response["patch"], Value::Null);
    // A deletion has nothing to change.
    let response = caller
        .review("/mutate/grow", &review("DELETE", &Value::Null, &object))
        .await;
    assert_eq!(
        (&response["allowed"], &response["patch"]),
        (&json!(true), &Value::Null)
    );
}

#[tokio::test]
async fn handlers_read_the_shared_caches() {
    let program = Program::new().await;
    let client = program.cluster.client();
    namespace("demo").create(&client).await.unwrap();
    config_map("limits", &[("size", "5")])
        .namespace("demo")
        .create(&client)
        .await
        .unwrap();
    let limits = program.factory.for_object::<ConfigMap>().cache();
    let webhooks =
        program
            .webhooks()
            .validate(Hook::new("limited"), async |request: Admission<Widget>| {
                let key = ObjectKey::namespaced(request.key().namespace().unwrap(), "limits");
                let limits = request.cache::<ConfigMap>().get(&key)?;
                let size =
                    limits.and_then(|limits| limits.data.as_ref()?.get("size")?.parse().ok());
                let size: i64 = size.ok_or("there is no limit")?;
                let widget = request.object()?.ok_or("there is no object")?;
                Ok(if widget.spec.size > size {
                    Decision::deny(format!("at most {size}"))
                } else {
                    Decision::allow()
                })
            });
    program.factory.start(1).await.unwrap();
    let key = ObjectKey::namespaced("demo", "limits");
    until("the limits are not cached", async || {
        limits.get(&key).ok().flatten()
    })
    .await;
    let (_server, caller) = serve(webhooks).await;
    let response = caller
        .review(
            "/validate/limited",
            &review("CREATE", &widget(&json!({"size": 6})), &Value::Null),
        )
        .await;
    assert_eq!(response["status"]["message"], "at most 5", "{response}");
    program.factory.stop().await.unwrap();
}

#[tokio::test]
async fn a_handler_of_dynamic_objects_has_a_kind_of_its_own() {
    let program = Program::new().await;
    let kind = ResourceKind::new(
        Gvk::new("demo.dev", "v1", "Widget"),
        "widgets",
        Scope::Namespaced,
    );
    let hook = Hook::of("dynamic", [kind]);
    let webhooks = program
        .webhooks()
        .mutate(hook, async |_, mut object: DynamicObject| {
            object.data["spec"]["size"] = 3.into();
            Ok(Mutation::to(object))
        });
    let (_server, caller) = serve(webhooks).await;
    let object = widget(&json!({"size": 1}));
    let response = caller
        .review("/mutate/dynamic", &review("CREATE", &object, &Value::Null))
        .await;
    assert_eq!(
        patch(&response),
        json!([{"op": "replace", "path": "/spec/size", "value": 3}])
    );
}
