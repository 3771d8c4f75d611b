//! What is wrong with a CRD, and with a change of one.

use std::collections::HashSet;

use serde_json::Value;

use super::parts::{array, flag, text};
use super::tolerated::Tolerated;
use super::{approval, conversion, lists, names, schema, version};
use crate::cause::StatusCause;
use crate::checks::formats::dns_subdomain;
use crate::kinds::Definition;
use crate::names::check_dns_1035;
use crate::object::{Object, metadata_text};
use crate::structural::Structural;
use crate::structural::any_schema;

/// Validates a CRD, which replaces `old` if there is one.
///
/// A specification that stays as it is is not checked again: one that was stored before a check can still be given a
/// status, and be deleted. Some checks are left out as well if the old specification does not pass them.
///
/// ```
/// use lariat_apimachinery::crd::validate;
/// use serde_json::json;
///
/// let crd = json!({
///     "metadata": {"name": "widgets"},
///     "spec": {"group": "example.com", "names": {"plural": "widgets"}},
/// });
/// let causes = validate(crd.as_object().expect("it is an object"), None);
/// assert!(causes.iter().any(|cause| cause.text().starts_with("metadata.name: Invalid value")));
/// ```
#[must_use]
pub fn validate(object: &Object, old: Option<&Object>) -> Vec<StatusCause> {
    let empty = Value::Null;
    let spec = object.get("spec").unwrap_or(&empty);
    let status = object.get("status").unwrap_or(&empty);
    let mut causes = Vec::new();
    let name = metadata_text(object, "name");
    let wanted = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
    // A missing name is required elsewhere, and that of an object that exists is not checked again.
    if old.is_none() && !name.is_empty() && name != wanted {
        let rule = "must be spec.names.plural+\".\"+spec.group";
        causes.push(StatusCause::invalid("metadata.name", &name.into(), rule));
    }
    let old_spec = old.map(|old| old.get("spec").unwrap_or(&empty));
    let is_changed = old_spec.is_none_or(|old| old != spec);
    if is_changed {
        causes.extend(check_spec(spec, old_spec, old.is_some_and(is_established)));
    }
    if let Some(old) = old {
        causes.extend(changes_of_fixed(old, object));
    }
    let accepted = &status["acceptedNames"];
    // The status comes after the specification, in the order of `ValidateCustomResourceDefinition`.
    causes.extend(names::check(accepted, "status.acceptedNames", false));
    causes.extend(check_stored_versions(spec, status));
    causes.extend(approval::check(object, old));
    if flag(spec, "preserveUnknownFields")
        && !old_spec.is_some_and(|old| flag(old, "preserveUnknownFields"))
    {
        let rule = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
            spec.versions[*].schema instead";
        let field = "spec.preserveUnknownFields";
        causes.push(StatusCause::invalid(field, &true.into(), rule));
    }
    if is_changed
        && causes.is_empty()
        // The embedded server must be able to serve what it stores. Nothing that passed the checks should fail here.
        && let Err(error) = Definition::read(object)
    {
        let message = format!("Invalid value: cannot be read: {error}");
        causes.push(StatusCause::new("FieldValueInvalid", "spec", message));
    }
    causes
}

/// Validates a CRD of which only the status was written.
// `ValidateUpdateCustomResourceDefinitionStatus`, which looks at the names alone.
#[must_use]
pub fn validate_status(object: &Object) -> Vec<StatusCause> {
    let accepted = object.get("status").map(|status| &status["acceptedNames"]);
    let check = |accepted| names::check(accepted, "status.acceptedNames", false);
    accepted.map(check).unwrap_or_default()
}

