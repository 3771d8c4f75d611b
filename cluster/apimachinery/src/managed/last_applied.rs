//! Taking over from client-side apply.
//!
//! Source: `lastAppliedManager` and `lastAppliedUpdater` in `k8s.io/apimachinery/pkg/util/managedfields`.

use std::collections::HashSet;

use serde_json::Value;

use super::error::Conflict;
use super::set::Set;
use super::typed;
use crate::go_text;
use crate::object::{Object, metadata_mut};
use crate::schema::Schema;

/// The annotation in which `kubectl apply` keeps what it applied last.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The largest size of all annotations of an object together, in bytes.
// `TotalAnnotationSizeLimitB`.
const MOST_ANNOTATIONS: usize = 256 << 10;

fn annotation(object: &Object) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str()
}

/// Returns the conflicts that a takeover from client-side apply does not resolve.
///
/// They are about fields that client-side apply did not set, or that were changed since.
pub(super) fn unexpected(
    schema: &Schema,
    api_version: &str,
    live: Option<&Object>,
    conflicts: &[Conflict],
) -> Vec<Conflict> {
    // Without a readable annotation nothing is allowed, and every conflict stays one.
    let allowed = live.and_then(|live| allowed(schema, api_version, live));
    let mut paths = HashSet::new();
    allowed.unwrap_or_default().each(&mut |path| {
        paths.insert(path.to_owned());
    });
    let is_unexpected = |conflict: &&Conflict| !paths.contains(&conflict.path);
    conflicts.iter().filter(is_unexpected).cloned().collect()
}

/// Returns the fields that still are as client-side apply left them.
fn allowed(schema: &Schema, api_version: &str, live: &Object) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    // Field names of another version could mean something else, so `allowedConflictsFromLastApplied` gives up here.
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    // What has no type, or another one, cannot be compared; neither may have items twice.
    let typed = schema.root();
    let (present, kind) = (Value::Object(live.clone()), live.get("kind"));
    let is_typed = |value: &Value| typed::validate(typed, value).is_empty();
    if last.get("kind") != kind || !is_typed(&present) || !is_typed(&last) {
        return None;
    }
    // A field that was changed since is no longer client-side apply's, and stays a conflict.
    let changed = typed::compare(typed, &last, &present);
    let fields = typed::fields(typed, &last).difference(&changed.modified);
    Some(
        fields
            .difference(&changed.added)
            .difference(&changed.removed),
    )
}

/// Updates the annotation of the result of an apply, if it has one.
///
/// It gets what was applied, without fields that other managers set.
// `lastAppliedUpdater.Apply`.
pub(super) fn renew(applied: &Object, new: &mut Object) {
    if annotation(new).is_none_or(str::is_empty) {
        return;
    }
    let mut applied = applied.clone();
    let metadata = metadata_mut(&mut applied);
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(ANNOTATION);
    }
    // Go's JSON encoder ends with a line feed, which is part of the annotation.
    let text = format!("{}\n", go_text::json(&Value::Object(applied)));
    let Some(Value::Object(annotations)) = metadata_mut(new).get_mut("annotations") else {
        return;
    };
    annotations.insert(ANNOTATION.into(), text.into());
    // `SetLastApplied`: rather no annotation than an object that cannot be stored.
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > MOST_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}
