//! Taking over from client-side apply.
//!
//! Source: `lastAppliedManager` and `lastAppliedUpdater` in `k8s.io/apimachinery/pkg/util/managedfields`.

use serde_json::Value;

use super::set::Set;
use super::typed;
use super::updater::Conflict;
use crate::schema::Schema;
use crate::store::Object;
use crate::verbs::metadata_mut;

/// Where `kubectl apply` keeps what it applied last.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn annotation(object: &Object) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str()
}

/// Returns the conflicts about fields that client-side apply did not set.
pub(super) fn unexpected(
    schema: &Schema,
    live: Option<&Object>,
    conflicts: &[Conflict],
) -> Vec<Conflict> {
    let last = live.and_then(annotation);
    let last: Option<Value> = last.and_then(|last| serde_json::from_str(last).ok());
    let allowed = last.map_or_else(Set::default, |last| typed::fields(schema.root(), &last));
    let mut paths = Vec::new();
    allowed.each(&mut |path| paths.push(path.to_owned()));
    let is_unexpected = |conflict: &&Conflict| !paths.contains(&conflict.path);
    conflicts.iter().filter(is_unexpected).cloned().collect()
}

/// Brings the annotation of an object that has one up to date.
pub(super) fn renew(live: Option<&Object>, new: &mut Object) {
    if live.and_then(annotation).is_none() {
        return;
    }
    let mut applied = new.clone();
    applied.remove("status");
    let metadata = metadata_mut(&mut applied);
    for member in [
        "managedFields",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
    ] {
        metadata.remove(member);
    }
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{}\n", Value::Object(applied));
    let annotations = metadata_mut(new).entry("annotations");
    if let Value::Object(annotations) = annotations.or_insert_with(|| Value::Object(Object::new()))
    {
        annotations.insert(ANNOTATION.into(), text.into());
    }
}