/// Checks a specification, which replaces `old` if there is one.
///
/// `established` says whether the CRD is served.
fn check_spec(spec: &Value, old: Option<&Value>, established: bool) -> Vec<StatusCause> {
    let mut tolerated = old.map(tolerated_after).unwrap_or_default();
    // `allowInvalidCABundle`: nothing can be converted yet.
    tolerated.bundle |= !established;
    let mut causes: Vec<StatusCause> = check_group(text(spec, "group")).into_iter().collect();
    match text(spec, "scope") {
        "Cluster" | "Namespaced" => {}
        "" => causes.push(StatusCause::required("spec.scope", "")),
        scope => {
            let supported = r#""Cluster", "Namespaced""#;
            causes.push(StatusCause::unsupported("spec.scope", scope, supported));
        }
    }
    let versions = array(spec, "versions");
    causes.extend(check_schemas(versions, tolerated.missing_schemas));
    let mut schemas = versions
        .iter()
        .map(|each| &each["schema"]["openAPIV3Schema"]);
    if flag(spec, "preserveUnknownFields") && schemas.any(has_defaults) {
        let rule = "must be false in order to use defaults in the schema";
        let field = "spec.preserveUnknownFields";
        causes.push(StatusCause::invalid(field, &true.into(), rule));
    }
    causes.extend(check_versions(versions));
    // What versions have in common is checked against the specification's own members in Go, which come after the
    // names.
    let old_versions = old.map_or(&[][..], |old| array(old, "versions"));
    let (own, common) = version::check(versions, old_versions, tolerated);
    causes.extend(own);
    causes.extend(check_choice(versions));
    causes.extend(names::check(&spec["names"], "spec.names", true));
    causes.extend(common);
    let conversion = &spec["conversion"];
    let strategy = text(conversion, "strategy");
    if flag(spec, "preserveUnknownFields") && conversion.is_object() && strategy != "None" {
        let rule = "must be None if spec.preserveUnknownFields is true";
        let field = "spec.conversion.strategy";
        causes.push(StatusCause::invalid(field, &strategy.into(), rule));
    }
    causes.extend(conversion::check(conversion, tolerated));
    causes
}

/// Returns what is tolerated because an old specification has it.
fn tolerated_after(old: &Value) -> Tolerated {
    let versions = array(old, "versions");
    let schemas = || {
        let schemas = versions
            .iter()
            .map(|each| &each["schema"]["openAPIV3Schema"]);
        schemas.filter(|schema| schema.is_object())
    };
    let any = |is_wrong: fn(&Value) -> bool| schemas().any(|each| any_schema(each, &is_wrong));
    let webhook = &old["conversion"]["webhook"];
    let reviews = array(webhook, "conversionReviewVersions");
    let unpruned = |schema: &Value| Structural::compile(schema).has_unpruned_defaults();
    Tolerated {
        missing_schemas: schemas().count() < versions.len(),
        types: any(|schema| !schema::is_known_type(text(schema, "type"))),
        unpruned_defaults: schemas().any(unpruned),
        sets: any(lists::has_composite_set),
        keys: any(lists::has_vague_keys),
        // Decided for each version.
        rule_costs: false,
        review_versions: !reviews.is_empty() && !conversion::has_known_version(reviews),
        bundle: !conversion::is_bundle(text(&webhook["clientConfig"], "caBundle")),
    }
}

fn check_group(group: &str) -> Option<StatusCause> {
    let field = "spec.group";
    if group.is_empty() {
        return Some(StatusCause::required(field, ""));
    }
    let rule = match dns_subdomain(group).join(",") {
        rules if !rules.is_empty() => rules,
        // Groups without a dot are those of Kubernetes.
        _ if !group.contains('.') => "should be a domain with at least one dot".to_owned(),
        _ => return None,
    };
    Some(StatusCause::invalid(field, &group.into(), &rule))
}

/// Checks that every version has a schema, or at least every one that is served.
fn check_schemas(versions: &[Value], only_served: bool) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let rule = if only_served {
        "because otherwise all fields are pruned"
    } else {
        ""
    };
    for (at, version) in versions.iter().enumerate() {
        let is_needed = !only_served || flag(version, "served");
        if is_needed && !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{at}].schema.openAPIV3Schema");
            causes.push(StatusCause::required(&field, rule));
        }
    }
    causes
}

/// Returns whether a schema, or one inside of it, has a default.
fn has_defaults(schema: &Value) -> bool {
    any_schema(schema, &|schema| !schema["default"].is_null())
}

