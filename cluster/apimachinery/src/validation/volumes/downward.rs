//! The downward API: references to fields and resources of a Pod.

use crate::quantity::Quantity;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::resources::amount;
use crate::validation::{formats, paths};

pub(super) fn volume(at: &Field<'_>, causes: &mut Causes) {
    paths::check_mode(&at.get("defaultMode"), causes);
    for item in at.get("items").items() {
        check_file(&at.with(item.value()), causes);
    }
}

/// The fields that files show.
// `validVolumeDownwardAPIFieldPathExpressions`: files show metadata only, variables also the node and addresses.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Checks one file; the paths of causes do not have its index.
pub(super) fn check_file(file: &Field<'_>, causes: &mut Causes) {
    causes.check_given(&file.get("path"), "");
    paths::check_local(&file.get("path"), causes);
    let (field, resource) = (file.get("fieldRef"), file.get("resourceFieldRef"));
    if field.is_set() {
        check_field_reference(&field, FIELDS, causes);
        if resource.is_set() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            // Go passes the literal text "resource" as the wrong value.
            causes.invalid_as(file, "resource", detail);
        }
    } else if resource.is_set() {
        check_resource_reference(&resource, true, causes);
    } else {
        causes.required(file, "one of fieldRef and resourceFieldRef is required");
    }
    paths::check_mode(&file.get("mode"), causes);
}

/// The labels of fields that can be converted, subscripts aside.
// `ConvertDownwardAPIFieldLabel`. More is convertible than is supported: `status.phase` gets "unsupported", `spec.foo`
// an error of the conversion.
const CONVERTIBLE: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    // The name of `spec.nodeName` in very old clients.
    "spec.host",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Checks a reference to a field of the Pod, of which some are supported.
pub(in crate::validation) fn check_field_reference(
    at: &Field<'_>,
    supported: &[&str],
    causes: &mut Causes,
) {
    for member in ["apiVersion", "fieldPath"] {
        if !causes.check_given(&at.get(member), "") {
            return;
        }
    }
    let field = at.get("fieldPath");
    let (version, path) = (at.text_of("apiVersion"), field.text());
    // `SplitMaybeSubscriptedPath`: `metadata.labels['app']`.
    let subscript = path
        .strip_suffix("']")
        .and_then(|path| path.split_once("['"))
        .filter(|(of, _)| !of.is_empty());
    let problem = if version != "v1" {
        Some(format!("unsupported pod version: {version}"))
    } else if let Some((of, _)) = subscript {
        let known = matches!(of, "metadata.annotations" | "metadata.labels");
        (!known).then(|| format!("field label does not support subscript: {path}"))
    } else {
        let known = CONVERTIBLE.contains(&path);
        (!known).then(|| format!("field label not supported: {path}"))
    };
    if let Some(problem) = problem {
        causes.invalid(&field, &format!("error converting fieldPath: {problem}"));
        return;
    }
    let path = if path == "spec.host" {
        "spec.nodeName"
    } else {
        path
    };
    match subscript {
        Some(("metadata.annotations", key)) => {
            // Keys of annotations may have capitals in their domain, those of labels may not.
            causes.check_format_of(at, &key.to_lowercase(), formats::qualified_name);
        }
        Some((_, key)) => causes.check_format_of(at, key, formats::qualified_name),
        // The converted name is looked up and shown, hence the replacement above.
        None if !supported.contains(&path) => causes.unsupported_as(&field, path, supported),
        None => {}
    }
}

// `validContainerResourceFieldPathExpressions`. Huge pages are allowed by prefix and are therefore not in the message.
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const SIZES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";

/// Checks a reference to a container's resource; in volumes it names the container.
// `validateContainerResourceFieldSelector`. In a variable an empty container name means the own container.
pub(in crate::validation) fn check_resource_reference(
    at: &Field<'_>,
    in_volume: bool,
    causes: &mut Causes,
) {
    let resource = at.text_of("resource");
    let pages = ["requests.hugepages-", "limits.hugepages-"]
        .iter()
        .any(|start| resource.starts_with(start));
    if in_volume && at.text_of("containerName").is_empty() {
        causes.required(&at.get("containerName"), "");
    } else if resource.is_empty() {
        causes.required(&at.get("resource"), "");
    } else if !RESOURCES.contains(&resource) && !pages {
        causes.unsupported(&at.get("resource"), RESOURCES);
    }
    let divisor = at.get("divisor");
    let amount = amount(&divisor);
    // `validateContainerResourceDivisor`: none and zero are the default divisor, one.
    if amount == Quantity::ZERO {
        return;
    }
    let (kind, choices) = match resource.split_once('.').map(|(_, kind)| kind) {
        Some("cpu") => ("cpu", "1m and 1"),
        Some("memory") => ("memory", SIZES),
        Some("ephemeral-storage") => ("local ephemeral storage", SIZES),
        Some(_) if pages => ("hugepages", SIZES),
        _ => return,
    };
    let known = pages || RESOURCES.contains(&resource);
    let fits = choices
        .split([',', ' '])
        // The canonical text is compared, so `1000m` is as good as `1`, and `1024` is wrong although `1Ki` is fine.
        .any(|choice| choice == amount.to_string());
    if known && !fits {
        let detail =
            format!("only divisor's values {choices} are supported with the {kind} resource");
        // Go shows the name of the resource as the wrong value, not the divisor.
        causes.invalid_as(&divisor, resource, &detail);
    }
}
