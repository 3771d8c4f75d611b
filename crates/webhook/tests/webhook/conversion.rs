//! Tests of conversions, over the wire and by `check_round_trip`.

use kube::CustomResource;
use lariat_webhook::{Conversion, ConversionError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Program, Widget as V1, WidgetSpec as V1Spec, serve};

/// The hub: a size has become a width and a height.
mod v2 {
    use super::*;

    #[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "demo.dev", version = "v2", kind = "Widget", namespaced)]
    pub(crate) struct WidgetSpec {
        pub(crate) width: i64,
        pub(crate) height: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(crate) color: Option<String>,
    }
}

use v2::{Widget as V2, WidgetSpec as V2Spec};

/// The annotation in which the older version keeps values that it has no field for.
const HEIGHT: &str = "demo.dev/height";

impl TryFrom<V1> for V2 {
    type Error = String;

    fn try_from(mut old: V1) -> Result<Self, String> {
        assert_ne!(old.spec.size, 13, "an unlucky size");
        let kept = old
            .metadata
            .annotations
            .as_mut()
            .and_then(|all| all.remove(HEIGHT));
        if old
            .metadata
            .annotations
            .as_ref()
            .is_some_and(|all| all.is_empty())
        {
            old.metadata.annotations = None;
        }
        let height = match kept {
            Some(kept) => kept
                .parse()
                .map_err(|_| format!("the annotation {HEIGHT} is no number: {kept}"))?,
            None => old.spec.size,
        };
        let spec = V2Spec {
            width: old.spec.size,
            height,
            color: old.spec.color,
        };
        Ok(Self {
            metadata: old.metadata,
            spec,
        })
    }
}

impl From<V2> for V1 {
    fn from(mut new: V2) -> Self {
        if new.spec.height != new.spec.width {
            let annotations = new.metadata.annotations.get_or_insert_default();
            annotations.insert(HEIGHT.to_owned(), new.spec.height.to_string());
        }
        let spec = V1Spec {
            size: new.spec.width,
            color: new.spec.color,
        };
        Self {
            metadata: new.metadata,
            spec,
        }
    }
}

fn conversion() -> Conversion<V2> {
    Conversion::hub().version::<V1>()
}

fn object(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("demo.dev/{version}"), "kind": "Widget",
        "metadata": {
            "name": name, "namespace": "demo", "uid": "u", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "m"}],
        },
        "spec": spec,
    })
}

fn review(objects: &[Value], desired: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "c", "desiredAPIVersion": desired, "objects": objects},
    })
}

#[tokio::test]
async fn all_objects_of_a_review_are_converted_in_their_order() {
    let program = Program::new().await;
    let (_server, caller) = serve(program.webhooks().convert(conversion())).await;
    let objects = [
        object("v1", "a", &json!({"size": 1})),
        object("v2", "b", &json!({"width": 2, "height": 3})),
        object("v1", "c", &json!({"size": 4, "color": "red"})),
    ];
    let path = "/convert/widgets.demo.dev";
    let response = caller.review(path, &review(&objects, "demo.dev/v2")).await;
    assert_eq!(
        response["result"],
        json!({"status": "Success"}),
        "{response}"
    );
    assert_eq!(
        response["convertedObjects"],
        json!([
            object("v2", "a", &json!({"width": 1, "height": 1})),
            objects[1],
            object("v2", "c", &json!({"width": 4, "height": 4, "color": "red"})),
        ])
    );
    let response = caller
        .review(path, &review(&objects[1..2], "demo.dev/v1"))
        .await;
    let mut expected = object("v1", "b", &json!({"size": 2}));
    expected["metadata"]["annotations"] = json!({HEIGHT: "3"});
    assert_eq!(response["convertedObjects"], json!([expected]));
    let response = caller.review(path, &review(&[], "demo.dev/v1")).await;
    assert_eq!(response["convertedObjects"], json!([]));
}