/// Checks that every version has a name, and says whether it is served and stored.
fn check_versions(versions: &[Value]) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let name = text(version, "name");
        if let Err(rule) = check_dns_1035(name) {
            let field = format!("spec.versions[{at}].name");
            causes.push(StatusCause::invalid(&field, &name.into(), &rule));
            // The first version has another name inside, which is checked as well.
            if at == 0 && !name.is_empty() {
                causes.push(StatusCause::invalid("spec.version", &name.into(), &rule));
            }
        }
        for member in ["served", "storage"] {
            if !version[member].is_boolean() {
                causes.push(StatusCause::required(
                    &format!("spec.versions[{at}].{member}"),
                    "",
                ));
            }
        }
    }
    causes
}

/// Checks that version names are unique, and that exactly one version is stored.
fn check_choice(versions: &[Value]) -> Vec<StatusCause> {
    let mut seen = HashSet::new();
    let mut names = versions.iter().map(|each| text(each, "name"));
    let is_unique = names.all(|name| seen.insert(name));
    let stored = versions.iter().filter(|each| flag(each, "storage")).count();
    let mut rules = Vec::new();
    if !is_unique {
        rules.push("must contain unique version names");
    }
    if stored != 1 {
        rules.push("must have exactly one version marked as storage version");
    }
    let cause = |rule| StatusCause::invalid("spec.versions", &list(versions), rule);
    rules.into_iter().map(cause).collect()
}

/// Returns a list as causes show it: null if it is empty.
fn list(items: &[Value]) -> Value {
    if items.is_empty() {
        Value::Null
    } else {
        items.into()
    }
}

fn check_stored_versions(spec: &Value, status: &Value) -> Vec<StatusCause> {
    let field = "status.storedVersions";
    let (versions, stored) = (array(spec, "versions"), array(status, "storedVersions"));
    // The storage version was noted before, so only a CRD without one has none.
    if stored.is_empty() {
        let rule = "must have at least one stored version";
        return vec![StatusCause::invalid(field, &list(stored), rule)];
    }
    let mut causes = Vec::new();
    let mut names = HashSet::new();
    for version in versions {
        let name = text(version, "name");
        let is_first = names.insert(name);
        // Each stored version counts for one version: a second one with its name lacks it.
        if flag(version, "storage") && !(is_first && stored.iter().any(|each| each == name)) {
            let rule = format!("must have the storage version {name}");
            causes.push(StatusCause::invalid(field, &list(stored), &rule));
        }
    }
    for (at, name) in stored.iter().enumerate() {
        if versions.iter().all(|version| version["name"] != *name) {
            let version = name.as_str().unwrap_or_default();
            let rule = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {version} and removes \
                 {version} from status.storedVersions"
            );
            causes.push(StatusCause::invalid(&format!("{field}[{at}]"), name, &rule));
        }
    }
    causes
}

fn is_established(object: &Object) -> bool {
    let status = object.get("status");
    let conditions = status.map_or(&[][..], |status| array(status, "conditions"));
    let mut conditions = conditions.iter();
    conditions.any(|each| each["type"] == "Established" && each["status"] == "True")
}

/// Finds changes of immutable fields: those that identify the kind.
fn changes_of_fixed(old: &Object, new: &Object) -> Vec<StatusCause> {
    let established = is_established(old);
    let fixed: [(&str, &str, bool); 4] = [
        // `validateCustomResourceDefinitionSpecUpdate`: until the CRD is established, no object of the kind can exist.
        ("/scope", "spec.scope", established),
        ("/names/kind", "spec.names.kind", established),
        ("/group", "spec.group", true),
        ("/names/plural", "spec.names.plural", true),
    ];
    let at = |object: &Object, path: &str| object.get("spec")?.pointer(path).cloned();
    let changed = fixed
        .into_iter()
        .filter(|(path, _, fixed)| *fixed && at(old, path) != at(new, path));
    let cause = |(path, field, _): (&str, &str, bool)| {
        let value = at(new, path).unwrap_or_else(|| "".into());
        StatusCause::invalid(field, &value, "field is immutable")
    };
    changed.map(cause).collect()
}
