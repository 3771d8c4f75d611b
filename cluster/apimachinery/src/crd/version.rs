//! What a CRD says about one version, or about all of them at once.
//!
//! The server moves what is the same in all versions to the spec before it checks it, and so names
//! `spec.validation` where there is no such member.

use std::collections::HashSet;

use serde_json::Value;

use super::parts::{array, text};
use super::schema;
use super::tolerated::Tolerated;
use crate::cause::StatusCause;
use crate::go_text;
use crate::structural::json_path::{JsonPath, PathError};
use crate::structural::{duplicate, field_path, too_many};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// How many fields may be selectable.
// `MaxSelectableFields`.
const MOST_SELECTABLE: usize = 8;

/// The longest warning of a deprecated version.
const LONGEST_WARNING: usize = 256;

/// Checks what every version has for itself, and what all have in common.
pub(super) fn check(
    versions: &[Value],
    old: &[Value],
    tolerated: Tolerated,
) -> (Vec<StatusCause>, Vec<StatusCause>) {
    let is_shared = |member: &str| {
        // Null is absent, or a null in one version would make a member look different.
        let of = |version: &Value| version.get(member).filter(|each| !each.is_null()).cloned();
        versions
            .iter()
            .all(|version| of(version) == of(&versions[0]))
    };
    let members = [
        "schema",
        "subresources",
        "additionalPrinterColumns",
        "selectableFields",
    ];
    let shared = members.map(is_shared);
    let is_schema_shared = shared[0];
    let (mut own, mut common) = (Vec::new(), Vec::new());
    let before = |version: &Value| old.iter().find(|old| old["name"] == version["name"]);
    for (at, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{at}]");
        own.extend(check_deprecation(version, &path));
        // Members that differ keep the paths they were written at.
        for (member, _) in members.iter().zip(shared).filter(|(_, shared)| !shared) {
            let path = format!("{path}.{member}");
            let scope = Scope {
                old: before(version),
                has_status: has_status(version),
                // A shared schema is no longer at the version when its fields are checked.
                has_schema: !is_schema_shared && version["schema"]["openAPIV3Schema"].is_object(),
                tolerated: with_costs(tolerated, version, before(version)),
            };
            own.extend(check_member(version, member, scope, &path));
        }
    }
    // `hasAnyStatusEnabled`: the shared schema must fit the strictest of the versions.
    let any_status = versions.iter().any(has_status);
    for (member, _) in members.iter().zip(shared).filter(|(_, shared)| *shared) {
        let path = match *member {
            "schema" => "spec.validation".to_owned(),
            other => format!("spec.{other}"),
        };
        let first = versions.first().unwrap_or(&Value::Null);
        let scope = Scope {
            old: old.first(),
            has_status: any_status,
            has_schema: is_schema_shared && first["schema"].is_object(),
            tolerated: with_costs(tolerated, first, before(first)),
        };
        common.extend(check_member(first, member, scope, &path));
    }
    (own, common)
}

/// Tolerates the costs of rules in a schema that stays as it is.
// `suppressExpressionCostForUnchangedSchema`.
fn with_costs(tolerated: Tolerated, version: &Value, old: Option<&Value>) -> Tolerated {
    Tolerated {
        rule_costs: old.is_some_and(|old| old["schema"] == version["schema"]),
        ..tolerated
    }
}

fn has_status(version: &Value) -> bool {
    version["subresources"]["status"].is_object()
}

/// What the check of a version depends on.
#[derive(Debug, Clone, Copy)]
struct Scope<'a> {
    /// The version that it replaces.
    old: Option<&'a Value>,
    has_status: bool,
    /// Whether there is a schema where selectable fields are looked up.
    has_schema: bool,
    tolerated: Tolerated,
}

fn check_member(version: &Value, member: &str, scope: Scope<'_>, path: &str) -> Vec<StatusCause> {
    match member {
        "schema" => schema::check(&version["schema"], scope.has_status, scope.tolerated, path),
        "subresources" => check_scale(&version["subresources"]["scale"], path),
        "additionalPrinterColumns" => check_columns(array(version, member), path),
        _ => check_selectable(version, scope, path),
    }
}

fn check_deprecation(version: &Value, path: &str) -> Vec<StatusCause> {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return Vec::new();
    };
    // `validateDeprecationWarning`.
    let mut rules = Vec::new();
    if version["deprecated"] != true {
        rules.push("can only be set for deprecated versions".to_owned());
    // The rest is said only about a warning that may be there.
    } else if warning.is_empty() {
        rules.push("must not be an empty string".to_owned());
    } else {
        // The limit is one of bytes, whatever the message says.
        if warning.len() > LONGEST_WARNING {
            rules.push(format!("must be <= {LONGEST_WARNING} characters long"));
        }
        if let Some(at) = warning.find(|each: char| !go_text::is_print(each)) {
            rules.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at \
                 index {at}"
            ));
        }
    }
    let field = format!("{path}.deprecationWarning");
    let cause = |rule: String| StatusCause::invalid(&field, &warning.into(), &rule);
    rules.into_iter().map(cause).collect()
}

