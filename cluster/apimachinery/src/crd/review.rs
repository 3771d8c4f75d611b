//! ConversionReviews: what conversion webhooks are asked, and what they answer.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/conversion`.

use serde_json::{Value, json};

use crate::go_text::quoted;
use crate::object::{Object, metadata_mut, metadata_text};

/// Creates the ConversionReview for objects in another version.
#[must_use]
pub fn ask_conversion(review: &str, uid: &str, wanted: &str, objects: &[Object]) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{review}"),
        "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
    })
}

/// Reads the answer to a review: the objects in the wanted version.
///
/// Labels and annotations are those of the webhook's answer; other metadata are kept.
///
/// # Errors
///
/// The answer is malformed, or the webhook reports a failure. The text is that of the API server, without the kind of
/// the first object, which the caller puts in front.
pub fn read_conversion(
    review: &str,
    uid: &str,
    wanted: &str,
    originals: &[Object],
    answer: &Value,
) -> Result<Vec<Object>, String> {
    let failed = |reason: String| Err(format!("failed: {reason}"));
    let response = &answer["response"];
    if !response.is_object() {
        return failed("no response provided".to_owned());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let given = text(&response["uid"]);
    // Webhooks of v1beta1 often left the uid out.
    if review == "v1" && given != uid {
        let (uid, given) = (quoted(uid), quoted(&given));
        return failed(format!("expected response.uid={uid}, got {given}"));
    }
    let status = text(&response["result"]["status"]);
    if status != "Success" {
        let message = text(&response["result"]["message"]);
        return failed(match message.as_str() {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    let converted = response["convertedObjects"].as_array();
    let converted = converted.map(Vec::as_slice).unwrap_or_default();
    if converted.len() != originals.len() {
        let (found, wanted) = (converted.len(), originals.len());
        return Err(format!("returned {found} objects, expected {wanted}"));
    }
    // Answers are matched by position, since the review has no other order.
    let pairs = originals.iter().zip(converted).enumerate();
    pairs
        .map(|(at, (original, converted))| take(at, wanted, original, converted))
        .collect()
}

fn take(at: usize, wanted: &str, original: &Object, converted: &Value) -> Result<Object, String> {
    let refuse = |reason: String| Err(format!("returned invalid object: {reason}"));
    let Value::Object(members) = converted else {
        return refuse(format!("it is no object at index {at}"));
    };
    let text = |object: &Object, member: &str| {
        let text = object.get(member).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let version = text(members, "apiVersion");
    if version != wanted {
        return Err(format!(
            "returned invalid object at index {at}: invalid groupVersion (expected {wanted}, received {version})"
        ));
    }
    let (kind, found) = (text(original, "kind"), text(members, "kind"));
    if kind != found {
        return Err(format!(
            "returned invalid object at index {at}: invalid kind (expected {kind}, received {found})"
        ));
    }
    // `validateConvertedObject`: what identifies an object cannot be converted.
    for (member, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (is, found) = (
            metadata_text(original, member),
            metadata_text(members, member),
        );
        if is != found {
            return refuse(format!("must have the same {name}: {is} != {found}"));
        }
    }
    // `restoreObjectMeta`: a webhook may convert labels and annotations, and everything else of the metadata is the
    // original's.
    let mut taken = members.clone();
    let given = taken.remove("metadata").unwrap_or_default();
    if let Some(metadata) = original.get("metadata") {
        taken.insert("metadata".into(), metadata.clone());
    }
    let metadata = metadata_mut(&mut taken);
    for member in ["labels", "annotations"] {
        match &given[member] {
            Value::Null => drop(metadata.remove(member)),
            Value::Object(texts) if texts.values().all(Value::is_string) => {
                metadata.insert(member.to_owned(), given[member].clone());
            }
            // A value that is no text would break every reader of labels.
            _ => return refuse(format!("invalid metadata.{member} in converted object")),
        }
    }
    Ok(taken)
}
