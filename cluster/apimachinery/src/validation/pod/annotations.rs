//! Annotations of Pods that mean something to the server.

use serde_json::Value;

use super::pod_context;
use super::scheduling::check_tolerations;
use crate::go_json;
use crate::object::Object;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::paths;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Returns whether a Pod only shows one that a node runs by itself.
pub(super) fn is_mirror(annotations: &Field<'_>) -> bool {
    annotations.has(MIRROR)
}

/// Checks the annotations of a Pod or a template.
///
/// `old` are those before, if the Pod is changed: what was wrong there may stay.
pub(super) fn check(
    annotations: &Field<'_>,
    old: Option<&Field<'_>>,
    spec: &Field<'_>,
    causes: &mut Causes,
) {
    let mirror = annotations.get(MIRROR);
    // `ValidatePodSpecificAnnotations`. Such a Pod was made by the kubelet of its node, so the node is known.
    if mirror.is_set() && spec.text_of("nodeName").is_empty() {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        causes.invalid(&annotations.key(MIRROR).with(mirror.value()), detail);
    }
    // Tolerations were in this annotation before they had a field.
    let list = annotations.text_of(TOLERATIONS);
    if !list.is_empty() {
        match tolerations(list) {
            Ok(list) => {
                let list = &list;
                check_tolerations(&annotations.get(TOLERATIONS).with(list), causes);
            }
            Err(error) => causes.invalid_as(annotations, TOLERATIONS, &error),
        }
    }
    let cost = |of: &Field<'_>| of.has(DELETION_COST) && !is_cost(of.text_of(DELETION_COST));
    // A cost that was wrong before may stay wrong, so that other changes are possible.
    if cost(annotations) && !old.is_some_and(cost) {
        let at = annotations.key(DELETION_COST);
        let at = at.with(annotations.member(DELETION_COST));
        causes.invalid(&at, "must be a 32bit integer");
    }
    for (key, value) in annotations.entries() {
        if key == SECCOMP || key.starts_with(SECCOMP_OF) {
            check_profile(&annotations.get(key), causes);
        }
        if let Some(name) = key.strip_prefix(APP_ARMOR) {
            check_app_armor(&value, name, spec, causes);
        }
    }
}

/// The members of a toleration, and their types in Go.
const MEMBERS: [(&str, &str, &str); 5] = [
    ("key", "Key", "string"),
    ("operator", "Operator", "core.TolerationOperator"),
    ("value", "Value", "string"),
    ("effect", "Effect", "core.TaintEffect"),
    ("tolerationSeconds", "TolerationSeconds", "int64"),
];

/// Reads tolerations as Go's decoder does.
// `GetTolerationsFromPodAnnotations`. The internal type has no names for JSON, so those of any case are taken.
fn tolerations(text: &str) -> Result<Value, String> {
    if let Some(error) = go_json::syntax_error(text.as_bytes()) {
        return Err(error);
    }
    let list = match serde_json::from_str(text) {
        Ok(Value::Array(list)) => list,
        Ok(Value::Null) => return Ok(Value::Null),
        Ok(other) => return Err(go_json::type_error(&other, "[]core.Toleration")),
        Err(error) => return Err(error.to_string()),
    };
    list.into_iter().map(toleration).collect()
}

fn toleration(value: Value) -> Result<Value, String> {
    let members = match value {
        Value::Object(members) => members,
        Value::Null => Object::new(),
        other => return Err(go_json::type_error(&other, "core.Toleration")),
    };
    let mut read = Object::new();
    for (name, value) in members {
        let mut known = MEMBERS.iter();
        let known = known.find(|(known, ..)| known.eq_ignore_ascii_case(&name));
        let Some((name, go_name, kind)) = known.filter(|_| !value.is_null()) else {
            continue;
        };
        let fits = match *kind {
            "int64" => value.is_i64(),
            _ => value.is_string(),
        };
        if !fits {
            let found = go_json::type_name(&value);
            return Err(format!(
                "json: cannot unmarshal {found} into Go struct field Toleration.{go_name} of type {kind}"
            ));
        }
        read.insert((*name).to_owned(), value);
    }
    Ok(read.into())
}

fn is_cost(text: &str) -> bool {
    // `GetDeletionCostFromPodAnnotations` refuses forms that it would not write itself.
    let zeros = text.starts_with('0') && text != "0";
    !zeros && !text.starts_with('+') && text.parse::<i32>().is_ok()
}