fn check_scale(scale: &Value, path: &str) -> Vec<StatusCause> {
    if !scale.is_object() {
        return Vec::new();
    }
    let check = |(member, roots, required): (&str, &[&str], bool)| {
        let field = format!("{path}.scale.{member}");
        let value = text(scale, member);
        let rule = match value {
            "" if required => return Some(StatusCause::required(&field, "")),
            "" => return None,
            value if !value.starts_with('.') => {
                "must be a simple json path starting with .".to_owned()
            }
            value
                if roots
                    .iter()
                    .any(|root| value.starts_with(&format!("{root}."))) =>
            {
                match JsonPath::dotted(value) {
                    Ok(_) => return None,
                    Err(error) => format!("is an invalid path: {error}"),
                }
            }
            _ if roots.len() > 1 => {
                "should be a json path under either .spec or .status".to_owned()
            }
            _ => format!("should be a json path under {}", roots.join("")),
        };
        Some(StatusCause::invalid(&field, &value.into(), &rule))
    };
    let members = [
        ("specReplicasPath", &[".spec"][..], true),
        ("statusReplicasPath", &[".status"], true),
        // The only one that may be in the spec too: it is read, and never written through the scale.
        ("labelSelectorPath", &[".status", ".spec"], false),
    ];
    members.into_iter().filter_map(check).collect()
}

fn check_columns(columns: &[Value], path: &str) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let field = |member: &str| format!("{path}[{at}].{member}");
        if text(column, "name").is_empty() {
            causes.push(StatusCause::required(&field("name"), ""));
        }
        let kind = text(column, "type");
        let rule = format!("must be one of {}", COLUMN_TYPES.join(","));
        match kind {
            "" => causes.push(StatusCause::required(&field("type"), &rule)),
            kind if COLUMN_TYPES.contains(&kind) => {}
            kind => causes.push(StatusCause::invalid(&field("type"), &kind.into(), &rule)),
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let rule = format!("must be one of {}", COLUMN_FORMATS.join(","));
            causes.push(StatusCause::invalid(
                &field("format"),
                &format.into(),
                &rule,
            ));
        }
        // The paths of causes have the internal type's spelling, `JSONPath`.
        let json_path = text(column, "jsonPath");
        let rule = match json_path {
            "" => {
                causes.push(StatusCause::required(&field("JSONPath"), ""));
                continue;
            }
            path if !path.starts_with('.') => {
                "must be a simple json path starting with .".to_owned()
            }
            // `validateSimpleJSONPath` does not parse the path: one that cannot be read is no reason to refuse.
            path => match JsonPath::parse(path) {
                Ok(_) | Err(PathError::Malformed(_)) => continue,
                Err(PathError::TooLarge(error)) => format!("is an invalid path: {error}"),
            },
        };
        causes.push(StatusCause::invalid(
            &field("JSONPath"),
            &json_path.into(),
            &rule,
        ));
    }
    causes
}

fn check_selectable(version: &Value, scope: Scope<'_>, path: &str) -> Vec<StatusCause> {
    let fields = array(version, "selectableFields");
    // `findTooManySelectableFieldsAllowed`: as many as there were, if they are the same.
    let is_kept = |old: &Value| array(old, "selectableFields") == fields;
    let is_kept = scope.old.is_some_and(is_kept);
    let mut causes = Vec::new();
    // The second sentence says the opposite of what it means; it is the server's.
    let detail = if path == "spec.selectableFields" {
        "may only be set when validations.schema is included"
    } else {
        "may only be set when `version.schema.openAPIV3Schema` is not included"
    };
    if !fields.is_empty() && !scope.has_schema {
        return vec![StatusCause::invalid(path, &"".into(), detail)];
    }
    let mut seen = HashSet::new();
    for (at, each) in fields.iter().enumerate() {
        let field = format!("{path}[{at}].jsonPath");
        let json_path = text(each, "jsonPath");
        if json_path.is_empty() {
            causes.push(StatusCause::required(&field, ""));
            continue;
        }
        let mut invalid =
            |rule: &str| causes.push(StatusCause::invalid(&field, &json_path.into(), rule));
        match field_path::resolve(json_path, &version["schema"]["openAPIV3Schema"], false) {
            Err(error) => {
                invalid(&format!("is an invalid path: {error}"));
                continue;
            }
            // `ValidateCustomResourceSelectableFields`: the rules below are independent, so one field may have two
            // causes.
            Ok((shown, schema)) => {
                if shown.split(['.', '[']).next() == Some("metadata") {
                    invalid("must not point to fields in metadata");
                }
                if !matches!(text(schema, "type"), "boolean" | "integer" | "string") {
                    invalid(
                        "must point to a field of type string, boolean or integer. Enum string fields \
                         and strings with formats are allowed.",
                    );
                }
            }
        }
        if !seen.insert(json_path) {
            causes.push(duplicate(&field, &json_path.into()));
        }
    }
    // Duplicates do not count, since they make no further field.
    if seen.len() > MOST_SELECTABLE && !is_kept {
        causes.push(too_many(path, seen.len(), MOST_SELECTABLE as i64));
    }
    causes
}
