//! Annotations of Nodes that once were members to be.

use serde_json::Value;

use super::node::check_taints;
use crate::go_json;
use crate::validation::causes::Causes;
use crate::validation::field::Field;

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOIDED: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

// `ValidateNodeSpecificAnnotations`.
pub(super) fn check(annotations: &Field<'_>, causes: &mut Causes) {
    // `ValidateTaintsInNodeAnnotations`.
    match read(annotations.text_of(TAINTS), wrong_taints) {
        Ok(taints) => check_taints(&annotations.get(TAINTS).with(&taints), causes),
        // The value in the cause is the name of the annotation.
        Err(error) => causes.invalid_as(annotations, TAINTS, &error),
    }
    // `ValidateAvoidPodsInNodeAnnotations`.
    match read(annotations.text_of(AVOIDED), wrong_avoided) {
        Ok(avoided) => {
            let list = annotations.get(AVOIDED);
            for entry in list.with(&avoided["preferAvoidPods"]).items() {
                check_avoided(&entry, causes);
            }
        }
        Err(error) => causes.invalid_as(&annotations.get("AvoidPods"), AVOIDED, &error),
    }
}

/// Reads an annotation; the error is that of Go's decoder.
fn read(text: &str, wrong: impl Fn(&Value) -> Option<String>) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    if let Some(error) = go_json::syntax_error(text.as_bytes()) {
        return Err(error);
    }
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    wrong(&value).map_or(Ok(value), Err)
}

fn wrong_taints(taints: &Value) -> Option<String> {
    let wrong = |value: &Value, kind: &str| Some(go_json::type_error(value, kind));
    match taints {
        Value::Null => None,
        Value::Array(list) => {
            let mut items = list.iter();
            let item = items.find(|item| !item.is_null() && !item.is_object())?;
            wrong(item, "core.Taint")
        }
        other => wrong(other, "[]core.Taint"),
    }
}

fn wrong_avoided(avoided: &Value) -> Option<String> {
    let is_read = avoided.is_null() || avoided.is_object();
    (!is_read).then(|| go_json::type_error(avoided, "v1.AvoidPods"))
}

// `validatePreferAvoidPodsEntry`.
fn check_avoided(entry: &Field<'_>, causes: &mut Causes) {
    let controller = entry.get("podSignature").get("podController");
    let at = entry.get("PodSignature");
    if !controller.is_set() {
        causes.required(&at.with(controller.value()), "");
    } else if *controller.member("controller") == Value::Bool(false) {
        let at = at.get("PodController").get("Controller");
        let detail = "must point to a controller";
        causes.invalid(&at.with(controller.member("controller")), detail);
    }
}