#[tokio::test]
async fn one_object_that_cannot_be_converted_fails_all_with_its_key() {
    let program = Program::new().await;
    let (_server, caller) = serve(program.webhooks().convert(conversion())).await;
    let check = async |bad: Value, desired: &str, expected: &str| {
        let objects = [object("v1", "a", &json!({"size": 1})), bad];
        let response = caller
            .review("/convert/widgets.demo.dev", &review(&objects, desired))
            .await;
        assert_eq!(response["result"]["status"], "Failure");
        assert_eq!(response["result"]["message"], expected);
        assert_eq!(response["convertedObjects"], json!([]));
    };
    let mut bad = object("v1", "b", &json!({"size": 1}));
    bad["metadata"]["annotations"] = json!({HEIGHT: "tall"});
    let expected = "demo/b cannot be converted from demo.dev/v1 to demo.dev/v2: the annotation demo.dev/height is no number: tall";
    check(bad, "demo.dev/v2", expected).await;
    let unlucky = object("v1", "b", &json!({"size": 13}));
    let expected = "the conversion of demo/b from demo.dev/v1 to demo.dev/v2 panicked";
    check(unlucky, "demo.dev/v2", expected).await;
    let unknown = "demo/b: Widget in demo.dev/v3 cannot be converted: the versions are v2, v1";
    let of_a = "demo/a: Widget in demo.dev/v3 cannot be converted: the versions are v2, v1";
    check(object("v1", "b", &json!({})), "demo.dev/v3", of_a).await;
    check(object("v3", "b", &json!({})), "demo.dev/v2", unknown).await;
    let mut other = object("v1", "b", &json!({}));
    other["kind"] = "Gadget".into();
    let expected =
        r#"demo/b of kind "Gadget" cannot be converted: this is the conversion of Widget"#;
    check(other, "demo.dev/v2", expected).await;
    let undecodable = object("v1", "b", &json!({"size": "large"}));
    let objects = [undecodable];
    let response = caller
        .review(
            "/convert/widgets.demo.dev",
            &review(&objects, "demo.dev/v2"),
        )
        .await;
    let message = response["result"]["message"].as_str().unwrap();
    let key = "demo/b cannot be converted from demo.dev/v1 to demo.dev/v2: ";
    assert!(message.starts_with(key), "{message}");
    assert!(
        message.contains("cannot be decoded as demo.dev/v1 Widget: spec.size"),
        "{message}"
    );
    let mut credential = object("v1", "b", &json!({"size": 1}));
    credential["metadata"]["annotations"] = json!({HEIGHT: "Bearer abc.def"});
    let expected = "demo/b cannot be converted from demo.dev/v1 to demo.dev/v2: the annotation demo.dev/height is no \
        number: Bearer …";
    check(credential, "demo.dev/v2", expected).await;
}

#[tokio::test]
async fn other_reviews_are_refused() {
    let program = Program::new().await;
    let (_server, caller) = serve(program.webhooks().convert(conversion())).await;
    let mut old = review(&[], "demo.dev/v1");
    old["apiVersion"] = "apiextensions.k8s.io/v1beta1".into();
    let (status, text) = caller
        .post("/convert/widgets.demo.dev", old.to_string())
        .await;
    assert_eq!(status, 400);
    assert!(
        text.contains("only ConversionReview of apiextensions.k8s.io/v1 is supported"),
        "{text}"
    );
}

#[test]
fn a_conversion_that_loses_metadata_is_an_error() {
    let forgetful = Conversion::<V2>::hub().version_with(
        |old: V1| V2::try_from(old),
        |new: V2| {
            Ok::<V1, String>(V1::new(
                "other",
                V1Spec {
                    size: new.spec.width,
                    color: None,
                },
            ))
        },
    );
    let new = object("v2", "a", &json!({"width": 1, "height": 1}));
    let error = forgetful.convert(&new, "demo.dev/v1").unwrap_err();
    assert!(
        matches!(error, ConversionError::ChangedMetadata { .. }),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains("the conversion of demo/a to demo.dev/v1 changes metadata."),
        "{text}"
    );
}

/// A third version, which cannot be written if its size is negative.
mod v3 {
    use super::*;

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "demo.dev", version = "v3", kind = "Widget", namespaced)]
    pub(crate) struct WidgetSpec {
        #[serde(serialize_with = "positive")]
        pub(crate) size: i64,
    }

    fn positive<S: serde::Serializer>(size: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        match *size {
            ..0 => Err(serde::ser::Error::custom("a negative size")),
            size => serializer.serialize_i64(size),
        }
    }
}

#[test]
fn a_round_trip_of_an_object_that_cannot_be_serialized_is_an_error_with_its_key() {
    let mut negative = v3::Widget::new("a", v3::WidgetSpec { size: -1 });
    negative.metadata.namespace = Some("demo".to_owned());
    let error = conversion().check_round_trip(&negative).unwrap_err();
    assert!(
        matches!(error, ConversionError::Unserializable { .. }),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "demo/a in demo.dev/v3 cannot be serialized for a round trip"
    );
}

#[test]
fn a_round_trip_finds_fields_that_get_lost() {
    let spec = V2Spec {
        width: 1,
        height: 2,
        color: Some("red".to_owned()),
    };
    let new = V2::new("a", spec);
    conversion().check_round_trip(&new).unwrap();
    let old = V1::new(
        "a",
        V1Spec {
            size: 1,
            color: None,
        },
    );
    conversion().check_round_trip(&old).unwrap();
    let lossy = Conversion::<V2>::hub().version_with(
        |old: V1| V2::try_from(old),
        |mut new: V2| {
            new.spec.color = None;
            Ok::<V1, String>(new.into())
        },
    );
    let error = lossy.check_round_trip(&new).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a does not survive the conversion from demo.dev/v2 to demo.dev/v1 and back: spec.color differ"
    );
}