fn check_profile(at: &Field<'_>, causes: &mut Causes) {
    match at.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text => match text.strip_prefix("localhost/") {
            Some(path) if path.starts_with('/') => {
                causes.invalid_as(at, path, "must be a relative path");
            }
            Some(path) if paths::has_backsteps(path) => {
                causes.invalid_as(at, path, "must not contain '..'");
            }
            Some(_) => {}
            None => causes.invalid(at, "must be a valid seccomp profile"),
        },
    }
}

fn check_app_armor(at: &Field<'_>, name: &str, spec: &Field<'_>, causes: &mut Causes) {
    // Containers of all three lists have profiles.
    let all = pod_context::all(spec);
    if !all
        .iter()
        .any(|container| container.text_of("name") == name)
    {
        causes.invalid_as(at, name, "container not found");
    }
    let profile = at.text();
    let known = matches!(profile, "" | "runtime/default" | "unconfined");
    if !known && !profile.starts_with("localhost/") {
        causes.invalid(at, &format!("invalid AppArmor profile name: {profile:?}"));
    }
}

/// Refuses changes of annotations that are fixed with the Pod.
pub(super) fn check_update(annotations: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let is_fixed = |key: &str| key == MIRROR || key.starts_with(APP_ARMOR);
    let what = |key: &str| match key {
        MIRROR => "mirror pod annotation",
        _ => "AppArmor annotations",
    };
    // Removed and changed ones come first, added ones after them.
    for (key, was) in old.entries().filter(|(key, _)| is_fixed(key)) {
        if annotations.member(key) != was.value() {
            let detail = format!("may not remove or update {}", what(key));
            causes.forbidden(&annotations.key(key), &detail);
        }
    }
    for (key, _) in annotations.entries().filter(|(key, _)| is_fixed(key)) {
        if !old.has(key) {
            causes.forbidden(&annotations.key(key), &format!("may not add {}", what(key)));
        }
    }
}

/// Checks that profiles in annotations are those in the fields.
pub(super) fn check_profiles(annotations: &Field<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let context = spec.get("securityContext");
    let seccomp = ("seccomp", "seccompProfile");
    // `validateSeccompAnnotationsAndFields`: old clients write the annotation, new ones the field, and the two must
    // agree.
    check_match(annotations, SECCOMP, (&context, &context, seccomp), causes);
    for container in pod_context::all(spec) {
        let own = container.get("securityContext");
        let key = format!("{SECCOMP_OF}{}", container.text_of("name"));
        check_match(annotations, &key, (&own, &own, seccomp), causes);
        let app_armor = ("apparmor", "appArmorProfile");
        // The container's annotation is compared with the profile that holds for it, but the cause is at the
        // container.
        let effective = if own.has(app_armor.1) { &own } else { &context };
        let key = format!("{APP_ARMOR}{}", container.text_of("name"));
        if spec.get("os").text_of("name") != "windows" {
            check_match(annotations, &key, (effective, &own, app_armor), causes);
        }
    }
}

/// Compares one annotation with the profile in a security context.
///
/// Causes are at another context.
fn check_match<'a>(
    annotations: &Field<'_>,
    key: &str,
    (context, shown, (what, member)): (&Field<'a>, &Field<'a>, (&str, &'static str)),
    causes: &mut Causes,
) {
    let profile = context.get(member);
    if !annotations.has(key) || !profile.is_set() {
        return;
    }
    let text = annotations.text_of(key);
    let shown = shown.get(member);
    let kind = format!("{what} type in annotation and field must match");
    let fits = match profile.text_of("type") {
        "Unconfined" => text == "unconfined",
        "RuntimeDefault" => {
            text == "runtime/default" || (what == "seccomp" && text == "docker/default")
        }
        "Localhost" => text.starts_with("localhost/"),
        // An unknown type was refused where the field is checked.
        _ => return,
    };
    if !fits {
        causes.forbidden(&shown.get("type"), &kind);
    } else if let Some(path) = text.strip_prefix("localhost/")
        && path != profile.text_of("localhostProfile")
    {
        let detail = format!("{what} profile in annotation and field must match");
        causes.forbidden(&shown.get("localhostProfile"), &detail);
    }
}
