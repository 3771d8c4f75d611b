//! The rules of CustomResourceDefinitions.

use serde_json::{Value, json};

use super::admit::metadata_text;
use crate::api::status::Cause;
use crate::kinds::Definition;
use crate::store::Object;

/// The finalizer under which the instances of a kind are removed before its definition.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(object.get(*first)?, |value, member| value.get(member))
}

fn text_at<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

fn versions(object: &Object) -> &[Value] {
    at(object, &["spec", "versions"])
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(super) fn prepare_create(object: &mut Object) {
    set_default_names(object);
    let storage = versions(object)
        .iter()
        .find(|version| version["storage"] == true);
    let stored: Vec<&Value> = storage
        .map(|version| &version["name"])
        .into_iter()
        .collect();
    let status = json!({
        "conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored,
    });
    object.insert("status".into(), status);
}

/// Derives the names that were left out, and the conversion.
pub(super) fn set_default_names(object: &mut Object) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    spec.entry("conversion")
        .or_insert_with(|| json!({"strategy": "None"}));
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = names
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    names
        .entry("singular")
        .or_insert_with(|| kind.to_lowercase().into());
    names
        .entry("listKind")
        .or_insert_with(|| format!("{kind}List").into());
}

pub(super) fn validate(object: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    let group = text_at(object, &["spec", "group"]);
    let plural = text_at(object, &["spec", "names", "plural"]);
    let name = metadata_text(object, "name");
    if name != format!("{plural}.{group}") {
        let rule = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &name.into(), rule));
    }
    if !group.contains('.') {
        let rule = "should be a domain with at least one dot";
        causes.push(Cause::invalid("spec.group", &group.into(), rule));
    }
    for (path, field) in [("plural", "spec.names.plural"), ("kind", "spec.names.kind")] {
        if text_at(object, &["spec", "names", path]).is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    let scope = text_at(object, &["spec", "scope"]);
    if !matches!(scope, "Cluster" | "Namespaced") {
        let supported = r#""Cluster", "Namespaced""#;
        causes.push(Cause::unsupported("spec.scope", scope, supported));
    }
    causes.extend(validate_versions(object));
    if causes.is_empty()
        && let Err(error) = Definition::read(object)
    {
        let message = format!("Invalid value: cannot be read: {error}");
        causes.push(Cause::new("FieldValueInvalid", "spec", message));
    }
    causes
}

fn validate_versions(object: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    let stored = versions(object)
        .iter()
        .filter(|version| version["storage"] == true)
        .count();
    if stored != 1 {
        let message = "Invalid value: must have exactly one version marked as storage version";
        causes.push(Cause::new("FieldValueInvalid", "spec.versions", message));
    }
    for (at, version) in versions(object).iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let field = format!("spec.versions[{at}].schema.openAPIV3Schema");
            causes.push(Cause::required(&field, "schemas are required"));
        }
        if version["served"].as_bool().is_none() || version["storage"].as_bool().is_none() {
            let field = format!("spec.versions[{at}]");
            causes.push(Cause::required(&field, "served and storage must be set"));
        }
        if version["name"].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::required(&format!("spec.versions[{at}].name"), ""));
        }
    }
    causes
}

/// Finds changes of what identifies the kind.
pub(super) fn validate_update(old: &Object, new: &Object) -> Vec<Cause> {
    let fixed: [(&[&str], &str); 4] = [
        (&["spec", "group"], "spec.group"),
        (&["spec", "scope"], "spec.scope"),
        (&["spec", "names", "plural"], "spec.names.plural"),
        (&["spec", "names", "kind"], "spec.names.kind"),
    ];
    let changed = fixed
        .into_iter()
        .filter(|(path, _)| at(old, path) != at(new, path));
    let cause = |(path, field): (&[&str], &str)| {
        let value = at(new, path).cloned().unwrap_or_default();
        Cause::invalid(field, &value, "field is immutable")
    };
    changed.map(cause).collect()
}
