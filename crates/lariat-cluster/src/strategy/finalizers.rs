//! The rules of finalizer names.
//!
//! Source: `ValidateFinalizers` in `k8s.io/apimachinery/pkg/api/validation`, and
//! `validateKubeFinalizerName` in `k8s.io/kubernetes/pkg/apis/core/validation`.

use lariat_core::Labels;
use serde_json::Value;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, finalizers};

/// The finalizer under which an owner waits for its dependents to be deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer under which an owner waits for its dependents to be released.
pub(crate) const ORPHAN: &str = "orphan";

const PATH: &str = "metadata.finalizers";

/// Finds what is wrong with the finalizers of an object.
pub(crate) fn validate(resource: &Resource, object: &Object) -> Vec<StatusCause> {
    let all = finalizers(object);
    let mut causes = Vec::new();
    for name in &all {
        let error = Labels::check_key(name).err();
        causes.extend(error.map(|rule| StatusCause::invalid(PATH, &(*name).into(), rule)));
    }
    if all.contains(&ORPHAN) && all.contains(&FOREGROUND) {
        let reason = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        causes.push(StatusCause::invalid(PATH, &all.clone().into(), &reason));
    }
    // Servers of their own check only the rules above.
    let groups = ["apiextensions.k8s.io", "apiregistration.k8s.io"];
    if !resource.rules.custom && !groups.contains(&&*resource.group) {
        causes.extend(plain(&all));
    }
    causes
}

/// Finds finalizers without a domain that built-in kinds do not know.
fn plain(all: &[&str]) -> Vec<StatusCause> {
    let is_plain =
        |name: &str| !name.contains('/') && !matches!(name, "kubernetes" | ORPHAN | FOREGROUND);
    let found = all.iter().enumerate().filter(|(_, name)| is_plain(name));
    let reason = "name is neither a standard finalizer name nor is it fully qualified";
    let cause = |(at, name): (usize, &&str)| {
        StatusCause::invalid(&format!("{PATH}[{at}]"), &(*name).into(), reason)
    };
    found.map(cause).collect()
}

/// Returns the finalizers in the spec, which namespaces have.
pub(crate) fn finalizers_in_spec<'a>(resource: &Resource, object: &'a Object) -> &'a [Value] {
    if !resource.group.is_empty() || resource.plural != "namespaces" {
        return &[];
    }
    let spec = object.get("spec").and_then(|spec| spec.get("finalizers"));
    spec.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
